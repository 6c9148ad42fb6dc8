/* Counts of what happened to jobs since there is this database, and how long things took.
 * Events of jobs are counted from the very marks by which a turn writes them and is committed
 * with them: so the counts agree with the history whatever dies when, and never go back. How
 * long plans and commits take is of this daemon only. */
#ifndef DAEMON_COMMON_COUNTERS_H
#define DAEMON_COMMON_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include "core/learn/histogram.h"
#include "core/queue/job.h"

struct change;
struct err;
struct store;

/* Why an attempt was followed by another one. */
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

/* Tasks of arrays count one by one, arrays themselves do not. */
struct tally_jobs {
    uint64_t submitted;
    uint64_t started;            /* attempts */
    uint64_t ended[JOB_STATES];  /* jobs, by final state */
    uint64_t outcomes[OUTCOMES]; /* attempts */
    uint64_t again[AGAINS];
    struct histogram waits; /* until the first start */
    struct histogram runs;  /* of attempts */
};

struct tally_user {
    uint32_t uid;
    int64_t gpu_ms;  /* of attempts that have ended: run time, once for each card */
    int64_t more_ms; /* counters.c's: what this turn adds */
};

/* Of this daemon. */
struct tally_times {
    struct histogram plans, commits, rounds;
    uint64_t commits_failed;
    int64_t commit_us, committed_us; /* the newest: how long, and when (boot clock) */
    int64_t slow_us, slow_at_us;     /* the slowest lately */
    char error[200];                 /* of the newest commit; "" when it succeeded */
};

struct tally *tally_new(void);
void tally_free(struct tally *t);
int tally_load(struct tally *t, struct store *store, struct err *e);

/* Reads of the changes that tasks have ended without ever leaving their array. */
void tally_read(struct tally *t, const struct change *x);

/* Within the transaction: counts what these jobs' marks say. Then, once it is committed. */
void tally_write(struct tally *t, struct store *store, struct job *const *jobs, size_t n);
void tally_written(struct tally *t);

void tally_plan(struct tally *t, int64_t us);
void tally_round(struct tally *t, int64_t us); /* of the loop (pace.h) */
void tally_commit(struct tally *t, int64_t us, const struct err *failed); /* NULL: it did not */

const struct tally_jobs *tally_jobs(const struct tally *t);
const struct tally_times *tally_times(const struct tally *t);
const struct tally_user *tally_users(const struct tally *t, size_t *n);

#endif
