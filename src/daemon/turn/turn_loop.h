/* Runs the turn in libuv's loop: at the end of each iteration in which a turn is due. The
 * turn's timers are timers of the loop. The kernel reports when the clock is set, which
 * requests a turn. */
#ifndef DAEMON_TURN_TURN_LOOP_H
#define DAEMON_TURN_TURN_LOOP_H

#include <stdint.h>
#include <uv.h>

#include "daemon/turn/turn.h"

struct turn_loop *turn_loop_new(uv_loop_t *loop);
void turn_loop_close(struct turn_loop *l); /* closes handles; free after the loop has run */
void turn_loop_free(struct turn_loop *l);

/* Sets the turn to run. Call once. */
void turn_loop_run(struct turn_loop *l, struct turn *t);

/* Implement struct turn_host. */
void turn_loop_set_timer(struct turn_loop *l, enum turn_timer which, int64_t ms);
void turn_loop_stop_timer(struct turn_loop *l, enum turn_timer which);

#endif
