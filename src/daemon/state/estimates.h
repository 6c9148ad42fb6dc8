/* Expected run time of each job, from earlier runs of the same command. Updated when jobs
 * enter the table and when a job completes. */
#ifndef DAEMON_STATE_ESTIMATES_H
#define DAEMON_STATE_ESTIMATES_H

#include <stdbool.h>

struct state;
struct job;

/* The job enters the table (its fingerprint is set), or leaves it. */
void estimate_enter(struct state *s, struct job *job);
void estimate_leave(struct state *s, struct job *job);

/* The job's request has changed. The caller refiles the job. */
void estimate_refresh(struct state *s, struct job *job);

/* The job has completed: estimates_follow then updates the pending jobs with the
 * same command. */
void estimate_completed(struct state *s, struct job *job);

/* Updates a bounded number of jobs. Call once per turn, before the plan. True: more are left
 * for the next turn. */
bool estimates_follow(struct state *s);

#endif
