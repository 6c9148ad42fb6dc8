/* Connects the parts of the daemon. A part declares what it needs of other parts as a table of
 * functions; this file fills in the tables, so the parts do not depend on one another. */
#ifndef DAEMON_PART_WIRING_H
#define DAEMON_PART_WIRING_H

struct cards_host;
struct courier_host;
struct daemon;

/* The attempt code starts the courier's processes. */
struct courier_host courier_host_of(struct daemon *d);
/* The attempt code also knows which job a process on a GPU belongs to. */
struct cards_host cards_host_of(struct daemon *d);

#endif
