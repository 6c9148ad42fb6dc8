/* Shared by supervisor_watch.c and supervisor_hear.c. */
#ifndef DAEMON_ATTEMPT_SUPERVISOR_WATCH_PRIV_H
#define DAEMON_ATTEMPT_SUPERVISOR_WATCH_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uthash.h>
#include <uv.h>

struct attempts;
struct exitrec;
struct job;
struct peer_lines;
struct watcher;

struct watch {
    struct watcher *watcher;
    uint32_t job;
    int32_t attempt;
    pid_t shepherd;
    struct peer_lines *link; /* to the supervisor or sweeper; NULL: not connected */
    bool to_sweeper;
    bool ended;             /* the core has the outcome */
    bool warned;            /* followers have been sent the warning signal's event */
    bool swept;             /* nothing of it runs: swept, or from an earlier boot */
    bool rebooted;          /* from an earlier boot, so a missing mark proves nothing */
    bool folder_gone;       /* folder was removed: nothing tells whether it ran */
    int not_forked;         /* errno of the nursery's failed fork for this link; 0: none */
    int sweeps;             /* failed tries of sweepers and of reading the folder */
    int64_t linked_us;      /* boot clock: when the nursery got it; 0: by another daemon */
    int64_t sweep_us;       /* boot clock: next try; 0: nothing is due */
    int64_t young_until_us; /* boot clock: if unreachable, may be starting until then; 0: no */
    char *cap_group;        /* cgroup that caps its VRAM; NULL: none, or not looked up */
    int mps_fd;             /* to its MPS keeper, until the supervisor is there; -1: none */
    int64_t io_error_us;    /* boot clock: first I/O error of its folder; 0: none */
    UT_hash_handle hh;
};

struct watcher {
    struct attempts *attempts;
    struct watch *watches;
    uv_timer_t sweep_timer; /* for the earliest sweep_us */
};

/* The job of a watch; NULL if the attempt is no longer its current one. */
struct job *watch_job_of(const struct watcher *w, const struct watch *x);
/* Asks the supervisor to stop the job. why: NULL (cancelled), "preempt", "requeue"
 * or "exceed". */
void watch_say_stop(struct watch *x, const struct job *job, const char *why, const char *by);

/* The supervisor uses MPS, or never will: the keeper need not wait for it any longer. */
void watch_mps_arrived(struct watch *x);

/* The nursery could not fork the supervisor, so the attempt never ran. */
void watch_not_forked(struct watcher *w, struct watch *x, int errnum);
void watch_hear(struct watcher *w, struct watch *x, const char *line, size_t len);
/* Applies an exit record: the ending, and events that an earlier daemon may have missed. */
void watch_take_record(struct watcher *w, struct watch *x, struct job *job,
                       const struct exitrec *rec);

#endif
