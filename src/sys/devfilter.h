/* Which GPUs a job can open at all: a small program of the kernel's own machine, attached to
 * the job's cgroup v2 group. It takes rights that root has, and a v2 tree, but no
 * controllers. */
#ifndef SYS_DEVFILTER_H
#define SYS_DEVFILTER_H

#include <stddef.h>
#include <stdint.h>

struct err;

/* Of NVIDIA's cards, lets the processes in the group (and below) open only those with these
 * minor numbers (N of /dev/nvidiaN); every other device as before. For the life of the group.
 * 0 or -1. */
int devfilter_attach(int cgroup_fd, const int32_t *minors, size_t n, struct err *e);

/* Whether that can be had below this group; tried, and nothing stays of it. 0, or -1 with the
 * reason. */
int devfilter_try(const char *cgroup, struct err *e);

#endif
