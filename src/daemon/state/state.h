/* What is true of the jobs now, and what follows from a fact. Facts come in by job_facts.h and
 * its neighbours, the plan's decisions by starts.h; what has changed is appended to `changes`
 * (changes.h), which others read. Nothing here has a socket, a file, a database or a clock:
 * what is needed of those comes through `struct past` and `struct around`. */
#ifndef DAEMON_STATE_STATE_H
#define DAEMON_STATE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/queue/job.h"
#include "daemon/state/changes.h"

struct buf;
struct demand;
struct err;
struct learned;
struct limits;
struct task_set;

/* What was written down before, which is more than what is in the table: jobs that have ended,
 * numbers that were given out, what commands have used. */
struct past {
    void *arg;
    uint32_t (*next_job_id)(void *arg);
    uint64_t (*next_order)(void *arg);
    /* The whole job, for the caller to free; NULL with e: none that can be read. */
    struct job *(*load_job)(void *arg, uint32_t id, struct err *e);
    int (*find_job)(void *arg, uint32_t id, struct found_job *out, struct err *e);
    int (*find_named)(void *arg, uint32_t uid, const char *name, struct found_job *out,
                      struct err *e);
    int (*find_task)(void *arg, uint32_t array, int32_t task, struct found_job *out,
                     struct err *e);
    /* The same command, that completed. */
    int (*find_same)(void *arg, uint32_t uid, const char *fingerprint, struct found_job *out,
                     struct err *e);
    int (*array_tasks)(void *arg, uint32_t id, struct task_set *out, struct err *e);
    /* What the job's command has used, with as many cards. put: with the next commit. */
    int (*peaks_get)(void *arg, const struct job *job, struct learned *out, struct err *e);
    void (*peaks_put)(void *arg, const struct job *job, const struct learned *known);
};

/* What is asked of the code that drives it. */
struct around {
    void *arg;
    int64_t (*wall_us)(void *arg);
    int64_t (*boot_us)(void *arg);
    const char *(*user_name)(uint32_t uid); /* borrowed */
    /* An attempt is over for good: what its cards suffered may be said in its ending. */
    void (*explain_end)(void *arg, struct job *job);
};

/* Whose request is being served. */
struct asker {
    bool is_known; /* false: not known */
    bool admin;
    uint32_t uid;
};

struct state {
    /* Borrowed, and shared with code that only reads. */
    struct queue *queue;
    struct ledger *ledger;
    struct planner *planner;
    struct fair *fair;
    const struct limits *limits;
    const struct past *past;
    const struct around *around;

    struct history *history;
    struct depend *depend;
    bool system; /* it serves all users of the machine */
    struct asker asker;
    struct changes changes;
    char *last_cwd, *last_user, *last_rlimits; /* counted_text.h: of the newest job */
};

/* Makes what is its own, and ends it; what it borrows is for the caller to fill in. */
void state_open(struct state *s);
void state_close(struct state *s);

int64_t state_wall_us(const struct state *s);

/* Notes a change of this job, now, by the caller being served; fill in what its type has
 * besides. */
struct change *state_note(struct state *s, enum change_type type, const struct job *job);

/* Marks what the next commit has to write of a job (SAVE_*), which is a reason to plan. */
void state_save(struct state *s, struct job *job, unsigned what);

/* Whether a job of this user's with this demand could ever start here, on the empty machine and
 * within the limits. False: the reason is appended to why (may be NULL). */
bool state_could_start(const struct state *s, uint32_t uid, const struct demand *demand,
                       struct buf *why);
/* -1 with the reason: it is more than this user, or all together, may have at once. */
int state_check_limits(const struct state *s, uint32_t uid, const struct demand *demand,
                       struct err *e);

#endif
