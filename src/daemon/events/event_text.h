/* The text of the event stream: how changes of jobs appear there (docs/protocol.md). */
#ifndef DAEMON_EVENTS_EVENT_TEXT_H
#define DAEMON_EVENTS_EVENT_TEXT_H

struct change;
struct instance;

/* Reads a change and writes the event for it, if there is one. */
void event_read(struct instance *inst, struct change *x);

#endif
