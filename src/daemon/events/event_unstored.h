/* Events that are only sent to current followers and not stored. */
#ifndef DAEMON_EVENTS_EVENT_UNSTORED_H
#define DAEMON_EVENTS_EVENT_UNSTORED_H

struct change;
struct job;
struct queue;
struct server;
struct views;

/* Reads changes: reports the process of a command that was executed. */
void event_launched_read(struct server *server, const struct queue *queue,
                         const struct change *x);
/* Reports why a new job waits. */
void event_waiting(struct server *server, struct views *views, const struct job *job);

#endif
