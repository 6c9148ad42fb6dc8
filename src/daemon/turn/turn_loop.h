/* A turn in libuv's loop: it is run at the end of a round in which it became due, its timers
 * are timers of the loop, and the kernel says when the clock is set, which makes a turn. */
#ifndef DAEMON_TURN_TURN_LOOP_H
#define DAEMON_TURN_TURN_LOOP_H

#include <stdint.h>
#include <uv.h>

#include "daemon/turn/turn.h"

struct turn_loop *turn_loop_new(uv_loop_t *loop);
void turn_loop_close(struct turn_loop *l); /* its handles; free after the loop has run */
void turn_loop_free(struct turn_loop *l);

/* From now on it runs this turn. Once. */
void turn_loop_run(struct turn_loop *l, struct turn *t);

/* For a struct turn_host. */
void turn_loop_set_timer(struct turn_loop *l, enum turn_timer which, int64_t ms);
void turn_loop_stop_timer(struct turn_loop *l, enum turn_timer which);

#endif
