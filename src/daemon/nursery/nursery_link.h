/* The process that forks shepherds, as the daemon sees it. */
#ifndef DAEMON_NURSERY_NURSERY_LINK_H
#define DAEMON_NURSERY_NURSERY_LINK_H

#include <stdbool.h>

struct confinement;
struct err;
struct nursery;

/* Starts it, in a unit of its own where there is a service manager, and waits until it is
 * there. instance: what groups of jobs are named after, at least eight hex digits. unit: the
 * template of a system unit to start it in; NULL: a scope is asked for, and without one it is
 * our child. */
struct nursery *nursery_new(const char *instance, const char *unit, struct err *e);

/* What can be enforced on jobs where it is; changes when a nursery is replaced. Borrowed. */
const struct confinement *nursery_place(const struct nursery *n);
/* It does not answer: wakes it up, should it have been stopped. */
void nursery_wake(struct nursery *n);
/* Starts another in its place; what the old one had not forked never ran. Not where it is the
 * main process of a unit, with which jobs would go: -1 then. */
int nursery_replace(struct nursery *n, struct err *e);
bool nursery_is_alive(const struct nursery *n); /* as far as its end of the line says */
void nursery_free(struct nursery *n); /* closes the conversation, on which it leaves */

/* Has a process of the kind (sys/nursery_packets.h) forked with these descriptors, which stay
 * the caller's. A nursery that has died is replaced; where that fails it fails at once for a
 * while, since each try may take seconds. 0 means that the packet was taken; whether the
 * process lives is seen by its connection. */
int nursery_ask(struct nursery *n, char kind, int ctl, int lock, int folder, struct err *e);
/* Has a supervisor forked that waits for NURSERY_GO. Never waits and replaces nothing. False:
 * the nursery did not take the packet, or is of a version that knows none such. */
bool nursery_ask_ahead(struct nursery *n, int ctl, int lock, int folder);
/* nursery_ask with a new socket pair as ctl, whose other end is returned. -1. */
int nursery_call(struct nursery *n, char kind, int lock, int folder, struct err *e);

#endif
