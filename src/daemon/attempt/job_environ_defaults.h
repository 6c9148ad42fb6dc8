/* Variables that a job gets unless its user has set them. */
#ifndef DAEMON_ATTEMPT_JOB_ENVIRON_DEFAULTS_H
#define DAEMON_ATTEMPT_JOB_ENVIRON_DEFAULTS_H

#include <stdbool.h>

struct instance;
struct buf;
struct job;

/* Appends the defaults that suit job->run and are not in theirs (the submitter's environment),
 * and BERTH_DEFAULTS, which lists them. No-op if theirs has BERTH_DEFAULTS=off. Both buffers
 * hold "K=V", each terminated by a NUL. */
void environ_add_defaults(const struct instance *inst, const struct job *job,
                          const struct buf *theirs, struct buf *out);

/* True if this "K=V" of theirs is a default that Berth had set for the job from which this job
 * was submitted: the value belongs to that job. */
bool environ_was_default(const struct buf *theirs, const char *var);

#endif
