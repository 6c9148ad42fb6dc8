/* What a front end that stays does between two looks at its files: it waits for the daemon's
 * events, for signals, and for files to change. The loop is the front end's; a wait ends as
 * soon as there is something to do. */
#ifndef CLI_COMPAT_SESSION_H
#define CLI_COMPAT_SESSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/compat/home.h"
#include "cli/run.h"

struct err;
struct request;
struct watch;

#define SESSION_FILES_MAX 2

struct compat_session {
    struct compat_link link;
    json_t *events; /* that have come and are for the front end to take (json_array_clear) */
    int64_t seq;    /* of the newest event seen; 0: none yet */
    int64_t file;   /* the daemon's number of what compat_sync sends; 0: not yet */
    bool listening; /* this connection gets events */
    int signals;
    struct watch *watch;
    struct run_file files[SESSION_FILES_MAX]; /* .shown and marks only */
    int n_files;
};

/* Why a wait ended; several may be set. */
enum {
    WOKE_EVENT = 1,  /* events hold some */
    WOKE_FILE = 2,   /* a file has changed */
    WOKE_SIGNAL = 4, /* compat_signal says which */
    WOKE_LOST = 8,   /* the daemon has gone: compat_again */
};

/* Blocks INT, TERM and HUP from here on: they end waits. */
int compat_open(struct compat_session *s, const struct compat_home *home, struct err *e);
/* Watches a file that may not be there yet; path is borrowed. */
void compat_watch(struct compat_session *s, const char *path);
/* Until something happens or until boot time has come (0: only what is here already). */
int compat_wait(struct compat_session *s, int64_t until_boot_us);
/* The next signal that has come; 0: none. */
int compat_signal(struct compat_session *s);
/* Finds or starts the daemon again; sync and follow are to be repeated. */
int compat_again(struct compat_session *s, struct err *e);
void compat_close(struct compat_session *s);

/* One line of what compat_sync sends. */
struct compat_line {
    const char *key; /* its identity, under 64 bytes */
    int number;
    const struct request *req;
    bool again; /* once more, if it has ended */
};

/* file.sync: the queue becomes these lines in this order, under the name `path` (absolute),
 * with this process's folder, umask and environment. fresh: what has ended runs again. *result
 * (owned by the caller) is the answer of the protocol. */
int compat_sync(struct compat_session *s, const char *path, const struct compat_line *lines,
                size_t n, bool fresh, json_t **result, struct err *e);
/* Events of the synced lines from s->seq on come into s->events, past ones at once. */
int compat_follow(struct compat_session *s, struct err *e);

/* Asks the daemon and waits for the answer (client_call). params is stolen. */
int compat_call(struct compat_session *s, const char *method, json_t *params, json_t **result,
                struct err *e);
/* Whole objects of these jobs (a list of ids, stolen); *jobs is the caller's, NULL when there
 * are no ids. */
int compat_fetch(struct compat_session *s, json_t *ids, json_t **jobs, struct err *e);
/* Cancels these jobs (a list of ids, stolen). */
int compat_cancel(struct compat_session *s, json_t *ids, struct err *e);

#endif
