/* What the files of the outbox share. No other file includes it. */
#ifndef DAEMON_OUTBOX_OUTBOX_PRIV_H
#define DAEMON_OUTBOX_OUTBOX_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>
#include <utlist.h>
#include <uv.h>

#include "daemon/outbox/outbox.h"

#define COURIER_TRIES_MAX 5

enum result { UNKNOWN, DONE, FAILED, AGAIN };

/* One row of the outbox. */
struct letter {
    int64_t id;
    uint32_t job, uid;
    int tries;
    int setbacks;   /* in a row: nothing could be tried, for reasons of the machine's */
    char channel;   /* the first letter of its kind: on_..., webhook, mail */
    bool site;      /* the settings ask for it */
    int64_t due_us; /* boot clock */
    enum result result;
    struct courier *courier;
    struct peer_lines *answer; /* while it is under way */
    struct letter *prev, *next;
};

/* A message about a job has been sent on a channel, and its result is not known for good: it
 * may be waiting for another try. */
struct told {
    uint64_t key; /* job; from bit 32 on: channel; from bit 40 on: site */
    int64_t id;   /* of the letter */
    bool later;   /* which waits for another try */
    UT_hash_handle hh;
};

/* A user's line: of what the user's jobs ask for, or of what the settings ask for about them,
 * which the user's own slow hooks do not delay. */
struct box {
    uint64_t whose; /* uid; from bit 32 on: site */
    int n_running;
    struct letter *waiting;
    UT_hash_handle hh;
};

struct courier {
    struct instance *inst;
    struct courier_host host;
    struct box *boxes;
    struct letter *fresh;   /* posted in this turn */
    struct letter *running; /* under way */
    struct letter *over;    /* to be written down */
    struct letter *later;   /* by due_us */
    struct told *told;      /* of those under way, over and for later */
    uv_timer_t timer;       /* for the first of them */
    int n_running;
    size_t n; /* all but the fresh */
    bool closing;
};

struct box *courier_box(struct courier *c, const struct letter *l); /* made if missing */

/* Hands it to a process. 0: it is under way, and will be found in c->over. -1: it is over
 * already, one way or the other. */
int courier_send(struct letter *l);

#endif
