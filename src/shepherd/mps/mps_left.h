/* Finds all processes of a user's control daemon, whatever their current parent. */
#ifndef SHEPHERD_MPS_MPS_LEFT_H
#define SHEPHERD_MPS_MPS_LEFT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shepherd/common/groups.h"

/* How to recognise them, besides our own descendants. Borrowed. */
struct mps_left {
    const struct groups *groups;
    const char *mark; /* in their environment; counts only for the user's own processes */
    int64_t uid;
    pid_t pid; /* pid and start time of the control daemon; 0: not known */
    uint64_t ticks;
};

/* One pass of KILL over them; `pass` counts from 0. True: none was found. */
bool mps_left_kill(const struct mps_left *left, unsigned pass);

#endif
