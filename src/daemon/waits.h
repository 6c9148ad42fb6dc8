/* Clients that wait for jobs to end. */
#ifndef DAEMON_WAITS_H
#define DAEMON_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct client;
struct daemon;
struct job;
struct ticket;

/* A task that has not left its array: who waits for it changes nothing about it. */
struct waited_task {
    uint32_t array;
    int32_t task;
    bool ended;
};

/* Whom somebody waits for. */
struct waited {
    uint32_t *ids;
    struct waited_task *tasks;
    size_t n_ids, cap_ids, n_tasks, cap_tasks;
};

void waited_add(struct waited *w, uint32_t id);
void waited_add_task(struct waited *w, uint32_t array, int32_t task);
void waited_free(struct waited *w);

struct waits *waits_new(void);
void waits_free(struct waits *w);

/* Answers the ticket when all these live jobs and tasks have ended. done: the objects of those
 * that had ended already, as JSON text without brackets ("" for none). Takes the ticket and
 * what is in whom. */
void waits_add(struct daemon *d, struct ticket *t, struct waited *whom, const char *done);

/* The job has ended, and that is durable. */
void waits_job_ended(struct daemon *d, const struct job *job);
void waits_drop_client(struct waits *w, const struct client *client);

/* {"id","state","exit_status"}: one job of an answer. */
void waits_write(struct buf *out, const struct job *job);

#endif
