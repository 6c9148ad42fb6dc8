/* That there is to be a turn: what every part of the daemon may say. */
#ifndef DAEMON_COMMON_TURN_DUE_H
#define DAEMON_COMMON_TURN_DUE_H

#include <stdint.h>

struct instance;
struct err;

/* Something happened: a turn is run at the end of this iteration of the loop. */
void turn_touch(struct instance *inst);
/* The same, where nothing has changed of what a plan depends on: a client only waits for an
 * answer, or has gone. A plan over many kinds of request is not made again for that. */
void turn_touch_unplanned(struct instance *inst);
/* A plan is to be made, but nothing has changed of what it depends on: it goes on with the
 * lines behind those at which the last one has looked. */
void turn_touch_unchanged(struct instance *inst);

/* Why jobs wait is not stored: the next plans write it again, for the jobs of this file; 0: of
 * all. */
void turn_retell_waiting(struct instance *inst, uint32_t file);

/* What is wrong with the disk of our state, while nothing can be written to it: new work is
 * refused before it changes anything. NULL: all is well. */
const struct err *turn_disk_trouble(const struct instance *inst);

#endif
