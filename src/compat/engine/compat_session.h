/* The main loop of a long-running front end: it waits for daemon events, signals and file
 * changes, and calls the front end as soon as there is work. It reconnects to a daemon that
 * has gone, and maps the daemon's job ids to the front end's jobs. */
#ifndef COMPAT_ENGINE_COMPAT_SESSION_H
#define COMPAT_ENGINE_COMPAT_SESSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/run/run_verb.h"
#include "compat/engine/pick_daemon.h"

struct compat_id;
struct err;
struct request;
struct watch;

#define SESSION_FILES_MAX 2
#define SESSION_KINDS_MAX 6

/* The front end's verdict on a line's state, after it took all events so far. */
enum compat_found {
    COMPAT_WELL,  /* nothing to do: state known, or events will report it */
    COMPAT_LOOK,  /* began before we listened: call adopt */
    COMPAT_AGAIN, /* ended in the daemon, but should run again */
};

/* Callbacks of a front end; ctx is the session's, job the line's. */
struct compat_front {
    const char *kinds[SESSION_KINDS_MAX]; /* event kinds wanted; NULL ends the list early */

    /* Handle what woke us (WOKE_*; 0 on the first call). 0: continue; 1: finished, with
     * *status; -1: error in e. */
    int (*work)(void *ctx, int woke, int *status, struct err *e);
    int64_t (*until)(void *ctx); /* boot time of the latest next call of work */
    /* The daemon restarted or is another one: send everything again. */
    int (*retell)(void *ctx, struct err *e);
    /* Returns the exit status; -1: the signal does not end the front end. */
    int (*signalled)(void *ctx, int number);
    void (*take_events)(void *ctx); /* calls compat_events */

    /* Called by compat_end: start no more jobs and end the running ones. Called again if the
     * daemon was lost meanwhile: removing tens of thousands of pending jobs makes more events
     * than a follower may leave unread. */
    int (*stop)(void *ctx, struct err *e);
    bool (*any_left)(const void *ctx);

    /* Fill *r, which the caller initialised and frees. False: leave the line out. */
    bool (*fill)(void *ctx, void *job, struct request *r);
    /* The daemon has the job in this state; called before events are taken. May be NULL. */
    void (*entered)(void *ctx, void *job, const char *state);
    enum compat_found (*found)(void *ctx, void *job, const char *state);
    /* The whole object of a job that is running or has ended. */
    void (*adopt)(void *ctx, void *job, const json_t *object);
    /* The daemon ended the job because it can never run. May be NULL. */
    void (*refused)(void *ctx, void *job, const char *why);
    /* For compat_recall: the daemon has this line's job in this state. NULL if the front end
     * does not call compat_recall. */
    void (*known)(void *ctx, void *job, const char *state);
};

/* Before compat_open: zeroed, except front, ctx, path and signals (-1). */
struct compat_session {
    const struct compat_front *front;
    void *ctx;
    const char *path; /* path of the lines' file, as sent to the daemon; absolute; borrowed */
    bool all_jobs;    /* receive events of jobs outside the file too */
    bool is_part;     /* lines missing from a request keep their jobs */
    struct compat_link link;
    json_t *events; /* received, not yet taken */
    int64_t seq;    /* seq of the newest event taken; 0: none yet */
    int64_t file;   /* the daemon's id of the file that sent_lines.h sends; 0: not yet known */
    bool listening; /* this connection follows events */
    char *full;     /* why lines were left out of the last request; NULL: none were */
    bool full_said;
    int64_t told_us;      /* boot time of the last request */
    int64_t room_us;      /* boot time at which to send left-out lines again; 0: never */
    int64_t room_step_us; /* least time between two requests, which cost the daemon time */
    int64_t heard;        /* events received: > 0 of this file's jobs, 0 of all users, -1 of
                             this user */
    struct compat_id *ids;
    int signals;
    struct watch *watch;
    struct run_file files[SESSION_FILES_MAX]; /* only .shown and the marks are used */
    int n_files;
    int64_t end_us;   /* boot time at which compat_end gives up; 0: not called */
    bool stop_called; /* for the current daemon */
};

/* Why a wait ended; bits, several may be set. */
enum {
    WOKE_EVENT = 1,  /* events is not empty */
    WOKE_FILE = 2,   /* a file has changed */
    WOKE_SIGNAL = 4, /* one of the signals that compat_open blocks */
    WOKE_LOST = 8,   /* the connection to the daemon is lost */
    WOKE_ROOM = 16,  /* lines left out of a full queue may be sent again */
};

/* Connect to the daemon. Blocks INT, TERM and HUP from here on; they end waits. */
int compat_open(struct compat_session *s, const struct compat_home *home, struct err *e);
/* Watch a file, which need not exist yet; path is borrowed. */
void compat_watch(struct compat_session *s, const char *path);
void compat_close(struct compat_session *s);

/* Call work and wait, in turn, until work or a signal ends the loop. Returns the exit status;
 * -1 with e. */
int compat_run(struct compat_session *s, struct err *e);

/* End the front end's jobs and wait for that, at most within_us and not past another signal.
 * 0: all ended; 1: some are left; -1 with e. */
int compat_end(struct compat_session *s, int64_t within_us, struct err *e);

/* Why lines are left out of the queue, once each time this begins; otherwise NULL. */
const char *compat_full(struct compat_session *s);

/* Events since the last call, oldest first, each one once. The caller owns the list. */
json_t *compat_events(struct compat_session *s);

/* The front end's job with this daemon id; NULL: none. */
void *compat_job_of(const struct compat_session *s, int64_t id);
/* Map id to job (borrowed) and store it in *slot; the previous id in *slot is unmapped. id 0
 * maps to no job. */
void compat_bind(struct compat_session *s, int64_t *slot, int64_t id, void *job);
/* Unmap the id in *slot and set *slot to 0. */
void compat_unbind(struct compat_session *s, int64_t *slot);

/* Send a request and wait for the answer (client_call). Steals params. */
int compat_call(struct compat_session *s, const char *method, json_t *params, json_t **result,
                struct err *e);
/* compat_call for jobs: adds "select" with these ids (a list, stolen) to params (NULL: none;
 * stolen), split into several requests if there are many ids. No request if there are none. */
int compat_call_for(struct compat_session *s, const char *method, json_t *ids, json_t *params,
                    json_t **result, struct err *e);
/* Fetch the whole objects of these jobs and pass each to adopt. Steals ids. */
int compat_each(struct compat_session *s, json_t *ids, struct err *e);

#endif
