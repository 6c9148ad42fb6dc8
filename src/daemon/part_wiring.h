/* What one part of the daemon has done by another: each asks through a few functions that it
 * describes itself, and which lead to the other here. So the parts do not know one another. */
#ifndef DAEMON_PART_WIRING_H
#define DAEMON_PART_WIRING_H

struct cards_host;
struct courier_host;
struct daemon;

/* The courier has its processes started by the code for attempts. */
struct courier_host courier_host_of(struct daemon *d);
/* Whose process uses a GPU is known there, too. */
struct cards_host cards_host_of(struct daemon *d);

#endif
