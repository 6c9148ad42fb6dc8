/* Events of what others than the state have seen happen. */
#ifndef DAEMON_COMMON_EVENT_SAY_H
#define DAEMON_COMMON_EVENT_SAY_H

#include <stdbool.h>
#include <stdint.h>

struct change;
struct daemon;
struct job;
struct jsonw;

/* Begins an event of the stream (docs/protocol.md); add the kind's own fields to the writer
 * that comes back, then end it. It is stored and published with the commit. job NULL: the
 * machine's. */
struct jsonw *turn_event(struct daemon *d, const char *kind, const struct job *job);
void turn_event_end(struct daemon *d);

/* It was sent its warning signal, so long before its limit. */
void event_warned(struct daemon *d, const struct job *job);
/* A user sent it a signal. */
void event_signalled(struct daemon *d, const struct job *job, int sig, const char *by);
/* A client has attached to it, or left. */
void event_attached(struct daemon *d, const struct job *job, bool came, uint32_t uid,
                    bool types);

/* Begins the event of this change, with what every event says. */
struct jsonw *event_begin(struct daemon *d, struct change *x, const char *kind,
                          const struct job *job);

#endif
