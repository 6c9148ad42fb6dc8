/* Takes back changes to stored jobs after a failed commit. For starts.c. */
#ifndef DAEMON_STATE_TAKE_BACK_H
#define DAEMON_STATE_TAKE_BACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/state/starts.h"

/* Takes back the requeue of an ended job (SAVE_BACK): the job leaves the table, ended as
 * stored. gone (may be NULL) is called with the stored job. False: the stored job cannot be
 * read or has not ended, or the task has already ended again; the job stays as it is. */
bool take_back_requeue(struct state *s, struct job *job, starts_job_fn gone, void *arg);

/* If the job waits for one of these ids (sorted), which have left the table, its stored
 * request is restored. */
void take_back_request(struct state *s, struct job *job, const uint32_t *ids, size_t n);

#endif
