/* The process services that a turn needs, in virtual time. */
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
    int upkeep_left; /* number of further upkeep calls that report more to do */
};

/* h: borrowed for the turn's lifetime. */
struct turn_host virtual_host_of(struct virtual_host *h);

/* True if a turn is due. */
bool virtual_is_due(const struct virtual_host *h);
/* Fires the timers that have expired, oldest first; timers set meanwhile wait for the next
 * call. Running turns is up to the caller. */
void virtual_fire(struct virtual_host *h, struct turn *t);

#endif
