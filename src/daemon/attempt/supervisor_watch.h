/* Watches every attempt without a settled outcome, and its connection to the supervisor.
 * Messages of a supervisor become job events; if a supervisor vanishes, its folder decides
 * the outcome. */
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
void watcher_close(struct watcher *w); /* drops all connections; the supervisors live on */
void watcher_free(struct watcher *w);

/* Watches job->run over a connected socket. Takes ownership of fd, also on failure. */
int watch_attempt(struct attempts *a, struct job *job, int fd, struct err *e);

/* For an attempt of an earlier daemon: connects to its supervisor if the lock is held; if it
 * is free, settles the attempt from its folder. */
void watch_recover(struct attempts *a, struct job *job);

/* The outcome is committed: the supervisor may forget it, and the folder is removed. */
void watch_settled(struct attempts *a, const struct job *job);

/* Keeps the descriptor of mps_begin (job_mps.h) and closes it in time. -1: none. */
void watch_hold_mps(struct attempts *a, uint32_t job, int fd);

/* Tells a waiting supervisor that the start is durable. 1: told. 0: there is no supervisor to
 * tell. -1: it cannot be told; the connection is shut down so that it exits, which is then
 * handled like any supervisor's end. */
int watch_say_go(struct attempts *a, uint32_t job);

/* The attempt was not launched after all. */
void watch_forget(struct attempts *a, uint32_t job);

/* True if some attempt's supervisor has sent nothing for this long since it was requested. */
bool watch_has_silent(const struct attempts *a, int64_t for_us);

/* True if an attempt from an earlier boot is not settled yet. */
bool watch_has_of_before(const struct attempts *a);

/* Number of attempts whose supervisor has died and whose remaining processes could not be
 * searched for yet, or whose folder could not be read. */
size_t watch_n_unswept(const struct attempts *a);

/* Reads changes that stop a job, and tells its supervisor. The request survives a reconnect,
 * because job->cancel_asked and job->requeue_asked keep it; a cancel overrides a requeue, even
 * a later one. */
void watch_read_change(struct attempts *a, const struct change *change);
/* The job uses more VRAM than it declared, and must be stopped. Not stored: a restarted daemon
 * measures it again. */
void watch_exceeded(struct attempts *a, const struct job *job);

/* Sends the signal to the job's processes. False: its supervisor cannot be reached now. */
bool watch_signal(struct attempts *a, const struct job *job, int sig);

/* Appends for the probe a line "group UUID GROUP" for each GPU of each capped running job. */
void watch_add_capped(const struct attempts *a, struct buf *out);

/* The job whose supervisor is this process; 0: none. Used to attribute GPU processes. */
uint32_t watch_job_of_shepherd(const struct attempts *a, pid_t pid);

#endif
