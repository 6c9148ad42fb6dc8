/* What supervisor_watch.c and supervisor_hear.c share. */
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
    struct peer_lines *link; /* to the shepherd, or its sweeper; NULL: not connected */
    bool to_sweeper;
    bool ended;        /* the core knows the outcome */
    bool warned;       /* followers know that its warning signal was sent */
    bool swept;        /* nothing of it runs: its sweeper is done, or that was another boot */
    bool rebooted;     /* of a boot before this one: a mark that is missing proves nothing */
    bool folder_gone;  /* its folder was removed: nothing there says whether it ran */
    int not_forked;    /* errno: the nursery could not fork for this link; 0: it did */
    int sweeps;        /* sweepers, or looks at its folder, that came to nothing */
    int64_t linked_us; /* boot clock: when it was handed to the nursery; 0: by another daemon */
    int64_t sweep_us;  /* boot clock: when that is tried again; 0: nothing is due */
    int64_t young_until_us; /* boot clock: until then a supervisor that cannot be reached may be
                               one that is still starting its command; 0: it is not */
    char *cap_group;        /* holds it to its VRAM; NULL: nothing does, or not looked up yet */
    int mps_fd; /* to the keeper that was started for it, until its supervisor is there; -1 */
    int64_t io_error_us; /* boot clock: the first I/O error of its folder; 0: there was none */
    UT_hash_handle hh;
};

struct watcher {
    struct attempts *attempts;
    struct watch *watches;
    uv_timer_t sweep_timer; /* for the first sweep_us */
};

/* The job of a watch, if that attempt is still its current one. */
struct job *watch_job_of(const struct watcher *w, const struct watch *x);
/* Asks for its end. why: NULL (it is not wanted), "preempt", "requeue" or "exceed". */
void watch_say_stop(struct watch *x, const struct job *job, const char *why, const char *by);

/* Its supervisor uses MPS, or never will: the keeper need not wait for it any longer. */
void watch_mps_arrived(struct watch *x);

/* The nursery could not fork its supervisor, so it never ran. */
void watch_not_forked(struct watcher *w, struct watch *x, int errnum);
void watch_hear(struct watcher *w, struct watch *x, const char *line, size_t len);
/* How it ended, and what else the record knows that a daemon before this one may not have
 * heard. */
void watch_take_record(struct watcher *w, struct watch *x, struct job *job,
                       const struct exitrec *rec);

#endif
