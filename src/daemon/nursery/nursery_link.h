/* The daemon's end of the nursery, the process that forks supervisors. */
#ifndef DAEMON_NURSERY_NURSERY_LINK_H
#define DAEMON_NURSERY_NURSERY_LINK_H

#include <stdbool.h>

struct confinement;
struct err;
struct nursery;

/* Starts it and waits until it is ready. instance: prefix for the jobs' cgroups, at least
 * eight hex digits. unit: template of a system unit to start it in; NULL: a scope is
 * requested, and without one it becomes our child. */
struct nursery *nursery_new(const char *instance, const char *unit, struct err *e);

/* What can be enforced on jobs there; changes when the nursery is replaced. Borrowed. */
const struct confinement *nursery_place(const struct nursery *n);
/* The nursery does not answer: continues it, in case it was stopped. */
void nursery_wake(struct nursery *n);
/* Starts a replacement; requests that the old nursery had not forked have never run. -1 if it
 * is the main process of a unit, because jobs would end with that. */
int nursery_replace(struct nursery *n, struct err *e);
bool nursery_is_alive(const struct nursery *n); /* judged by its end of the connection */
void nursery_free(struct nursery *n);           /* closes the connection, upon which it exits */

/* Has a process of this kind (sys/nursery_packets.h) forked with these descriptors, which stay
 * the caller's. A dead nursery is replaced; after a failed replacement, calls fail at once for
 * a while, because each try may take seconds. 0: the packet was accepted; only its connection
 * shows whether the process lives. */
int nursery_ask(struct nursery *n, char kind, int ctl, int lock, int folder, struct err *e);
/* Has a supervisor forked that waits for NURSERY_GO. Does not block or replace the nursery.
 * False: the nursery did not accept the packet, or its version does not support it. */
bool nursery_ask_ahead(struct nursery *n, int ctl, int lock, int folder);
/* Calls nursery_ask with one end of a new socket pair as ctl, and returns the other end; -1
 * with e. */
int nursery_call(struct nursery *n, char kind, int lock, int folder, struct err *e);

#endif
