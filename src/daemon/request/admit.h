/* Limits on what may enter the queue: the number of pending jobs, per user and in all, and the
 * length of time limits. The planner limits what runs (core/plan/limits.h). */
#ifndef DAEMON_REQUEST_ADMIT_H
#define DAEMON_REQUEST_ADMIT_H

#include <stddef.h>
#include <stdint.h>

struct budget;
struct config;
struct err;
struct job;
struct request;
struct state;
struct store;
struct sync;

/* What the checks depend on; all borrowed. */
struct admission {
    struct state *state; /* pending jobs, and the limits */
    const struct config *config;
    const struct budget *budget;
    struct store *store;
    struct sync *syncs; /* jobs files being applied in pieces, in order of arrival; some of the
                         * jobs admitted for them are still to come (file_sync.h) */
};

/* Sets the default time limit if the request has none; refuses one above the maximum. */
int admit_time(const struct admission *a, struct request *r, struct err *e);

/* Fills in the settings' set-up commands, grace and OOM retries where the request leaves them
 * open. Call before the fingerprint is made, and before a line is compared with its job. */
void admit_unsaid(const struct admission *a, struct request *r);

/* Refuses n more pending jobs and tasks of this user if they exceed a limit. */
int admit_pending(const struct admission *a, uint32_t uid, int64_t n, struct err *e);
/* How many more pending jobs the user may have. */
int64_t admit_room(const struct admission *a, uint32_t uid);

/* Refuses this many more bytes of text in memory for the user's jobs if they exceed
 * the limit. */
int admit_text(const struct admission *a, uint32_t uid, int64_t bytes, struct err *e);
/* The same for an environment in addition to those that the user's jobs have. */
int admit_env(const struct admission *a, uint32_t uid, int64_t bytes, struct err *e);

/* Bytes that may be kept of one user's jobs files (store_kept_bytes); 0: unlimited. */
int64_t admit_kept_max(const struct admission *a);
/* Refuses more lines of the user's jobs files if too much is kept of them already. */
int admit_lines(const struct admission *a, uint32_t uid, struct err *e);

/* All checks but those on lines and environments, for the new jobs of one request; also checks
 * each job against the limits on GPUs and VRAM. */
int admit_jobs(const struct admission *a, uint32_t uid, struct job *const *jobs, size_t n,
               struct err *e);

#endif
