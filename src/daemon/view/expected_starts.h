/* When pending jobs are expected to start, for display: the planner's own forecast, cached so
 * that queries cost only a small part of the daemon's time. */
#ifndef DAEMON_VIEW_EXPECTED_STARTS_H
#define DAEMON_VIEW_EXPECTED_STARTS_H

#include <stdint.h>

struct job;
struct views;

/* Wall clock; 0: unknown, or too many jobs start earlier to compute it. */
int64_t forecast_start_us(struct views *views, const struct job *job);
/* The time (wall clock) of the current forecast; 0: none was requested yet. A long queue takes
 * a while to compute, in slices; meanwhile the previous forecast is used. */
int64_t forecast_as_of_us(const struct views *views);
/* Call before the planning rules change: drops the forecast being computed with the old
 * ones. */
void forecast_forget(struct views *views);
void forecast_free(struct views *views); /* needs one more round of the loop */

#endif
