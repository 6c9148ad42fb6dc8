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

struct waits *waits_new(const struct queue *queue); /* which is borrowed */
void waits_free(struct waits *w);

/* Begins with one whose jobs are yet to be found out. Of those that were added the ends are
 * noted from then on; and if one that has ended and is meant is run again before it was added,
 * it is waited for. names: borrowed until waits_begin. Then waits_begin, or waits_drop. */
struct wait *waits_open(struct waits *all, const struct select *names);
/* A job that has not ended. */
void waits_add_job(struct wait *x, uint32_t id);
/* A task that has not left its array: waiting for it changes nothing about it. */
void waits_add_task(struct wait *x, uint32_t array, int32_t task);
/* One of the history; nothing when it was added already. In ascending order of their ids. */
void waits_add_ended(struct wait *x, const struct job *job);
bool waits_is_empty(const struct wait *x); /* nothing was added */
/* {"select":[words]}: they mean what was added. */
void waits_write_meant(const struct wait *x, struct jsonw *out);
/* All are known: answers the ticket, which it takes, when all of them have ended. */
void waits_begin(struct waits *all, struct wait *x, struct ticket *t);
void waits_drop(struct waits *all, struct wait *x); /* one not begun; NULL is fine */

/* The job has ended, and that is durable. */
void waits_job_ended(struct waits *all, const struct job *job);
/* Reads of the changes that one that had ended waits again. */
void waits_read(struct waits *all, const struct change *change);
void waits_drop_client(struct waits *w, const struct client *client);

#endif
