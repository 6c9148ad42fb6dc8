/* Jobs in containers, as far as the daemon decides about them: which program runs them, and
 * which of the machine's devices they get. */
#ifndef DAEMON_ATTEMPT_JOB_CONTAINER_H
#define DAEMON_ATTEMPT_JOB_CONTAINER_H

#include <stdbool.h>

struct attempt;
struct buf;
struct err;
struct instance;
struct job;
struct jsonw;

/* Whether what it asks for can be had here: 0 for a job without a container, too. ERR_REFUSED:
 * no program runs containers, or the settings prevent it. */
int container_check(const struct instance *inst, const struct job *job, struct err *e);

/* Whether the job's programs see its own cards and no others, because of its container. */
bool container_hides_cards(const struct instance *inst, const struct job *job);

/* The key "container" of a spec; captured of its variables are the submitter's shell's. */
void container_write(const struct instance *inst, const struct job *job, int captured,
                     struct jsonw *w);

/* Options for `podman run` and `docker run`, with blanks between them, that hand the cards of
 * an attempt on and have the container's processes counted as the job's. */
void container_add_options(const struct instance *inst, const struct attempt *run,
                           struct buf *out);

#endif
