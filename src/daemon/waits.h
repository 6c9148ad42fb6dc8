/* Clients that wait for jobs to end. */
#ifndef DAEMON_WAITS_H
#define DAEMON_WAITS_H

#include <stdint.h>

struct client;
struct daemon;
struct job;
struct ticket;

struct waits *waits_new(void);
void waits_free(struct waits *w);

/* Answers the ticket when all these live jobs have ended. done: the objects of those that
 * had ended already, as JSON text without brackets ("" for none). Takes ticket and ids. */
void waits_add(struct daemon *d, struct ticket *t, uint32_t *ids, int n, const char *done);

void waits_job_ended(struct daemon *d, const struct job *job);
void waits_drop_client(struct waits *w, const struct client *client);

/* {"id","state","exit_status"}: one job of an answer. */
struct buf;
void waits_write(struct buf *out, const struct job *job);

#endif
