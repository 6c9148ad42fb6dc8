/* Clients that wait for jobs to end. */
#ifndef DAEMON_RPC_WAITERS_H
#define DAEMON_RPC_WAITERS_H

#include <stdbool.h>
#include <stdint.h>

struct change;
struct client;
struct job;
struct jsonw;
struct select;
struct queue;
struct ticket;

struct waits *waits_new(const struct queue *queue); /* queue: borrowed */
void waits_free(struct waits *w);

/* Opens a wait whose jobs are still being collected. From now on it records the ends of the
 * jobs added to it. A job that has ended and matches names is also added if it is requeued
 * before it was added as ended. names: borrowed until waits_begin. Follow with waits_begin or
 * waits_drop. */
struct wait *waits_open(struct waits *all, const struct select *names);
/* Adds a job that has not ended. */
void waits_add_job(struct wait *x, uint32_t id);
/* Adds a task that has not left its array; waiting does not make it a job of its own. */
void waits_add_task(struct wait *x, uint32_t array, int32_t task);
/* Adds a job from the history; no-op if it was added already. Call in ascending order of
 * ids. */
void waits_add_ended(struct wait *x, const struct job *job);
bool waits_is_empty(const struct wait *x); /* true if nothing was added */
/* Writes {"select":[words]}, where the words name what was added. */
void waits_write_meant(const struct wait *x, struct jsonw *out);
/* All jobs are added. Takes over the ticket and answers it once all of them have ended. */
void waits_begin(struct waits *all, struct wait *x, struct ticket *t);
void waits_drop(struct waits *all, struct wait *x); /* a wait not begun; NULL is fine */

/* Call once the job has ended and that is durable. */
void waits_job_ended(struct waits *all, const struct job *job);
/* Looks in the changes for ended jobs that have been requeued. */
void waits_read(struct waits *all, const struct change *change);
void waits_drop_client(struct waits *w, const struct client *client);

#endif
