/* When jobs that wait are expected to start, for users who look: the planner's own look ahead,
 * kept for a moment so that looking costs a small part of the daemon's time. */
#ifndef DAEMON_VIEW_EXPECTED_STARTS_H
#define DAEMON_VIEW_EXPECTED_STARTS_H

#include <stdint.h>

struct job;
struct views;

/* Wall clock; 0: unknown, or too many start before it to compute. */
int64_t forecast_start_us(struct views *views, const struct job *job);
/* The moment (wall clock) from which that was foretold; 0: not asked for yet. A long queue
 * takes a while to look through, in pieces: meanwhile the last forecast stands. */
int64_t forecast_as_of_us(const struct views *views);
/* The rules of planning are about to change: what is being made with the old ones goes. */
void forecast_forget(struct views *views);
void forecast_free(struct views *views); /* while the loop still runs once more */

#endif
