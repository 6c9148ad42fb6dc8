/* What happens to a job: the fact is applied to the core, and what follows from (old state, new
 * state) is booked and noted as changes. Every way in which a job can change goes through
 * here. */
#ifndef DAEMON_STATE_JOB_FACTS_H
#define DAEMON_STATE_JOB_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/queue/job.h"

struct state;
struct err;

/* A new job enters the table (which owns it from now on). With an env and cwd already set; id
 * and order are given here where there are none. If it can never run here it is INFEASIBLE at
 * once, and *why (may be NULL, else owned by the caller) says so. It waits for others only
 * after depend_enter. */
void jobs_add(struct state *s, struct job *job, char **why);

/* It can never start here: text says why. */
void jobs_infeasible(struct state *s, struct job *job, const char *text);

/* Its shepherd reports. */
bool jobs_attempt_started(struct state *s, struct job *job, int64_t at_us);
void jobs_attempt_ended(struct state *s, struct job *job, const struct ending *ending);

/* COMPLETING ends when the VRAM is back (or force: when the wait for that is over). False: it
 * goes on. */
bool jobs_check_clear(struct state *s, struct job *job, bool force);

/* People. by: a name for the record. -1 with e when the state does not allow it. */
int jobs_cancel(struct state *s, struct job *job, const char *by);
/* Before jobs_cancel: so long this stop leaves between TERM and KILL; -1: as before. Later runs
 * have their own again. */
void jobs_set_stop_grace(struct state *s, struct job *job, int64_t grace_ms);
int jobs_hold(struct state *s, struct job *job, struct err *e);
int jobs_release(struct state *s, struct job *job, struct err *e);
int jobs_set_priority(struct state *s, struct job *job, int32_t priority, struct err *e);
/* The same of an array without the tasks that have left it, which its caller goes through one
 * by one: there may be 100,000. Holding and releasing: 1 where all have left, or what has
 * not is not held, with what is to be said when none of them can be. */
int jobs_cancel_alone(struct state *s, struct job *array, const char *by);
int jobs_hold_alone(struct state *s, struct job *array, struct err *e);
int jobs_release_alone(struct state *s, struct job *array, struct err *e);
int jobs_set_priority_alone(struct state *s, struct job *array, int32_t priority,
                            struct err *e);

/* One that is active is stopped and runs again; one that has ended waits again (it is in the
 * table by now: method_requeue.c). hold: an active one waits on hold then. */
int jobs_requeue(struct state *s, struct job *job, const char *by, bool hold, struct err *e);

/* The plan wants its room for another job. */
void jobs_preempt(struct state *s, struct job *job, uint32_t for_job);

/* What it waits for has ended otherwise, or it is a second one of what is unique (text says
 * so): it is CANCELLED and never runs. */
void jobs_never(struct state *s, struct job *job, const char *text);

/* All tasks of an array have ended. */
void jobs_array_over(struct state *s, struct job *array);

/* Its end is committed: it leaves the table. */
void jobs_retire(struct state *s, struct job *job);

/* As a daemon before this one has stored it, in ascending order of ids: one that was active may
 * be so still, or have ended. depend_recover and arrays_recovered follow. */
void jobs_recover(struct state *s, struct job *job);

#endif
