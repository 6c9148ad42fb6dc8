/* The lines of a front end's file and their jobs in the daemon. The lines are sent as a whole,
 * in file order, whenever they change, and are matched to their jobs again after either side
 * restarts. The front end decides what a line requests and how results are reported (struct
 * compat_front). */
#ifndef COMPAT_ENGINE_SENT_LINES_H
#define COMPAT_ENGINE_SENT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct compat_session;
struct err;

struct compat_line {
    const char *key; /* the line's identity, under 64 bytes */
    int number;
    void *job;         /* the front end's job; borrowed */
    int64_t *id;       /* field of job with the daemon's id; 0: none (compat_bind) */
    bool again;        /* run it once more if it has ended */
    const char *state; /* the daemon's last answer, a static string; NULL: not sent */
    bool refused;      /* ended by the last answer because it can never run */
};

/* Make the queue these lines, in this order (with is_part: after its present ones), with this
 * process's folder, umask and environment. From the first call on, events of their jobs
 * arrive.
 * Lines beyond the daemon's queue limits are left out, with state NULL, until there is room:
 * WOKE_ROOM says when to send them again, compat_full why. */
int compat_sync(struct compat_session *s, struct compat_line *lines, size_t n, struct err *e);
/* Only send: take no events and call neither found nor adopt. */
int compat_send(struct compat_session *s, struct compat_line *lines, size_t n, struct err *e);
/* Forget ended jobs, so that their lines count as new; pending and running jobs continue. */
int compat_forget(struct compat_session *s, struct err *e);
/* Remove all pending jobs. On a full disk they remain, but none starts before space is
 * free. */
int compat_clear(struct compat_session *s, struct err *e);
/* Look up these lines' earlier jobs, without changing the daemon: calls known for each job it
 * has, then adopt for the running and ended ones. */
int compat_recall(struct compat_session *s, struct compat_line *lines, size_t n, struct err *e);
/* Follow events from now on. The other functions do this themselves. */
int compat_listen(struct compat_session *s, struct err *e);

#endif
