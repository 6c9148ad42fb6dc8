/* Events for clients that follow now, which cannot be asked for later. */
#ifndef DAEMON_EVENTS_EVENT_UNSTORED_H
#define DAEMON_EVENTS_EVENT_UNSTORED_H

struct change;
struct job;
struct queue;
struct server;
struct views;

/* Reads in the changes that a command has been executed, and reports as which process. */
void event_launched_read(struct server *server, const struct queue *queue,
                         const struct change *x);
/* Why a new job waits. */
void event_waiting(struct server *server, struct views *views, const struct job *job);

#endif
