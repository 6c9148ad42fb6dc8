/* What a turn needs of its process, in virtual time. */
#ifndef TESTS_DAEMON_VIRTUAL_HOST_H
#define TESTS_DAEMON_VIRTUAL_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/turn/turn.h"

struct virtual_host {
    const int64_t *now_us;
    int64_t at_us[TURN_TIMERS]; /* 0: not set */
    int n_saved, n_failed;      /* turns */
    int n_upkeeps;
    int upkeep_left; /* so many more find that there is more to do */
};

/* h: borrowed for as long as the turn lives. */
struct turn_host virtual_host_of(struct virtual_host *h);

/* Whether a turn is due. */
bool virtual_is_due(const struct virtual_host *h);
/* What is over by now, the oldest first; what that sets goes for the next call. Turns are for
 * the caller to run. */
void virtual_fire(struct virtual_host *h, struct turn *t);

#endif
