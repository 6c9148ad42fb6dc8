/* How long the loop is held: all that one round of it does between two polls for events. Every
 * client waits for that long, so it is counted, and a round that took more than 50 ms is
 * logged with what took most of its CPU, which other processes do not change. */
#ifndef DAEMON_COMMON_PACE_H
#define DAEMON_COMMON_PACE_H

#include <stdint.h>
#include <sys/types.h>

struct daemon;

#define PACE_SLOW_US INT64_C(50000)
#define PACE_REST    "rest" /* reading, writing, timers: said where something else begins */

/* Before the loop runs for the first time. next: called when a round begins. */
void pace_start(struct daemon *d, void (*next)(struct daemon *));
void pace_close(struct daemon *d); /* its handle; it is free when the loop has run */

/* The CPU since the last call, or since this round began, was spent on that. what: static, a
 * method's name or a part of the turn; uid: its user, UINT32_MAX: none. */
void pace_spent(struct daemon *d, const char *what, uid_t uid);

#endif
