/* The limits of one user, and of all users together: plain values from the settings; 0 is no
 * limit. plan.c enforces those on running jobs, the daemon those on pending jobs and time
 * limits. */
#ifndef CORE_PLAN_LIMITS_H
#define CORE_PLAN_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct limit {
    int32_t running;  /* jobs that hold resources */
    int32_t gpus;     /* GPUs held; a shared GPU counts for each job on it */
    int64_t vram_mib; /* sum of requested VRAM; a whole GPU counts with its size */
    int64_t pending;
};

struct user_limit {
    uint32_t uid;
    struct limit limit;
};

struct limits {
    struct limit all;         /* all users together */
    struct limit each;        /* each user without an entry in users */
    struct user_limit *users; /* owned by this struct's owner; sorted by uid */
    size_t n_users;
    const uint32_t *barred; /* users whose jobs may not start now; borrowed, unsorted */
    size_t n_barred;
};

const struct limit *limits_of(const struct limits *l, uint32_t uid);
bool limits_bar(const struct limits *l, uint32_t uid); /* true: no job of the user may start */

#endif
