/* Events for those who follow now, which nobody can ask for later. */
#ifndef DAEMON_TURN_EVENT_UNSTORED_H
#define DAEMON_TURN_EVENT_UNSTORED_H

#include <stdint.h>

struct daemon;
struct job;

/* Its command has been executed, and as which process. */
void event_launched(struct daemon *d, const struct job *job, int64_t at_us);
/* Why a new job waits. */
void event_waiting(struct daemon *d, const struct job *job);

#endif
