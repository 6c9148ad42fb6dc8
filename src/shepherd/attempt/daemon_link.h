/* What a shepherd says to the daemons that listen (docs/protocol.md section 4): one line of
 * JSON for each event. */
#ifndef SHEPHERD_ATTEMPT_DAEMON_LINK_H
#define SHEPHERD_ATTEMPT_DAEMON_LINK_H

#include <stdbool.h>

struct attach_guest;
struct buf;
struct shepherd;

/* The first message of a connection: which attempt this is, and how it ended if it has. */
void say_greeting(const struct shepherd *a, struct buf *out);

/* To all connections. */
void say_started(struct shepherd *a); /* with `hello`: these are the first words */
void say_warned(struct shepherd *a);
void say_screen(struct shepherd *a);
void say_ended(struct shepherd *a);
/* A client has attached, or left; false when no daemon got the message, or the job is over. */
bool say_attached(struct shepherd *a, const struct attach_guest *who, bool came);

#endif
