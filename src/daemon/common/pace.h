/* Measures how long each iteration of the loop takes between two polls for events. Every
 * client waits for that long, so the durations are counted, and iterations over 50 ms are
 * logged with the work that took most of their CPU time, which other processes do
 * not affect. */
#ifndef DAEMON_COMMON_PACE_H
#define DAEMON_COMMON_PACE_H

#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

struct pace;
struct tally;

#define PACE_SLOW_US INT64_C(50000)
#define PACE_REST    "rest" /* reading, writing, timers: reported when other work begins */

/* tally: counts the iterations. Borrowed, as is the loop. */
struct pace *pace_new(uv_loop_t *loop, struct tally *tally);
/* next: called at the start of each iteration from now on. */
void pace_start(struct pace *p, void (*next)(void *arg), void *arg);
void pace_close(struct pace *p); /* its handle, which the loop must close before pace_free */
void pace_free(struct pace *p);

/* The CPU time since the last call, or since the start of the iteration, was spent on what: a
 * static string, the name of a method or of a part of the turn. uid: the user it was for;
 * UINT32_MAX: none. */
void pace_spent(struct pace *p, const char *what, uid_t uid);

#endif
