/* The admission of requests into the queue of a daemon_world.h. */
#ifndef TESTS_DAEMON_DAEMON_DOOR_H
#define TESTS_DAEMON_DAEMON_DOOR_H

#include "daemon/request/admit.h"
#include "daemon/request/budget.h"
#include "daemon_world.h"
#include "spec/config.h"

struct door {
    struct world *w;
    struct config config;
    struct budget budget;
    struct admission a;
};

struct door *door_open(int n_cards); /* as for a daemon that serves all users of the machine */
void door_close(struct door *d);
/* Kills the daemon and starts another one from what is on disk. */
void door_crash(struct door *d);

#endif
