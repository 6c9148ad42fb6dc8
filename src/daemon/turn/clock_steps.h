/* Handles steps of the wall clock: shifts stored times so that durations continue as if the
 * clock had not been set. */
#ifndef DAEMON_TURN_CLOCK_STEPS_H
#define DAEMON_TURN_CLOCK_STEPS_H

#include <stdint.h>

struct state;

struct clock_steps {
    int64_t offset_us; /* wall clock - boot clock, when last read */
    int64_t told_us;   /* the same at the last step found, or as stored before */
};

void clocksteps_begin(struct clock_steps *c, const struct state *s);

/* Call at the beginning of each turn. If the clock has been set since the last turn, shifts
 * waiting times, patience, retry times, promised starts and the age of users' usage. Begin
 * times given by users stay: they mean the wall clock. */
void clocksteps_follow(struct clock_steps *c, struct state *s);

/* wall clock - boot clock, to be stored: a later daemon in the same boot compares it with its
 * own value to see whether the clock has been set. */
int64_t clocksteps_offset_us(const struct clock_steps *c);
/* offset_us: the stored value. If the clock was set since, shifts promises, running jobs,
 * waiting times and retry times. */
void clocksteps_was(struct clock_steps *c, struct state *s, int64_t offset_us);
/* After a restart: no job waits longer for its retry than the longest backoff. */
void clocksteps_bound_retries(struct state *s);

#endif
