/* What may enter the queue at all: how many may wait, of one user and of all, and how long a
 * time limit may be. What runs is the planner's affair (core/plan/limits.h). */
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

/* What it goes by; all of it is borrowed. */
struct admission {
    struct state *state; /* who waits, and the limits */
    const struct config *config;
    const struct budget *budget;
    struct store *store;
    struct sync *syncs; /* files that are taken in, in pieces, in the order in which they came:
                           of what has been let in some is still to come (file_sync.h) */
};

/* Gives it the default time limit when it has none; refuses one above the longest. */
int admit_time(const struct admission *a, struct request *r, struct err *e);

/* Gives it the settings' set-up, grace and retries after an OOM where it says nothing of them.
 * Before its fingerprint is made, and before a line is held against the job that it is. */
void admit_unsaid(const struct admission *a, struct request *r);

/* Whether n more jobs and tasks of this user may wait. */
int admit_pending(const struct admission *a, uint32_t uid, int64_t n, struct err *e);
/* How many more may. */
int64_t admit_room(const struct admission *a, uint32_t uid);

/* Whether this many more bytes of text may be kept in memory for this user's jobs. */
int admit_text(const struct admission *a, uint32_t uid, int64_t bytes, struct err *e);
/* The same of an environment that would come on top of those that the user's jobs have. */
int admit_env(const struct admission *a, uint32_t uid, int64_t bytes, struct err *e);

/* Bytes that may be kept of one user's jobs files (store_kept_bytes); 0: any number. */
int64_t admit_kept_max(const struct admission *a);
/* Whether more lines of this user's jobs files may come to be kept. */
int admit_lines(const struct admission *a, uint32_t uid, struct err *e);

/* All of it but lines and environments, for the new jobs of one request; and whether each alone
 * is within the limits on GPUs and VRAM. */
int admit_jobs(const struct admission *a, uint32_t uid, struct job *const *jobs, size_t n,
               struct err *e);

#endif
