/* The limits of one user, and of all together. Plain values from the settings; 0 is no limit.
 * plan.c keeps the running ones, the daemon those on pending jobs and time limits. */
#ifndef CORE_PLAN_LIMITS_H
#define CORE_PLAN_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct limit {
    int32_t running;  /* jobs that hold something */
    int32_t gpus;     /* cards held; a card that is shared counts for each job that is on it */
    int64_t vram_mib; /* sum of what the jobs asked for; a whole card counts with its size */
    int64_t pending;
};

struct user_limit {
    uint32_t uid;
    struct limit limit;
};

struct limits {
    struct limit all;         /* all users together */
    struct limit each;        /* each user without a separate row */
    struct user_limit *users; /* owned by this struct's owner; by uid, ascending */
    size_t n_users;
    const uint32_t *barred; /* users whose jobs may not start now; borrowed, in no order */
    size_t n_barred;
};

const struct limit *limits_of(const struct limits *l, uint32_t uid);
bool limits_bar(const struct limits *l, uint32_t uid); /* whether nothing of the user starts */

#endif
