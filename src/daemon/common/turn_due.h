/* Requests a turn, for all parts of the daemon. */
#ifndef DAEMON_COMMON_TURN_DUE_H
#define DAEMON_COMMON_TURN_DUE_H

#include <stdint.h>

struct instance;
struct err;

/* Something has happened: requests a turn with a plan, at the end of this loop iteration. */
void turn_touch(struct instance *inst);
/* The same without a plan, for when nothing that it depends on has changed: a client only
 * waits for an answer, or has disconnected. This saves a plan over many kinds of request. */
void turn_touch_unplanned(struct instance *inst);
/* Requests a plan that continues with the lines after those that the last one examined:
 * nothing that a plan depends on has changed. */
void turn_touch_unchanged(struct instance *inst);

/* Has the next plans report again why jobs wait (which is not stored), for the jobs of this
 * file; 0: for all. */
void turn_retell_waiting(struct instance *inst, uint32_t file);

/* The error of our state's disk while nothing can be written to it; new work is then refused
 * before it changes anything. NULL: none. */
const struct err *turn_disk_trouble(const struct instance *inst);

#endif
