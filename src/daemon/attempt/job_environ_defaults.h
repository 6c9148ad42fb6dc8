/* Variables that a job gets only where its user has not set them. */
#ifndef DAEMON_ATTEMPT_JOB_ENVIRON_DEFAULTS_H
#define DAEMON_ATTEMPT_JOB_ENVIRON_DEFAULTS_H

#include <stdbool.h>

struct instance;
struct buf;
struct job;

/* Appends the defaults that suit job->run and that theirs (the submitter's environment) lacks,
 * and BERTH_DEFAULTS, which lists them. Nothing when theirs has BERTH_DEFAULTS=off. Both
 * buffers hold "K=V", each with a NUL behind it. */
void environ_add_defaults(const struct instance *inst, const struct job *job,
                          const struct buf *theirs, struct buf *out);

/* Whether this "K=V" of theirs is a default that Berth gave the job from which this one was
 * submitted: its value belongs to that job. */
bool environ_was_default(const struct buf *theirs, const char *var);

#endif
