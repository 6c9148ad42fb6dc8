/* One turn of the daemon: everything that arrived has been applied to the core; the plan
 * is made; one transaction makes it durable; only then clients are answered, followers are
 * told, jobs are launched and supervisors may forget. */
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

/* Something happened: a turn is run at the end of this iteration of the loop. */
void turn_touch(struct daemon *d);
/* The same, where nothing has changed of what a plan depends on: somebody only waits for an
 * answer, or has gone. A plan over many kinds of request is not made again for that. */
void turn_touch_unplanned(struct daemon *d);
/* A plan is to be made, but nothing has changed of what it depends on: it goes on with the
 * lines behind those at which the last one has looked. */
void turn_touch_unchanged(struct daemon *d);

/* Why jobs wait is not stored: with the next plans it is told again, of the jobs of this file;
 * 0: of all. */
void turn_retell_waiting(struct daemon *d, uint32_t file);

/* Runs a turn now, without waiting for the loop; for start-up. 0, or -1 when the store
 * refused (what was not saved stays marked). */
int turn_run(struct daemon *d);

/* What is wrong with the disk of our state, while nothing can be written to it: new work is
 * refused before it changes anything. NULL: all is well. */
const struct err *turn_disk_trouble(const struct daemon *d);

#endif
