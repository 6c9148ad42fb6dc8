/* The groups of an attempt or a hook: what the daemon asked for, and what was made. */
#ifndef SHEPHERD_COMMON_GROUPS_H
#define SHEPHERD_COMMON_GROUPS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/request.h" /* GPU_MAX */
#include "shepherd/common/vram_cap.h"
#include "sys/cgroup.h"
#include "sys/cgroup_v1.h"

struct err;

struct groups_wish {
    const char *path;            /* in the v2 tree; NULL: none. The JSON owns the strings */
    const char *v1[CGROUP_V1_N]; /* the same for v1 controllers */
    struct cgroup_limits limits;
    int32_t minors[GPU_MAX];     /* GPUs that may be opened, if others are blocked */
    int32_t n_minors;            /* -1: any may be opened */
    int32_t denied[2 * GPU_MAX]; /* minors in /dev/dri that are blocked */
    int32_t n_denied;
    int32_t mig_major; /* of /dev/nvidia-caps; 0: not filtered */
    int32_t mig_minors[2 * GPU_MAX];
    int32_t n_mig_minors;
    struct cap_wish cap; /* set separately; lifted with the groups */
};

/* Open descriptors of the groups; -1: none. */
struct groups {
    int fd;
    int v1_fds[CGROUP_V1_N];
};
#define GROUPS_NONE                                                                            \
    {                                                                                          \
        -1,                                                                                    \
        {                                                                                      \
            -1, -1, -1                                                                         \
        }                                                                                      \
    }
#define auto_groups __attribute__((cleanup(groups_close)))

/* The keys "cgroup", "cgroup_memory", ..., "minors" of a spec or an order. */
int groups_read(const json_t *from, struct groups_wish *out, struct err *e);

/* Makes the groups. Best effort, but -1 if GPUs were to be blocked and cannot be, or if the
 * group that bounds its memory has a place and cannot be made there. */
int groups_make(const struct groups_wish *wish, struct groups *out, struct err *e);

/* True if nothing may run outside the groups, because they bound memory or block devices. */
bool groups_must_hold(const struct groups_wish *wish);

/* Opens the groups that exist. */
void groups_open(const struct groups_wish *wish, struct groups *out);
void groups_close(struct groups *g);

/* Moves the calling process where the groups' limits apply and their KILL reaches it, even
 * after an earlier KILL. -1: it cannot be moved. No-op without groups. */
int groups_enter_for_end(const struct groups *g);

/* True if a living process is visible in the groups. */
bool groups_are_populated(const struct groups *g);

/* KILLs everything in the groups. Old kernels may miss processes forked meanwhile: repeat. */
void groups_kill(const struct groups *g);

/* Number of OOM kills in the groups; *own: caused by their own limit. */
int64_t groups_oom_kills(const struct groups *g, bool *own);

/* Removes the groups if they are empty. */
void groups_remove(const struct groups_wish *wish);

#endif
