/* What a front end that stays does between two looks at its files: it waits for the daemon's
 * events, for signals, and for files to change; a wait ends as soon as there is something to
 * do. It finds the daemon again when that has gone, and knows the front end's jobs by its
 * numbers. */
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

/* What the front end makes of a line's state, once it has taken all events up to then. */
enum compat_found {
    COMPAT_WELL,  /* it knew, or events will say */
    COMPAT_LOOK,  /* this began before it looked: adopt is to be called */
    COMPAT_AGAIN, /* ended, as far as the daemon knows, but it is to run */
};

/* A front end, as the engine calls it: with ctx of its session, and job of the line. */
struct compat_front {
    const char *kinds[SESSION_KINDS_MAX]; /* of events that are wanted; NULL: no more */

    /* Does what has come up; woke: WOKE_*, 0 at first. 0: go on; 1: over, with *status; -1. */
    int (*work)(void *ctx, int woke, int *status, struct err *e);
    int64_t (*until)(void *ctx); /* boot time at which work is to be called at the latest */
    /* The daemon had gone, or is another one: all is to be sent again. */
    int (*retell)(void *ctx, struct err *e);
    /* The exit status; -1: this signal ends nothing. */
    int (*signalled)(void *ctx, int number);
    void (*take_events)(void *ctx); /* compat_events */

    /* compat_end: nothing more is to start, and what runs is to end. Called again when the
     * daemon has been lost meanwhile: tens of thousands that wait no longer are more events
     * than a follower may leave unread. */
    int (*stop)(void *ctx, struct err *e);
    bool (*any_left)(const void *ctx);

    /* Fills *r, which is initialised, and freed by the caller. False: the line is left out. */
    bool (*fill)(void *ctx, void *job, struct request *r);
    /* The daemon has it, in this state; before events are taken. May be NULL. */
    void (*entered)(void *ctx, void *job, const char *state);
    enum compat_found (*found)(void *ctx, void *job, const char *state);
    /* The whole object of a job that runs, or has ended. */
    void (*adopt)(void *ctx, void *job, const json_t *object);
    /* The daemon has ended the job, for it can never run. May be NULL. */
    void (*refused)(void *ctx, void *job, const char *why);
    /* compat_recall: the daemon has this line's job, in this state. NULL: nobody recalls. */
    void (*known)(void *ctx, void *job, const char *state);
};

/* Zeroed but for the first three and signals, -1, before compat_open. */
struct compat_session {
    const struct compat_front *front;
    void *ctx;
    const char *path; /* of the lines, as the daemon is to know it; absolute; borrowed */
    bool all_jobs;    /* events also of jobs that no line stands for */
    bool is_part;     /* lines that are not sent now stay as they were sent */
    struct compat_link link;
    json_t *events; /* that have come and were not taken yet */
    int64_t seq;    /* of the newest event taken; 0: none yet */
    int64_t file;   /* the daemon's number of what sent_lines.h sends; 0: not yet */
    bool listening; /* this connection gets events */
    char *full;     /* why lines were left out when last sent; NULL: none were */
    bool full_said;
    int64_t told_us;      /* boot time at which they were last sent */
    int64_t room_us;      /* boot time at which to send them again; 0: never */
    int64_t room_step_us; /* not sooner after the last time, which costs the daemon something */
    int64_t heard;        /* events of this file's jobs; 0: of all users'; -1: of this user's */
    struct compat_id *ids;
    int signals;
    struct watch *watch;
    struct run_file files[SESSION_FILES_MAX]; /* .shown and marks only */
    int n_files;
    int64_t end_us;   /* boot time until which compat_end waits; 0: it was not called */
    bool stop_called; /* of the daemon that is there now */
};

/* Why a wait ended; several may be set. */
enum {
    WOKE_EVENT = 1,  /* events hold some */
    WOKE_FILE = 2,   /* a file has changed */
    WOKE_SIGNAL = 4, /* one of those that compat_open blocks */
    WOKE_LOST = 8,   /* the daemon has gone */
    WOKE_ROOM = 16,  /* lines for which there was no room may be sent again */
};

/* Blocks INT, TERM and HUP from here on: they end waits. */
int compat_open(struct compat_session *s, const struct compat_home *home, struct err *e);
/* Watches a file that may not be there yet; path is borrowed. */
void compat_watch(struct compat_session *s, const char *path);
void compat_close(struct compat_session *s);

/* Works and waits in turn until work or a signal ends it. Returns the exit status; -1 with
 * e. */
int compat_run(struct compat_session *s, struct err *e);

/* Ends the front end's jobs and awaits that, but no longer than it says, and not beyond
 * another signal. 0: none is left; 1: some are; -1 with e. */
int compat_end(struct compat_session *s, int64_t within_us, struct err *e);

/* Why lines wait outside of the queue, once each time that this begins; else NULL. */
const char *compat_full(struct compat_session *s);

/* What has come since the last time, oldest first, each event once; the caller's. */
json_t *compat_events(struct compat_session *s);

/* The front end's job that the daemon knows by this number; NULL: none of its. */
void *compat_job_of(const struct compat_session *s, int64_t id);
/* From now on that number is this job's (borrowed), which has it in *slot; the one that stood
 * there is forgotten. 0 is no job's. */
void compat_bind(struct compat_session *s, int64_t *slot, int64_t id, void *job);
/* The number in *slot belongs to no job any more, and is 0 from now on. */
void compat_unbind(struct compat_session *s, int64_t *slot);

/* Asks the daemon and waits for the answer (client_call). params is stolen. */
int compat_call(struct compat_session *s, const char *method, json_t *params, json_t **result,
                struct err *e);
/* The same, of jobs: params (NULL: none, likewise stolen) and "select" with these ids (a list,
 * stolen), in several requests where there are many. Nothing is asked where there are none. */
int compat_call_for(struct compat_session *s, const char *method, json_t *ids, json_t *params,
                    json_t **result, struct err *e);
/* Whole objects of these jobs, each to adopt. */
int compat_each(struct compat_session *s, json_t *ids, struct err *e);

#endif
