/* What the daemon knows of each card beside the ledger's figures: what a person said about it
 * (paused, by which user, why), what is wrong with it, and when it may take work again. It
 * outlives the daemon, under the card's UUID. */
#ifndef DAEMON_GPU_CARD_HEALTH_H
#define DAEMON_GPU_CARD_HEALTH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct blocked;
struct buf;
struct cards;
struct err;
struct job;
struct jsonw;

#define HEALTH_TEXT_MAX 160

struct health *health_new(void);
void health_free(struct health *h);

/* The card has entered the ledger: what is known of it from before is taken up, and its lock
 * is taken. */
void health_card_added(struct cards *cards, int card);

/* --- a person's word --- */

/* No new work on the card; drain says that a user waits for it to be empty, which an event
 * will report. reason may be "". */
void health_pause(struct cards *cards, int card, bool drain, const char *by,
                  const char *reason);
/* Paused no more, and believed to be well: a fault is forgotten, which only a user may do when
 * it needs a reset that was not seen. -1 when the card cannot be used all the same. */
int health_resume(struct cards *cards, int card, const char *by, struct err *e);

/* --- facts about the card --- */

/* What the probe says of its memory. */
enum health_memory {
    HEALTH_MEMORY_UNKNOWN, /* not asked this time, or never reported: as before */
    HEALTH_MEMORY_FINE,
    HEALTH_MEMORY_PENDING, /* bad parts wait for a reset to be put aside */
    HEALTH_MEMORY_FAILED,  /* and could not be: the card is worn out */
};

/* It is in this sample, or is not; or it is there, but the driver could not read it: one such
 * sample says little (unknown), several in a row that it is lost, and neither that it was
 * reset when it answers again. */
void health_seen(struct cards *cards, int card, enum health_memory memory);
void health_missing(struct cards *cards, int card);
void health_unreadable(struct cards *cards, int card);
/* The probe answers for its GPU, or for another in its place, and does not list it: MIG
 * instances were removed, a GPU was divided into some, or replaced, which text says. Its jobs
 * go on as on a lost card. When none is left and it has not come back, it is gone
 * (mig_wait_ms). */
void health_removed(struct cards *cards, int card, const char *text);
/* The probe has listed it: it is there again, if it was removed. */
void health_listed(struct cards *cards, int card);
/* The number of a card that is gone, or in need of one that was removed, and that no job names
 * or was on; -1. */
int health_free_number(const struct cards *cards);
/* The driver reports an error of the card itself. True when that is news. */
bool health_fault(struct cards *cards, int card, int32_t xid, bool needs_reboot,
                  const char *text);
/* Something to know that keeps no work away. */
void health_note(struct cards *cards, int card, const char *text);
/* The driver has been loaded anew: every card was reset. */
void health_driver_loaded(struct cards *cards);

/* How far the kernel's log has been read, of this boot; -1: not yet. Kept with the next
 * commit, for which a position alone is no reason. */
int64_t health_log_position(struct cards *cards);
void health_set_log_position(struct cards *cards, int64_t seq);

/* --- what follows --- */

/* Whether other daemons have all cards. */
bool health_all_locked_out(struct cards *cards);

/* Before each commit: a card that was to be drained and is empty is said to be, and one that
 * was removed for long enough is gone. */
void health_settle(struct cards *cards);
/* Whether a removed card has become gone since the last commit. */
bool health_may_let_go(const struct cards *cards);
/* Within the transaction, and after it. */
void health_save(struct cards *cards);
void health_saved(struct cards *cards);

/* From a hello, before its cards are taken in: GPUs that did not answer when the probe looked
 * which there are. NULL: none. */
void health_take_unanswered(struct cards *cards, const json_t *list);
/* What was said of the i'th; NULL: there are no more. */
const char *health_unanswered(const struct cards *cards, int i);
/* Some card is lost, or never answered, and might be back unseen: the probe only knows those it
 * found at its start. */
bool health_wants_new_probe(const struct cards *cards);
/* Some card is being checked: samples are wanted soon. */
bool health_is_checking(const struct cards *cards);

/* A process on a card was seen to be the job's; and whose it was. 0: not known. */
void health_own_process(struct cards *cards, int32_t pid, uint32_t job);
uint32_t health_owner_of(const struct cards *cards, int32_t pid);

/* A program's own error was reported for one of the job's processes. True when it is the
 * first of this attempt. */
bool health_blame_job(struct cards *cards, const struct job *job, const char *text);
/* The job's last attempt is over: what its cards suffered meanwhile is written into its
 * ending, when it failed, and forgotten. */
void health_job_over(struct cards *cards, struct job *job);

/* "state_since", "state_by", "state_text", "xid", "note" of the card. */
void health_write(const struct cards *cards, int card, struct jsonw *w);
/* "gpu 1 is paused by alice (new fan)": for a card that takes no work. Appends. */
void health_say(const struct cards *cards, int card, struct buf *out);
/* What is shown for a waiting job beside the reason: " (paused by alice: new fan)". */
void health_explain(const struct cards *cards, const struct blocked *b, struct buf *out);

#endif
