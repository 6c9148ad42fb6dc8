/* The conversation with one probe process: lines to it and from it. It begins with a process
 * and ends with killing it. */
#ifndef DAEMON_GPU_PROBER_TALK_H
#define DAEMON_GPU_PROBER_TALK_H

#include <stddef.h>

struct cards;
struct err;
struct talk;

struct talk_events {
    void (*on_line)(void *arg, struct talk *t, const char *line, size_t n);
    void (*on_end)(void *arg, struct talk *t); /* it has died, or closed its end */
};

/* Starts a probe, of simulated cards with sim_spec. NULL with e. */
struct talk *talk_start(struct cards *cards, char *sim_spec, const struct talk_events *events,
                        void *arg, struct err *e);
/* Nothing comes from it any more. A probe stuck in the driver dies when the driver lets go of
 * it; it is not waited for. NULL is fine. Its pidfd, which is the caller's; -1: none. */
int talk_end(struct talk *t);
/* The reader may already be gone: then its end is reported. */
void talk_say(struct talk *t, const char *line, size_t n);

#endif
