/* Dependencies in the daemon: names and ids of a request against the jobs that are there, and
 * what an end means for the jobs that wait for it. The table is core/queue/deps.h's. */
#ifndef DAEMON_STATE_DEPEND_TURNS_H
#define DAEMON_STATE_DEPEND_TURNS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/queue/job.h"

struct buf;
struct state;
struct dep;
struct err;

struct depend *depend_new(void);
void depend_free(struct depend *x); /* NULL is fine */

/* Names of a request become ids, and ids must be there. ERR_REFUSED with what is not. */
int depend_resolve(struct state *s, uid_t uid, struct request *r, struct err *e);

/* Refuses a request whose dependencies can never be met any more. */
int depend_check(struct state *s, const struct request *r, struct err *e);

/* Whether what it names (resolved) has ended, in whatever way. */
bool depend_has_ended(struct state *s, const struct dep *dep);

/* Nothing is known of this job, or not any more. */
bool depend_is_gone(struct state *s, uint32_t id);

/* The job has ended and is to run again: it waits again for what has been met. What nothing is
 * known of any more counts as met, as it does for a job that waits when the daemon restarts. */
void depend_renew(struct state *s, struct request *r);

/* It waits for this job of a line of a jobs file, which is in that state: all that is known of
 * it where the job itself is gone. */
void depend_on_line(struct state *s, struct dep *dep, uint32_t id, enum job_state state);

/* A job that is in the table begins to wait for what its (resolved) request names. One that
 * never can run is CANCELLED at once; so is one that would wait for itself. False then, with
 * words appended to why (may be NULL). */
bool depend_enter(struct state *s, struct job *job, struct buf *why);

/* Its name has changed, or whether it is a singleton: the same where it would wait for itself
 * now. */
bool depend_renamed(struct state *s, struct job *job, struct buf *why);

/* A task that leaves an array which waits: it waits for the same. */
void depend_join(struct state *s, struct job *task);

/* It waits for nothing any more; no end need release it. */
void depend_leave(struct state *s, struct job *job);

/* It has ended: all jobs that wait for it are released or CANCELLED, and so on down the
 * chain. */
void depend_ended(struct state *s, const struct job *job);

/* After a restart, when all jobs are in the table. */
void depend_recover(struct state *s);

#endif
