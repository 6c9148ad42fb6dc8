/* The state of all jobs, and what follows from a fact. Facts arrive through job_facts.h and
 * its neighbours, the plan's decisions through starts.h. Each change is appended to `changes`
 * (changes.h) for others to read. Nothing here uses a socket, a file, a database or a clock
 * directly: `struct past` and `struct around` provide what is needed. */
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

/* Access to stored data beyond the table: ended jobs, numbers given out, what commands
 * have used. */
struct past {
    void *arg;
    uint32_t (*next_job_id)(void *arg);
    uint64_t (*next_order)(void *arg);
    /* The whole job; the caller frees. NULL with e if it cannot be read. */
    struct job *(*load_job)(void *arg, uint32_t id, struct err *e);
    int (*find_job)(void *arg, uint32_t id, struct found_job *out, struct err *e);
    int (*find_named)(void *arg, uint32_t uid, const char *name, struct found_job *out,
                      struct err *e);
    int (*find_task)(void *arg, uint32_t array, int32_t task, struct found_job *out,
                     struct err *e);
    /* A completed job with the same command. */
    int (*find_same)(void *arg, uint32_t uid, const char *fingerprint, struct found_job *out,
                     struct err *e);
    int (*array_tasks)(void *arg, uint32_t id, struct task_set *out, struct err *e);
    /* What runs of the job's command on as many GPUs have used. put takes effect with the
     * next commit. */
    int (*peaks_get)(void *arg, const struct job *job, struct learned *out, struct err *e);
    void (*peaks_put)(void *arg, const struct job *job, const struct learned *known);
};

/* What the state needs from its environment: clocks, user names and GPU errors. */
struct around {
    void *arg;
    int64_t (*wall_us)(void *arg);
    int64_t (*boot_us)(void *arg);
    const char *(*user_name)(uint32_t uid); /* borrowed */
    /* The attempt is over for good: may add errors of its GPUs to its ending. */
    void (*explain_end)(void *arg, struct job *job);
};

/* The user whose request is being served. */
struct asker {
    bool is_known; /* false: none, or unknown */
    bool admin;
    uint32_t uid;
};

struct state {
    /* Borrowed, and shared with code that only reads it. */
    struct queue *queue;
    struct ledger *ledger;
    struct planner *planner;
    struct fair *fair;
    const struct limits *limits;
    const struct past *past;
    const struct around *around;

    struct history *history;
    struct depend *depend;
    bool system; /* one daemon for all users of the machine */
    struct asker asker;
    struct changes changes;
    char *last_cwd, *last_user, *last_rlimits; /* of the newest job (counted_text.h) */
};

/* Create and free the owned members. The caller fills in the borrowed ones. */
void state_open(struct state *s);
void state_close(struct state *s);

int64_t state_wall_us(const struct state *s);

/* Notes a change of this job, with the current time and the user being served. The caller
 * fills in the fields of its type. */
struct change *state_note(struct state *s, enum change_type type, const struct job *job);

/* Marks what the next commit has to write of a job (SAVE_*), and requests a plan. */
void state_save(struct state *s, struct job *job, unsigned what);

/* True if a job of this user with this demand could start on the empty machine and within the
 * limits. False: the reason is appended to why (may be NULL). */
bool state_could_start(const struct state *s, uint32_t uid, const struct demand *demand,
                       struct buf *why);
/* -1 with the reason if the demand exceeds what this user, or all users together, may hold
 * at once. */
int state_check_limits(const struct state *s, uint32_t uid, const struct demand *demand,
                       struct err *e);

#endif
