/* What the service manager wants to hear: ready, alive, leaving (sd_notify(3)). */
#ifndef DAEMON_SERVICE_NOTIFY_H
#define DAEMON_SERVICE_NOTIFY_H

struct instance;
struct notify;

/* Reads NOTIFY_SOCKET and WATCHDOG_USEC, and takes them out of the environment: they are for
 * this process alone. NULL where no service manager listens; every function here takes
 * that. */
struct notify *notify_new(void);
void notify_free(struct notify *n);

/* The socket listens. From now on the watchdog, where one is asked for, is fed by the loop:
 * a loop that no longer turns is what it is there to find. */
void notify_ready(struct notify *n, struct instance *inst);
void notify_leaving(struct notify *n);

#endif
