/* How long the loop is held: all that one round of it does between two polls for events. Every
 * client waits for that long, so it is counted, and a round that took more than 50 ms is
 * logged with what took most of its CPU, which other processes do not change. */
#ifndef DAEMON_COMMON_PACE_H
#define DAEMON_COMMON_PACE_H

#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

struct pace;
struct tally;

#define PACE_SLOW_US INT64_C(50000)
#define PACE_REST    "rest" /* reading, writing, timers: said where something else begins */

/* tally: counts the rounds. Borrowed, as is the loop. */
struct pace *pace_new(uv_loop_t *loop, struct tally *tally);
/* next: called when a round begins, from now on. */
void pace_start(struct pace *p, void (*next)(void *arg), void *arg);
void
pace_close(struct pace *p); /* its handle, which the loop has to forget before the rest goes */
void pace_free(struct pace *p);

/* The CPU since the last call, or since this round began, was spent on that. what: static, a
 * method's name or a part of the turn; uid: its user, UINT32_MAX: none. */
void pace_spent(struct pace *p, const char *what, uid_t uid);

#endif
