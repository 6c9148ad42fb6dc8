/* Variables that tell the GPU vendors' libraries which GPUs the job has, and hide
 * all others. */
#ifndef DAEMON_ATTEMPT_JOB_ENVIRON_CARDS_H
#define DAEMON_ATTEMPT_JOB_ENVIRON_CARDS_H

#include <stdbool.h>

struct attempts;
struct buf;
struct instance;
struct job;

/* Appends those for job->run. */
void environ_put_cards(const struct attempts *a, const struct job *job, struct buf *out);

/* The same for a process without a GPU: a hook. */
void environ_put_no_cards(const struct attempts *a, struct buf *out);

/* True if the submitter's variable ("K=V") would hide GPUs of this machine, and none of ours
 * replaces it. */
bool environ_hides_cards(const struct instance *inst, const char *var);

#endif
