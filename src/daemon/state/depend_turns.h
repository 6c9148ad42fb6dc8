/* Dependencies in the daemon: resolves the names and ids in a request to jobs, and releases or
 * cancels dependents when a job ends. core/queue/deps.h keeps the table. */
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

/* Replaces the names in a request by ids, and checks that all ids exist. ERR_REFUSED names
 * what does not exist. */
int depend_resolve(struct state *s, uid_t uid, struct request *r, struct err *e);

/* Refuses a request whose dependencies can never be met. */
int depend_check(struct state *s, const struct request *r, struct err *e);

/* True if the job or task that the (resolved) dependency names has ended, in any state. */
bool depend_has_ended(struct state *s, const struct dep *dep);

/* True if neither the table nor the store knows this job. */
bool depend_is_gone(struct state *s, uint32_t id);

/* Resets the dependencies of an ended job that runs again: it waits again even for those
 * already met. A dependency on a job that has been forgotten counts as met, as it does for
 * jobs that wait when the daemon restarts. */
void depend_renew(struct state *s, struct request *r);

/* Makes dep refer to this job of a jobs-file line. state is the job's: if the job itself has
 * been forgotten, nothing else is known of it. */
void depend_on_line(struct state *s, struct dep *dep, uint32_t id, enum job_state state);

/* A job in the table starts to wait for what its (resolved) request names. A job that can
 * never run, or would wait for itself, is CANCELLED at once: false then, with the reason
 * appended to why (may be NULL). */
bool depend_enter(struct state *s, struct job *job, struct buf *why);

/* The job's name or its singleton option has changed. If it would wait for itself now, it is
 * CANCELLED as by depend_enter. */
bool depend_renamed(struct state *s, struct job *job, struct buf *why);

/* A task leaves a waiting array and waits for the same jobs. */
void depend_join(struct state *s, struct job *task);

/* The job no longer waits for anything. */
void depend_leave(struct state *s, struct job *job);

/* The job has ended: each job that waits for it is released or CANCELLED, and so on down
 * the chain. */
void depend_ended(struct state *s, const struct job *job);

/* Call after a restart, when all jobs are in the table. */
void depend_recover(struct state *s);

#endif
