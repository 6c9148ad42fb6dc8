/* The wall clock is set: what is counted from it goes on counting as if it had not been. */
#ifndef DAEMON_TURN_CLOCK_STEPS_H
#define DAEMON_TURN_CLOCK_STEPS_H

#include <stdint.h>

struct state;

struct clock_steps {
    int64_t offset_us; /* of the wall clock from the boot clock, when last looked at */
    int64_t told_us;   /* the same when it was last found set, or as written down before */
};

void clocksteps_begin(struct clock_steps *c, const struct state *s);

/* At the beginning of each turn: when the clock has been set since the last, waits, patience,
 * the time after which a failed job is tried again, promised starts, and the age of what users
 * have used are moved along. Begin times that people named are not: those are on the clock. */
void clocksteps_follow(struct clock_steps *c, struct state *s);

/* How far the wall clock is from the boot clock: of what a daemon writes down, one that comes
 * after it in the same boot tells by this whether the clock has been set since. */
int64_t clocksteps_offset_us(const struct clock_steps *c);
/* It was this much then: promises, running jobs, waits and times of another try are moved
 * along. */
void clocksteps_was(struct clock_steps *c, struct state *s, int64_t offset_us);
/* After a restart: nothing waits longer to be tried again than the longest pause is. */
void clocksteps_bound_retries(struct state *s);

#endif
