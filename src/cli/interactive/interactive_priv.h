/* What interactive.c (the loop, keys and signals) and interactive_job.c (what the daemon knows
 * of the job) share; no other file includes it. */
#ifndef CLI_INTERACTIVE_INTERACTIVE_PRIV_H
#define CLI_INTERACTIVE_INTERACTIVE_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/interactive/attached_job.h"
#include "cli/interactive/interactive.h"

struct client;
struct err;

struct session {
    const struct interactive *what;
    struct client **client; /* *client NULL: the daemon is away */
    struct attached at;
    size_t written; /* of at.shown, to standard output */
    int broken;     /* errno of standard output; 0: it is well */
    bool parted;    /* the shepherd's connection is over; what it brought is still shown */
    int signals;
    bool may_start;       /* the daemon is our own: it is started again when it has gone */
    bool look;            /* something happened: ask the daemon again */
    bool input_over;      /* nothing more comes from standard input */
    bool told_keys;       /* how to detach has been said */
    bool told_waiting;    /* that it waits */
    bool redraw;          /* a terminal's program is to draw everything anew */
    int64_t retry_us;     /* boot clock: when to try again what failed; 0: nothing failed */
    int retries;          /* in a row */
    int64_t interrupt_us; /* boot clock: the first Ctrl-C; 0: none */
    bool done;
    int status;

    json_t *job;  /* its object as the daemon last had it; NULL: not asked yet */
    int64_t over; /* the attempt that has been shown to its end; 0: none */
    char *said;   /* the reason for waiting that was last printed; NULL */
    char *log;    /* where at.next counts; NULL */
};

#define SESSION_RETRY_US     200000
#define SESSION_RETRY_MIN_US INT64_C(5000)
#define SESSION_RETRIES      25

void session_finish(struct session *s, int status);

/* Asks the daemon how the job is and acts on it: connects to its shepherd, says why it waits,
 * finishes with its status. */
void session_look(struct session *s);
/* The daemon is to send the job's events from now on. */
int session_subscribe(struct session *s, struct err *e);
/* The daemon is away and needed: finds it again, or finishes without it. */
void session_mend(struct session *s);
void session_lose_daemon(struct session *s);
/* The shepherd has said the last, or has gone without it. */
void session_part(struct session *s);
void session_cancel(struct session *s);

/* "berth --dir X attach 3" into a buffer. */
void session_add_way_back(const struct session *s, struct buf *out);

#endif
