/* Events for those who follow now, which nobody can ask for later. */
#ifndef DAEMON_TURN_EVENT_UNSTORED_H
#define DAEMON_TURN_EVENT_UNSTORED_H

struct change;
struct daemon;
struct job;

/* Reads of the changes that a command has been executed, and tells as which process. */
void event_launched_read(struct daemon *d, const struct change *x);
/* Why a new job waits. */
void event_waiting(struct daemon *d, const struct job *job);

#endif
