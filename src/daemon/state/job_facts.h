/* Everything that can happen to a job. Applies the fact to the core, and books and notes what
 * follows from the old and new state. All state changes of jobs go through here. */
#ifndef DAEMON_STATE_JOB_FACTS_H
#define DAEMON_STATE_JOB_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/queue/job.h"

struct state;
struct err;

/* Adds a new job to the table, which takes ownership. env and cwd must be set; id and order
 * are assigned if missing. A job that can never run here becomes INFEASIBLE at once, with the
 * reason in *why (may be NULL; the caller frees). Dependencies take effect only
 * with depend_enter. */
void jobs_add(struct state *s, struct job *job, char **why);

/* The job can never start here. text: the reason. */
void jobs_infeasible(struct state *s, struct job *job, const char *text);

/* Reports from the job's supervisor. */
bool jobs_attempt_started(struct state *s, struct job *job, int64_t at_us);
void jobs_attempt_ended(struct state *s, struct job *job, const struct ending *ending);

/* Ends COMPLETING once the VRAM is free again (force: without waiting for that any longer).
 * False: still waiting. */
bool jobs_check_clear(struct state *s, struct job *job, bool force);

/* Requests by users. by: who or what asked, for the record. -1 with e if the state does not
 * allow it. */
int jobs_cancel(struct state *s, struct job *job, const char *by);
/* Call before jobs_cancel: grace between TERM and KILL for this stop; -1 leaves it as it is.
 * Later runs use their own grace again. */
void jobs_set_stop_grace(struct state *s, struct job *job, int64_t grace_ms);
int jobs_hold(struct state *s, struct job *job, struct err *e);
int jobs_release(struct state *s, struct job *job, struct err *e);
int jobs_set_priority(struct state *s, struct job *job, int32_t priority, struct err *e);
/* The same for an array without the tasks that have left it: there may be 100,000, so the
 * caller visits those one by one. Hold and release return 1 if all tasks have left, or if the
 * rest is not held; e then has the message for the case that no task could be held or
 * released either. */
int jobs_cancel_alone(struct state *s, struct job *array, const char *by);
int jobs_hold_alone(struct state *s, struct job *array, struct err *e);
int jobs_release_alone(struct state *s, struct job *array, struct err *e);
int jobs_set_priority_alone(struct state *s, struct job *array, int32_t priority,
                            struct err *e);

/* Requeues a job: an active one is stopped and runs again, one that has ended waits again
 * (method_requeue.c has put it back into the table). hold: an active job is held after
 * its stop. */
int jobs_requeue(struct state *s, struct job *job, const char *by, bool hold, struct err *e);

/* The plan wants the job's GPUs for another job. */
void jobs_preempt(struct state *s, struct job *job, uint32_t for_job);

/* CANCELS a job that will never run: a dependency failed, or it duplicates a unique job. text:
 * the reason. */
void jobs_never(struct state *s, struct job *job, const char *text);

/* All tasks of the array have ended. */
void jobs_array_over(struct state *s, struct job *array);

/* The job's end is committed: removes it from the table. */
void jobs_retire(struct state *s, struct job *job);

/* Adds a job as the previous daemon stored it. Call in ascending order of ids. An active job
 * may still run or may have ended. Call depend_recover and arrays_recovered afterwards. */
void jobs_recover(struct state *s, struct job *job);

#endif
