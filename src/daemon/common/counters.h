/* Counts of what happened to jobs since this database was created, and how long things took.
 * Job events are counted from the same marks by which a turn writes them, and committed
 * together. So the counts agree with the history after any crash, and never decrease.
 * Durations of plans and commits are of this daemon only. */
#ifndef DAEMON_COMMON_COUNTERS_H
#define DAEMON_COMMON_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include "core/learn/histogram.h"
#include "core/queue/job.h"

struct change;
struct err;
struct store;

/* Why an attempt was followed by another. */
enum again {
    AGAIN_OOM,
    AGAIN_FAILURE,
    AGAIN_TIMEOUT,
    AGAIN_LOST,
    AGAIN_PREEMPTED,
    AGAIN_ASKED
};
#define AGAINS (AGAIN_ASKED + 1)
const char *again_name(enum again a);

/* Tasks of arrays count one by one; arrays themselves do not. */
struct tally_jobs {
    uint64_t submitted;
    uint64_t started;            /* attempts */
    uint64_t ended[JOB_STATES];  /* jobs, by final state */
    uint64_t outcomes[OUTCOMES]; /* attempts */
    uint64_t again[AGAINS];
    struct histogram waits; /* time to the first start */
    struct histogram runs;  /* of attempts */
};

struct tally_user {
    uint32_t uid;
    int64_t gpu_ms;  /* of ended attempts: run time times number of GPUs */
    int64_t more_ms; /* counters.c: added by this turn */
};

/* Of this daemon only. */
struct tally_times {
    struct histogram plans, commits, rounds;
    uint64_t commits_failed;
    int64_t commit_us, committed_us; /* of the newest: duration; when (boot clock) */
    int64_t slow_us, slow_at_us;     /* of the slowest recently */
    char error[200];                 /* of the newest commit; "": it succeeded */
};

struct tally *tally_new(void);
void tally_free(struct tally *t);
int tally_load(struct tally *t, struct store *store, struct err *e);

/* Reads changes: tasks that ended without ever leaving their array. */
void tally_read(struct tally *t, const struct change *x);

/* write: within the transaction, counts what these jobs' marks say. written: once it
 * is committed. */
void tally_write(struct tally *t, struct store *store, struct job *const *jobs, size_t n);
void tally_written(struct tally *t);

void tally_plan(struct tally *t, int64_t us);
void tally_round(struct tally *t, int64_t us); /* of the loop (pace.h) */
void tally_commit(struct tally *t, int64_t us, const struct err *failed); /* NULL: success */

const struct tally_jobs *tally_jobs(const struct tally *t);
const struct tally_times *tally_times(const struct tally *t);
const struct tally_user *tally_users(const struct tally *t, size_t *n);

#endif
