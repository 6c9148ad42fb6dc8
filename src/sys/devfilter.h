/* Which GPUs a job can open at all: a small program of the kernel's own machine, attached to
 * the job's cgroup v2 group. It takes rights that root has, and a v2 tree, but no
 * controllers. */
#ifndef SYS_DEVFILTER_H
#define SYS_DEVFILTER_H

#include <stddef.h>
#include <stdint.h>

struct err;

struct devfilter {
    const int32_t *minors; /* N of /dev/nvidiaN: of NVIDIA's cards these only */
    size_t n_minors;
    const int32_t *denied; /* N of /dev/dri/cardN and renderDN: all but these */
    size_t n_denied;
    int32_t mig_major; /* of /dev/nvidia-caps; 0: it is not filtered */
    const int32_t
        *mig_minors; /* N of nvidia-capN: of those that open MIG instances only these */
    size_t n_mig_minors;
};

/* Lets the processes in the group (and below) open those GPUs only, every other device as
 * before. AMD's /dev/kfd is one for all its cards, and asks the same filter about each of them.
 * For the life of the group. 0 or -1. */
int devfilter_attach(int cgroup_fd, const struct devfilter *filter, struct err *e);

/* Whether that can be had below this group; tried, and nothing stays of it. 0, or -1 with the
 * reason. */
int devfilter_try(const char *cgroup, struct err *e);

#endif
