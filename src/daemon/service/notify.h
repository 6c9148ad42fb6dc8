/* Tells the service manager that the daemon is ready, alive or exiting (sd_notify(3)). */
#ifndef DAEMON_SERVICE_NOTIFY_H
#define DAEMON_SERVICE_NOTIFY_H

struct instance;
struct notify;

/* Reads NOTIFY_SOCKET and WATCHDOG_USEC and unsets them, because they are for this process
 * alone. NULL: no service manager listens; all functions here accept that. */
struct notify *notify_new(void);
void notify_free(struct notify *n);

/* The socket listens. From now on the loop feeds the watchdog, if one is configured: its
 * purpose is to detect a loop that hangs. */
void notify_ready(struct notify *n, struct instance *inst);
void notify_leaving(struct notify *n);

#endif
