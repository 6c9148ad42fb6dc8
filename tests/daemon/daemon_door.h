/* The way into the queue of a daemon_world.h: what requests are held against. */
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

struct door *door_open(int n_cards); /* of a daemon for all users of the machine */
void door_close(struct door *d);
/* The daemon is killed, and another one takes up what is on the disk. */
void door_crash(struct door *d);

#endif
