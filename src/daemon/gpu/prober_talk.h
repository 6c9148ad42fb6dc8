/* The connection to one probe process: starts the process, exchanges lines, kills it. */
#ifndef DAEMON_GPU_PROBER_TALK_H
#define DAEMON_GPU_PROBER_TALK_H

#include <stddef.h>

struct cards;
struct err;
struct talk;

struct talk_events {
    void (*on_line)(void *arg, struct talk *t, const char *line, size_t n);
    void (*on_end)(void *arg, struct talk *t); /* the probe died, or closed its end */
};

/* Starts a probe, of simulated GPUs if sim_spec is set. NULL with e. */
struct talk *talk_start(struct cards *cards, char *sim_spec, const struct talk_events *events,
                        void *arg, struct err *e);
/* Kills the probe and reports no more lines from it. It is not waited for: a probe stuck in
 * the driver dies when the driver call returns. NULL is fine. Returns its pidfd, which the
 * caller owns; -1: none. */
int talk_end(struct talk *t);
/* The probe may have died already; then on_end follows. */
void talk_say(struct talk *t, const char *line, size_t n);

#endif
