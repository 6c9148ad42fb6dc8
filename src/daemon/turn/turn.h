/* One turn of the daemon: everything that arrived has been applied to the core; the plan is
 * made; one transaction makes it durable; only then clients are answered, followers get
 * events, jobs are launched and supervisors may forget. */
#ifndef DAEMON_TURN_TURN_H
#define DAEMON_TURN_TURN_H

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct err;
struct job;
struct jsonw;

/* after: called behind each turn. */
struct turn *turn_new(struct daemon *d, void (*after)(struct daemon *));
void turn_close(struct turn *t); /* closes its handles; free after the loop has run */
void turn_free(struct turn *t);

/* Runs a turn now, without waiting for the loop; for start-up. 0, or -1 when the store
 * refused (what was not saved stays marked). */
int turn_run(struct daemon *d);

#endif
