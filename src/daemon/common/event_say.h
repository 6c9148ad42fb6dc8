/* Events of what others than the state have seen happen. */
#ifndef DAEMON_COMMON_EVENT_SAY_H
#define DAEMON_COMMON_EVENT_SAY_H

#include <stdbool.h>
#include <stdint.h>

struct change;
struct instance;
struct job;
struct jsonw;

/* Begins an event of the stream (docs/protocol.md); add the kind's own fields to the writer
 * that comes back, then end it. It is stored and published with the commit. job NULL: the
 * machine's. */
struct jsonw *turn_event(struct instance *inst, const char *kind, const struct job *job);
void turn_event_end(struct instance *inst);

/* It was sent its warning signal, so long before its limit. */
void event_warned(struct instance *inst, const struct job *job);
/* A user sent it a signal. */
void event_signalled(struct instance *inst, const struct job *job, int sig, const char *by);
/* A client has attached to it, or left. */
void event_attached(struct instance *inst, const struct job *job, bool came, uint32_t uid,
                    bool types);

/* Begins the event of this change, with what every event says. */
struct jsonw *event_begin(struct instance *inst, struct change *x, const char *kind,
                          const struct job *job);

#endif
