/* Events about what other parts than the state have seen. */
#ifndef DAEMON_COMMON_EVENT_SAY_H
#define DAEMON_COMMON_EVENT_SAY_H

#include <stdbool.h>
#include <stdint.h>

struct change;
struct instance;
struct job;
struct jsonw;

/* Begins an event of the stream (docs/protocol.md). Add the kind's own fields to the returned
 * writer, then call turn_event_end. The event is stored and published with the commit. job
 * NULL: about the machine. */
struct jsonw *turn_event(struct instance *inst, const char *kind, const struct job *job);
void turn_event_end(struct instance *inst);

/* The job was sent its warning signal, warn_ms before its limit. */
void event_warned(struct instance *inst, const struct job *job);
/* A user sent the job a signal. */
void event_signalled(struct instance *inst, const struct job *job, int sig, const char *by);
/* A client has attached to the job, or left. */
void event_attached(struct instance *inst, const struct job *job, bool came, uint32_t uid,
                    bool types);

/* Begins the event of this change with the fields that every event has. */
struct jsonw *event_begin(struct instance *inst, struct change *x, const char *kind,
                          const struct job *job);

#endif
