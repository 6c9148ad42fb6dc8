/* Arrays: many tasks that differ in a number only. An array is one job in the queue however
 * many tasks it has; its head task leaves it as a job of its own when the plan starts it, or
 * when a person singles it out (holds, cancels, reprioritises one task). The array ends when
 * all its tasks have. Pure; the table of jobs is queue.c's. */
#ifndef CORE_QUEUE_ARRAY_H
#define CORE_QUEUE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/queue/job.h"

struct status_count {
    int32_t status, n;
};

/* The book-keeping of one array, job.tasks. */
struct tasks {
    struct task_set pending;       /* those that have not left */
    int32_t total;                 /* as submitted */
    int32_t live;                  /* have left and not ended */
    int32_t active;                /* of those, hold cards */
    int32_t ended[JOB_STATES];     /* by final state */
    struct status_count *statuses; /* owned; exit statuses of those that ended, but 0, the
                                      highest first */
    int n_statuses;
    size_t cap_statuses;
    uint32_t *live_ids; /* owned; the jobs that those in live are, in no order */
    size_t cap_live;
    int32_t returning; /* how many requests are having its ended tasks run again, not all of
                          which are back: it is not over. Not stored */
};

/* Makes the array's book-keeping from req.array: all its tasks are pending. */
void array_begin(struct job *array);
void array_free(struct tasks *t); /* job_free does it; NULL is fine */

int32_t array_n_pending(const struct job *array); /* how many have not left */

/* The lowest task that has not left; -1: none. */
int32_t array_next(const struct job *array);

/* The task leaves the array as a job of its own, PENDING (HELD, when the array is), with the
 * id given: same request and place in the order, no array. The caller owns it, adds it to the
 * queue, and refiles the array. Aborts when the task is not pending there. */
struct job *array_split(struct job *array, int32_t task, uint32_t id);

/* A task of the array went from one state to another (from JOB_PENDING when it left; to a
 * final state with its exit status; from there to JOB_PENDING when it is requeued, with the
 * status that it had). The
 * array's own PARK_ARRAY_LIMIT follows; the caller refiles it. */
void array_note(struct job *array, const struct job *task, enum job_state from,
                enum job_state to, int exit_status);

/* After a restart: a task that has not ended was found in the store. */
void array_adopt(struct job *array, const struct job *task);

/* Takes back a split whose start was not committed: the task is pending in the array again,
 * and its job is the caller's to free. */
void array_unsplit(struct job *array, const struct job *task);

/* Whether as many tasks are active as are allowed. */
bool array_is_full(const struct job *array);

/* A task that waits in its own name is parked while its array is full. True when that has
 * changed: the caller refiles it. */
bool array_park_task(const struct job *array, struct job *task);

/* All that has not left ends in this state (job.c: a cancelled array, an infeasible one). */
void array_drop(struct job *array, enum job_state final);

/* The highest exit status of those that have ended. */
int32_t array_exit_status(const struct tasks *t);
/* So many more tasks (n < 0: fewer) have ended with this exit status. */
void array_count_status(struct tasks *t, int32_t status, int32_t n);
void array_take_statuses(struct tasks *t, struct tasks *from); /* from has none then */
/* That of tasks which never left, and ended in this state with the array. */
int32_t array_dropped_status(enum job_state final);

/* Whether nothing of it is pending or live; then *out is the state in which the array as a
 * whole has ended: COMPLETED when all tasks have, else the gravest of theirs. */
bool array_is_over(const struct job *array, enum job_state *out);

#endif
