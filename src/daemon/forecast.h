/* When jobs that wait are expected to start, for people who look: the planner's own look ahead,
 * kept for a moment so that looking costs a small part of the daemon's time. */
#ifndef DAEMON_FORECAST_H
#define DAEMON_FORECAST_H

#include <stdint.h>

struct daemon;
struct job;

/* Wall clock; 0: nothing says when, or so many start before it that nobody looked. */
int64_t forecast_start_us(struct daemon *d, const struct job *job);
void forecast_free(struct daemon *d);

#endif
