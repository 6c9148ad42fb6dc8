/* Dependencies. For each job that others wait for, the table lists those; so the cost of an
 * end is proportional to the number of dependents. Facts come in, and a list of the jobs that
 * are released or failed comes out; the caller changes their state. */
#ifndef CORE_QUEUE_DEPS_H
#define CORE_QUEUE_DEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/queue/job.h"

struct deps;
struct buf;
struct queue;

struct deps *deps_new(void);
void deps_free(struct deps *d); /* NULL is fine */

/* Enters what the job waits for: every dep of its request whose job has not ended. Sets
 * deps_unmet and PARK_DEPENDENCY; the caller refiles. has_ended returns the final state of a
 * job (of an array's task with task >= 0) that has ended; false: it has not. A dep on an ended
 * job that can never be met any more makes the result false, with words in why. */
typedef bool (*deps_has_ended)(void *arg, uint32_t job, int32_t task, enum job_state *out);
bool deps_enter(struct deps *d, struct job *job, deps_has_ended has_ended, void *arg,
                struct buf *why);

/* Whether what the request waits for can still be met; else words in why. */
bool deps_possible(const struct request *r, deps_has_ended has_ended, void *arg,
                   struct buf *why);

/* The job leaves the table as a dependent (it was cancelled, or it ended). */
void deps_leave(struct deps *d, struct job *job);

/* A job (or the task of an array) has ended in this state. Calls back for every dependent:
 * met: the callee calls deps_met, and refiles when that says so; failed: it can never be met,
 * why says so in words ("dependency: job 12 ended FAILED"). The callback may end or refile
 * the dependent, which may lead to further calls. */
typedef void (*deps_on_dependent)(void *arg, uint32_t dependent, bool met, const char *why);
void deps_ended(struct deps *d, uint32_t job, uint32_t array, int32_t task,
                enum job_state state, deps_on_dependent cb, void *arg);

/* One of the job's dependencies is met. True when it was the last: PARK_DEPENDENCY is gone. */
bool deps_met(struct job *job);

/* Whether waiting for these would close a circle: the job, which is in this queue, waits, over
 * others, for itself. A singleton waits for those of its name that were submitted earlier
 * (singles.h). */
struct circle {
    uint32_t over; /* the job that it is to wait for, and that waits for it */
    bool single;   /* some of them wait as singletons */
};
bool deps_is_circular(const struct deps *d, const struct queue *q, const struct job *job,
                      struct circle *out);

#endif
