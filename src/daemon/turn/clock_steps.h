/* The wall clock is set: what is counted from it goes on counting as if it had not been. */
#ifndef DAEMON_TURN_CLOCK_STEPS_H
#define DAEMON_TURN_CLOCK_STEPS_H

#include <stdint.h>

struct daemon;
struct clockset;

/* Has the kernel report when the clock is set, which makes a turn. */
struct clockset *clockset_new(struct daemon *d);
void clockset_close(struct clockset *c); /* free after the loop has run */
void clockset_free(struct clockset *c);

/* Before each plan: when the clock has been set since the last, patience, the time after which
 * a failed job is tried again, promised starts, and the age of what users have used are moved
 * along. Begin times that people named are not: those are on the clock. */
void clockset_follow(struct daemon *d);

/* How far the wall clock is from the boot clock: of what a daemon writes down, one that comes
 * after it in the same boot tells by this whether the clock has been set since. */
int64_t clockset_offset_us(const struct daemon *d);
/* It was this much then: promises and running jobs are moved along. */
void clockset_was(struct daemon *d, int64_t offset_us);

#endif
