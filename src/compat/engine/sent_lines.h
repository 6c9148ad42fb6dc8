/* The lines of a front end's file and the jobs that the daemon makes of them. They are sent as
 * a whole, in the file's order, whenever they have changed, and found again after a restart on
 * either side. What a line asks for, and what becomes of it in words and files, is the front
 * end's (struct compat_front). */
#ifndef COMPAT_ENGINE_SENT_LINES_H
#define COMPAT_ENGINE_SENT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct compat_session;
struct err;

struct compat_line {
    const char *key; /* its identity, under 64 bytes */
    int number;
    void *job;         /* the front end's; borrowed */
    int64_t *id;       /* in it: the daemon's number, 0 while there is none (compat_bind) */
    bool again;        /* once more, if it has ended */
    const char *state; /* as the daemon last answered, of static life; NULL: not sent */
    bool refused;      /* ended by the last answer: it can never run */
};

/* Lines for which the limits of the daemon leave no room in its queue stay outside, with no
 * state, until there is some: WOKE_ROOM says when to send them again, compat_full why.
 *
 * The queue becomes these lines (or has them behind what it has: is_part) in this order, with
 * this process's folder, umask and environment; from the first time on the events of their
 * jobs come. */
int compat_sync(struct compat_session *s, struct compat_line *lines, size_t n, struct err *e);
/* That and nothing more: no events are taken, and nothing is found. */
int compat_send(struct compat_session *s, struct compat_line *lines, size_t n, struct err *e);
/* What has ended is as if it had never been; what waits or runs goes on. */
int compat_forget(struct compat_session *s, struct err *e);
/* None of them waits any more. On a full disk they do, but start no more than without them. */
int compat_clear(struct compat_session *s, struct err *e);
/* What the daemon knows of these lines from before, which changes nothing there: known is
 * called for each that it has, then adopt for those that run or have ended. */
int compat_recall(struct compat_session *s, struct compat_line *lines, size_t n, struct err *e);
/* From now on events are heard. The others see to it by themselves. */
int compat_listen(struct compat_session *s, struct err *e);

#endif
