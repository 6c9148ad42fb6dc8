/* The groups of an attempt, or of a hook: what the daemon asked for, and what came to be. */
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
    const char *path;            /* in the v2 tree; NULL: none. Strings belong to the JSON */
    const char *v1[CGROUP_V1_N]; /* the same of v1 controllers */
    struct cgroup_limits limits;
    int32_t minors[GPU_MAX]; /* of the cards that may be opened, when others are out of reach */
    int32_t n_minors;        /* -1: any may be */
    int32_t denied[2 * GPU_MAX]; /* minor numbers in /dev/dri that may not be opened then */
    int32_t n_denied;
    int32_t mig_major; /* of /dev/nvidia-caps; 0: any there may be opened */
    int32_t mig_minors[2 * GPU_MAX];
    int32_t n_mig_minors;
    struct cap_wish cap; /* set by its own call, lifted when they are removed */
};

/* Open while they are in use; -1 where there is none. */
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

/* Makes them. What cannot be confined is not; but -1 when cards were to be out of reach, or if
 * there is a place for the group that bounds its memory, and it cannot be made there. */
int groups_make(const struct groups_wish *wish, struct groups *out, struct err *e);

/* Whether nothing may be executed outside of them, as they bound its memory or what it may
 * open. */
bool groups_must_hold(const struct groups_wish *wish);

/* Opens those that are there. */
void groups_open(const struct groups_wish *wish, struct groups *out);
void groups_close(struct groups *g);

/* Moves the calling process to where their limits hold and their KILL reaches it, also after an
 * earlier KILL. -1: it cannot be moved. Where there are no groups, nothing is done. */
int groups_enter_for_end(const struct groups *g);

/* Whether something lives in them that can be seen there. */
bool groups_are_populated(const struct groups *g);

/* KILL to all that lives in them; what forks meanwhile may be missed by old kernels: repeat. */
void groups_kill(const struct groups *g);

/* How often the kernel killed in them for want of memory; *own: for their own limit. */
int64_t groups_oom_kills(const struct groups *g, bool *own);

/* Removes them when they are empty. */
void groups_remove(const struct groups_wish *wish);

#endif
