/* All processes of a user's control daemon, whichever process is their parent by now. */
#ifndef SHEPHERD_MPS_MPS_LEFT_H
#define SHEPHERD_MPS_MPS_LEFT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shepherd/common/groups.h"

/* By what they are known; beside our own descendants. Borrowed. */
struct mps_left {
    const struct groups *groups;
    const char *mark; /* in their environment; counts only for processes of the user */
    int64_t uid;
    pid_t pid; /* of the control daemon, and when that began; 0: not known */
    uint64_t ticks;
};

/* One pass of KILL over them; `pass` counts from 0. True: it has found none. */
bool mps_left_kill(const struct mps_left *left, unsigned pass);

#endif
