/* Arrays: many tasks that differ only in a number. An array is one job in the queue, however
 * many tasks it has. A task is split off as a job of its own when the plan starts it, or when
 * a person singles it out (holds, cancels or reprioritises it). The array ends when all its
 * tasks have ended. Pure; the table of jobs is queue.c's. */
#ifndef CORE_QUEUE_ARRAY_H
#define CORE_QUEUE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/queue/job.h"

struct status_count {
    int32_t status, n;
};

/* The state of one array, job.tasks. */
struct tasks {
    struct task_set pending;       /* not split off */
    int32_t total;                 /* as submitted */
    int32_t live;                  /* split off and not ended */
    int32_t active;                /* of those, the ones that hold resources */
    int32_t ended[JOB_STATES];     /* by final state */
    struct status_count *statuses; /* owned; exit statuses of ended tasks, except 0, the
                                      highest first */
    int n_statuses;
    size_t cap_statuses;
    uint32_t *live_ids; /* owned; ids of the live tasks' jobs, unordered */
    size_t cap_live;
    int32_t returning; /* requests that are still bringing ended tasks back, so the array is
                          not over. Not stored */
};

/* Makes the array's state from req.array: all its tasks are pending. */
void array_begin(struct job *array);
void array_free(struct tasks *t); /* called by job_free; NULL is fine */

int32_t array_n_pending(const struct job *array); /* tasks not split off */

/* The lowest task that is not split off; -1: none. */
int32_t array_next(const struct job *array);

/* Splits the task off as a job with this id, PENDING (or HELD, if the array is): same request
 * and place in the order, no array. The caller owns it, adds it to the queue, and refiles the
 * array. Aborts if the task is not pending in the array. */
struct job *array_split(struct job *array, int32_t task, uint32_t id);

/* Records a task's change of state: from JOB_PENDING when it was split off; to a final state,
 * with its exit status; from there to JOB_PENDING, with that same status, when it is requeued.
 * Updates the array's own PARK_ARRAY_LIMIT; the caller refiles the array. */
void array_note(struct job *array, const struct job *task, enum job_state from,
                enum job_state to, int exit_status);

/* After a restart: adds a task from the store that has not ended. */
void array_adopt(struct job *array, const struct job *task);

/* Undoes a split whose start was not committed: the task is pending in the array again, and
 * the caller frees its job. */
void array_unsplit(struct job *array, const struct job *task);

/* Whether as many tasks are active as allowed. */
bool array_is_full(const struct job *array);

/* Parks a split-off task that waits while its array is full, or unparks it. True if that
 * changed: the caller refiles it. */
bool array_park_task(const struct job *array, struct job *task);

/* Ends all tasks that are not split off in this state (job.c: array cancelled or
 * infeasible). */
void array_drop(struct job *array, enum job_state final);

/* The highest exit status of ended tasks. */
int32_t array_exit_status(const struct tasks *t);
/* Counts n more ended tasks with this exit status (n < 0: fewer). */
void array_count_status(struct tasks *t, int32_t status, int32_t n);
void array_take_statuses(struct tasks *t, struct tasks *from); /* leaves `from` without any */
/* The exit status of tasks that were never split off and ended in this state with the
 * array. */
int32_t array_dropped_status(enum job_state final);

/* Whether no task is pending or live. If so, *out is the final state of the array as a whole:
 * COMPLETED if all tasks completed, else the gravest of their states. */
bool array_is_over(const struct job *array, enum job_state *out);

#endif
