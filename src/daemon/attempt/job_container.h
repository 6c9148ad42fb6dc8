/* Jobs in containers: which program runs them, and which of the machine's devices they get. */
#ifndef DAEMON_ATTEMPT_JOB_CONTAINER_H
#define DAEMON_ATTEMPT_JOB_CONTAINER_H

#include <stdbool.h>

struct attempt;
struct buf;
struct err;
struct instance;
struct job;
struct jsonw;

/* 0 if the job's container can be run here, or it has none. ERR_REFUSED: no program runs
 * containers, or the settings forbid it. */
int container_check(const struct instance *inst, const struct job *job, struct err *e);

/* True if the job's container shows it only its own GPUs. */
bool container_hides_cards(const struct instance *inst, const struct job *job);

/* Writes the key "container" of a spec. captured: number of variables from the
 * submitter's shell. */
void container_write(const struct instance *inst, const struct job *job, int captured,
                     struct jsonw *w);

/* Appends options for `podman run` and `docker run`, separated by blanks, that pass on the
 * attempt's GPUs and have the container's processes counted as the job's. */
void container_add_options(const struct instance *inst, const struct attempt *run,
                           struct buf *out);

#endif
