/* The removal of what a killed podman may have left of a job's container. */
#ifndef SHEPHERD_BEGIN_CONTAINER_REMOVAL_H
#define SHEPHERD_BEGIN_CONTAINER_REMOVAL_H

#include <sys/types.h>

struct groups;
struct spec;

/* Starts it, as the job's user and in the attempt's groups, and returns at once. The pid of a
 * child that ends when it is done and whose KILL ends it; -1: there is nothing to remove, or
 * nothing can. */
pid_t container_start_removal(const struct spec *spec, const struct groups *groups);

#endif
