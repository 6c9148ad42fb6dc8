/* Removal of what a killed podman may have left of a job's container. */
#ifndef SHEPHERD_BEGIN_CONTAINER_REMOVAL_H
#define SHEPHERD_BEGIN_CONTAINER_REMOVAL_H

#include <sys/types.h>

struct groups;
struct spec;

/* Starts the removal as the job's user, in the attempt's groups, and returns at once. Returns
 * the pid of a child that exits when the removal is done and can be ended with KILL; -1: there
 * is nothing to remove, or it cannot be removed. */
pid_t container_start_removal(const struct spec *spec, const struct groups *groups);

#endif
