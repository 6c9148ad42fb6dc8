/* Shared by interactive.c (the loop, keys and signals) and interactive_job.c (the daemon's
 * view of the job); no other file includes it. */
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
    size_t written; /* bytes of at.shown written to standard output */
    int broken;     /* errno of standard output; 0: no error */
    bool parted; /* the supervisor's connection has ended; received output is still printed */
    int signals;
    bool may_start;       /* the daemon is this user's own: restart it when it dies */
    bool look;            /* something happened: query the daemon again */
    bool input_over;      /* standard input has ended */
    bool told_keys;       /* the detach key has been printed */
    bool told_waiting;    /* the reason for waiting has been printed */
    bool redraw;          /* make the program on the terminal redraw everything */
    int64_t retry_us;     /* boot clock: when to retry; 0: no failure */
    int retries;          /* consecutive retries */
    int64_t interrupt_us; /* boot clock: time of the first Ctrl-C; 0: none */
    bool done;
    int status;

    json_t *job;  /* the daemon's last object for it; NULL: not queried yet */
    int64_t over; /* the attempt whose output has been printed completely; 0: none */
    char *said;   /* the last printed reason for waiting; may be NULL */
    char *log;    /* the log to which at.next refers; may be NULL */
};

#define SESSION_RETRY_US     200000
#define SESSION_RETRY_MIN_US INT64_C(5000)
#define SESSION_RETRIES      25

void session_finish(struct session *s, int status);

/* Queries the job's state and acts on it: connects to its supervisor, prints why it waits,
 * finishes with its status. */
void session_look(struct session *s);
/* Subscribes to the job's events. */
int session_subscribe(struct session *s, struct err *e);
/* Finds a daemon that is away but needed, or finishes without it. */
void session_mend(struct session *s);
void session_lose_daemon(struct session *s);
/* The supervisor has sent its last message, or has exited without one. */
void session_part(struct session *s);
void session_cancel(struct session *s);

/* Appends "berth --dir X attach 3". */
void session_add_way_back(const struct session *s, struct buf *out);

#endif
