/* What a commit that was refused takes back of jobs that are stored. For starts.c. */
#ifndef DAEMON_STATE_TAKE_BACK_H
#define DAEMON_STATE_TAKE_BACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/state/starts.h"

/* One that had ended and was to run again (SAVE_BACK) leaves the table as it is stored; gone
 * (may be NULL) is called with that. False: it cannot be read, and is still to run again. */
bool take_back_requeue(struct state *s, struct job *job, starts_job_fn gone, void *arg);

/* The request of one that would wait for any of these, which have left the table (sorted), is
 * that which is stored. */
void take_back_request(struct state *s, struct job *job, const uint32_t *ids, size_t n);

#endif
