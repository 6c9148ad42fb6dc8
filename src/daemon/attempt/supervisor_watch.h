/* Every attempt that has no settled outcome, and the connection to its shepherd. What a
 * shepherd says becomes job events; a shepherd that vanishes is settled from its folder. */
#ifndef DAEMON_ATTEMPT_SUPERVISOR_WATCH_H
#define DAEMON_ATTEMPT_SUPERVISOR_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct attempts;
struct buf;
struct change;
struct err;
struct job;

struct watcher *watcher_new(struct attempts *a);
void watcher_close(struct watcher *w); /* drops every connection; the shepherds live on */
void watcher_free(struct watcher *w);

/* Watches job->run over a connected socket, which it takes (also when it fails). */
int watch_attempt(struct attempts *a, struct job *job, int fd, struct err *e);

/* For an attempt of a daemon before this one: connects to its shepherd when the lock is
 * held; settles it from its folder when it is free. */
void watch_recover(struct attempts *a, struct job *job);

/* The outcome is committed: the shepherd may forget it, and the folder goes. */
void watch_settled(struct attempts *a, const struct job *job);

/* Keeps the descriptor of mps_begin (job_mps.h), and closes it when it is time. -1: none. */
void watch_hold_mps(struct attempts *a, uint32_t job, int fd);

/* Tells a supervisor that waits for it that the start is durable. 0: nobody is there to hear
 * it. -1: it cannot be told; the connection is ended, so that it leaves, and its end is then
 * seen as that of any supervisor. */
int watch_say_go(struct attempts *a, uint32_t job);

/* The attempt was not launched after all. */
void watch_forget(struct attempts *a, uint32_t job);

/* Whether an attempt's supervisor has not said a word for so long since it was asked for. */
bool watch_has_silent(const struct attempts *a, int64_t for_us);

/* Whether an attempt of a boot before this one is not settled yet. */
bool watch_has_of_before(const struct attempts *a);

/* Attempts whose supervisor has died and whose processes could not be looked for yet, or whose
 * folder could not be read. */
size_t watch_n_unswept(const struct attempts *a);

/* Reads in the changes that a job is to be stopped, and has its shepherd stop it. That is
 * remembered, and sent again when it reconnects, because job->cancel_asked and
 * job->requeue_asked are; a cancel beats the latter, if it comes later too. */
void watch_read_change(struct attempts *a, const struct change *change);
/* It used more than it declared and may not. A daemon that is started again measures that
 * again. */
void watch_exceeded(struct attempts *a, const struct job *job);

/* Sends the signal to its processes. False: its supervisor cannot be reached now. */
bool watch_signal(struct attempts *a, const struct job *job, int sig);

/* For the probe: a line "group UUID GROUP" for each card of each job that runs under a cap. */
void watch_add_capped(const struct attempts *a, struct buf *out);

/* The job whose supervisor is this process, 0: none. For attributing GPU processes. */
uint32_t watch_job_of_shepherd(const struct attempts *a, pid_t pid);

#endif
