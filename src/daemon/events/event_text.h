/* The words of the event stream: what a change of a job looks like there (docs/protocol.md). */
#ifndef DAEMON_EVENTS_EVENT_TEXT_H
#define DAEMON_EVENTS_EVENT_TEXT_H

struct change;
struct instance;

/* Reads each change, and writes the event that it makes, if it makes one. */
void event_read(struct instance *inst, struct change *x);

#endif
