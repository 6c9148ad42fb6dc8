/* Restricts which GPUs a job can open: a BPF program attached to the job's cgroup v2 group.
 * Needs root's rights and a v2 tree, but no controllers. */
#ifndef SYS_DEVFILTER_H
#define SYS_DEVFILTER_H

#include <stddef.h>
#include <stdint.h>

struct err;

struct devfilter {
    const int32_t *minors; /* N of /dev/nvidiaN: the only NVIDIA GPUs allowed */
    size_t n_minors;
    const int32_t *denied; /* N of /dev/dri/cardN and renderDN that are denied */
    size_t n_denied;
    int32_t mig_major;         /* of /dev/nvidia-caps; 0: not filtered */
    const int32_t *mig_minors; /* N of nvidia-capN: the only MIG instances allowed */
    size_t n_mig_minors;
};

/* Allows processes in the group (and below) to open only those GPUs; other devices are not
 * affected. AMD's GPUs share one /dev/kfd, whose driver asks the same filter about each GPU.
 * Lasts as long as the group. 0 or -1. */
int devfilter_attach(int cgroup_fd, const struct devfilter *filter, struct err *e);

/* Tries whether a filter works below this group; leaves nothing behind. 0, or -1 with the
 * reason. */
int devfilter_try(const char *cgroup, struct err *e);

#endif
