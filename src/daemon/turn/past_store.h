/* The state's `struct past`, backed by the store. */
#ifndef DAEMON_TURN_PAST_STORE_H
#define DAEMON_TURN_PAST_STORE_H

#include "daemon/state/state.h"

struct store;

struct past past_of_store(struct store *s);

#endif
