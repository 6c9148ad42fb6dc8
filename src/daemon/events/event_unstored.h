/* Events for clients that follow now, which cannot be asked for later. */
#ifndef DAEMON_EVENTS_EVENT_UNSTORED_H
#define DAEMON_EVENTS_EVENT_UNSTORED_H

struct change;
struct daemon;
struct job;

/* Reads in the changes that a command has been executed, and reports as which process. */
void event_launched_read(struct daemon *d, const struct change *x);
/* Why a new job waits. */
void event_waiting(struct daemon *d, const struct job *job);

#endif
