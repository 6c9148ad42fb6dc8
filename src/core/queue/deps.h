/* Dependencies. For each job that others wait for, the table lists its dependents, so an end
 * costs time proportional to their number. Reports come in, and released or failed jobs are
 * called back; the caller changes their state. */
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

/* Enters the job's unmet dependencies: every dep of its request whose job has not ended. Sets
 * deps_unmet and PARK_DEPENDENCY; the caller refiles. has_ended: whether a job (with task >=
 * 0: an array's task) has ended, and its final state. False, with a sentence in why, if a dep
 * on an ended job can never be met. */
typedef bool (*deps_has_ended)(void *arg, uint32_t job, int32_t task, enum job_state *out);
bool deps_enter(struct deps *d, struct job *job, deps_has_ended has_ended, void *arg,
                struct buf *why);

/* Whether the request's dependencies can still be met; else a sentence in why. */
bool deps_possible(const struct request *r, deps_has_ended has_ended, void *arg,
                   struct buf *why);

/* Removes the job as a dependent (it was cancelled, or it ended). */
void deps_leave(struct deps *d, struct job *job);

/* A job (or the task of an array) has ended in this state. Calls back for every dependent.
 * met: the callee calls deps_met, and refiles if that returns true. Not met: the dependency
 * can never be met, and why is a sentence ("dependency: job 12 ended FAILED"). The callback
 * may end or refile the dependent, which may lead to further calls here. */
typedef void (*deps_on_dependent)(void *arg, uint32_t dependent, bool met, const char *why);
void deps_ended(struct deps *d, uint32_t job, uint32_t array, int32_t task,
                enum job_state state, deps_on_dependent cb, void *arg);

/* One of the job's dependencies is met. True if it was the last: PARK_DEPENDENCY is
 * cleared. */
bool deps_met(struct job *job);

/* Whether the job, which is in this queue, would wait for itself through other jobs. A
 * singleton waits for earlier submitted jobs of its name (singles.h). */
struct circle {
    uint32_t over; /* a job that it would wait for, and that waits for it */
    bool single;   /* part of the circle is a singleton's wait */
};
bool deps_is_circular(const struct deps *d, const struct queue *q, const struct job *job,
                      struct circle *out);

#endif
