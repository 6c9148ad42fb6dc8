/* Messages from a supervisor to the connected daemons (docs/protocol.md section 4): one JSON
 * line per event. */
#ifndef SHEPHERD_ATTEMPT_DAEMON_LINK_H
#define SHEPHERD_ATTEMPT_DAEMON_LINK_H

#include <stdbool.h>

struct attach_guest;
struct buf;
struct shepherd;

/* The first message on a connection: which attempt this is, and how it ended if it has. */
void say_greeting(const struct shepherd *a, struct buf *out);

/* Sent on all connections: */
void say_started(struct shepherd *a); /* includes `hello`: this is the first message */
void say_warned(struct shepherd *a);
void say_screen(struct shepherd *a);
void say_ended(struct shepherd *a);
/* A client has attached or left; false if no daemon got the message, or the job is over. */
bool say_attached(struct shepherd *a, const struct attach_guest *who, bool came);

#endif
