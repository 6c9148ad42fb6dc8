/* The state of each GPU beyond the ledger's figures: what an administrator set (paused, by
 * which user, why), what is wrong with it, and when it may take work again. It is stored under
 * the GPU's UUID and outlives the daemon. */
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

/* Call once the GPU has entered the ledger: loads its stored record and takes its lock. */
void health_card_added(struct cards *cards, int card);

/* --- set by an administrator --- */

/* Starts no new work on the GPU. drain: a user waits for it to be empty, which an event will
 * report. reason may be "". */
void health_pause(struct cards *cards, int card, bool drain, const char *by,
                  const char *reason);
/* Ends a pause and clears a fault; only a user may clear one that needs a reset that was not
 * seen. -1 if the GPU cannot be used all the same. */
int health_resume(struct cards *cards, int card, const char *by, struct err *e);

/* --- facts about the GPU --- */

/* What the probe reports of the GPU's memory. */
enum health_memory {
    HEALTH_MEMORY_UNKNOWN, /* not queried this time, or never reported: unchanged */
    HEALTH_MEMORY_FINE,
    HEALTH_MEMORY_PENDING, /* bad memory will be retired at the next reset */
    HEALTH_MEMORY_FAILED,  /* retiring failed: the GPU is worn out */
};

/* health_seen: the GPU is in this sample. health_missing: it is not. health_unreadable: it is
 * listed, but the driver could not read it; one such sample makes it unknown, several in a row
 * make it lost, and neither means that it was reset when it answers again. */
void health_seen(struct cards *cards, int card, enum health_memory memory);
void health_missing(struct cards *cards, int card);
void health_unreadable(struct cards *cards, int card);
/* The probe reaches the GPU, or another one in its place, but no longer lists this entry: MIG
 * instances were removed, or a GPU was divided into instances or replaced, as text says. Its
 * jobs continue as on a lost GPU. Once no job is left and it has not come back within
 * mig_wait_ms, it is gone. */
void health_removed(struct cards *cards, int card, const char *text);
/* The probe has listed the GPU: ends a removal. */
void health_listed(struct cards *cards, int card);
/* A number that can be reused: of a GPU that is gone or, if all numbers are taken, of a
 * removed one, unless a job names it or ran on it; -1: none. */
int health_free_number(const struct cards *cards);
/* The driver reports an error of the GPU itself. True if that is new. */
bool health_fault(struct cards *cards, int card, int32_t xid, bool needs_reboot,
                  const char *text);
/* Notes something that does not prevent work. */
void health_note(struct cards *cards, int card, const char *text);
/* The driver was reloaded, so every GPU was reset. */
void health_driver_loaded(struct cards *cards);

/* Position up to which the kernel's log of this boot was read; -1: not yet. Stored with the
 * next commit; a new position alone does not cause one. */
int64_t health_log_position(struct cards *cards);
void health_set_log_position(struct cards *cards, int64_t seq);

/* --- consequences --- */

/* True if other daemons hold all GPUs. */
bool health_all_locked_out(struct cards *cards);

/* Call before each commit: reports GPUs that have drained, and drops those that were removed
 * for long enough. */
void health_settle(struct cards *cards);
/* True if a removed GPU has waited long enough to be dropped at the next commit. */
bool health_may_let_go(const struct cards *cards);
/* health_save: within the transaction. health_saved: after its commit. */
void health_save(struct cards *cards);
void health_saved(struct cards *cards);

/* Takes from a hello, before its GPUs, those that did not answer when the probe enumerated
 * them. NULL: none. */
void health_take_unanswered(struct cards *cards, const json_t *list);
/* The probe's text about the i'th of them; NULL: there are no more. */
const char *health_unanswered(const struct cards *cards, int i);
/* True if some GPU is lost or never answered: only a new probe can find it, as a probe sees
 * only the GPUs found at its start. */
bool health_wants_new_probe(const struct cards *cards);
/* True if some GPU is being checked, so samples are wanted soon. */
bool health_is_checking(const struct cards *cards);

/* health_own_process records that a process on a GPU belongs to the job; health_owner_of
 * returns the job. 0: unknown. */
void health_own_process(struct cards *cards, int32_t pid, uint32_t job);
uint32_t health_owner_of(const struct cards *cards, int32_t pid);

/* Records a program error reported for one of the job's processes. True if it is the first of
 * this attempt. */
bool health_blame_job(struct cards *cards, const struct job *job, const char *text);
/* Call when the job's last attempt is over: if it failed, writes the fault of its GPUs or its
 * own error into its ending; then drops the record. */
void health_job_over(struct cards *cards, struct job *job);

/* Writes "state_since", "state_by", "state_text", "xid", "note" of the GPU. */
void health_write(const struct cards *cards, int card, struct jsonw *w);
/* Appends a sentence about a GPU that takes no work: "gpu 1 is paused by alice (new fan)". */
void health_say(const struct cards *cards, int card, struct buf *out);
/* Appends the details for a waiting job's reason: " (paused by alice: new fan)". */
void health_explain(const struct cards *cards, const struct blocked *b, struct buf *out);

#endif
