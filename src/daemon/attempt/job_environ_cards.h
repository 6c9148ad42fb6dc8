/* The variables that name a job's GPUs to the libraries of their vendors, and hide all other
 * GPUs from it. */
#ifndef DAEMON_ATTEMPT_JOB_ENVIRON_CARDS_H
#define DAEMON_ATTEMPT_JOB_ENVIRON_CARDS_H

#include <stdbool.h>

struct attempts;
struct buf;
struct instance;
struct job;

/* Those of job->run. */
void environ_put_cards(const struct attempts *a, const struct job *job, struct buf *out);

/* For what has no GPU and is no job: a hook. */
void environ_put_no_cards(const struct attempts *a, struct buf *out);

/* Whether the submitter's variable ("K=V") would hide cards of this machine in a way of its
 * own, and none of ours replaces it. */
bool environ_hides_cards(const struct instance *inst, const char *var);

#endif
