/* Shared by the files of the outbox; no other file includes it. */
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
    int setbacks;   /* consecutive tries that the machine prevented */
    char channel;   /* first letter of its kind: on_..., webhook, mail */
    bool site;      /* requested by the settings */
    int64_t due_us; /* boot clock: next try */
    enum result result;
    struct courier *courier;
    struct peer_lines *answer; /* the process's socket, while running */
    struct letter *prev, *next;
};

/* A letter about a job on one channel that is running or not yet finished; later letters wait
 * for it to keep the order. */
struct told {
    uint64_t key; /* job | channel << 32 | site << 40 */
    int64_t id;   /* of the letter */
    bool later;   /* it waits for a retry */
    UT_hash_handle hh;
};

/* Queue of one user's letters. Those requested by the settings have a queue of their own, so
 * that the user's slow hooks do not delay them. */
struct box {
    uint64_t whose; /* uid | site << 32 */
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
    struct letter *over;    /* finished, to be written with the next commit */
    struct letter *later;   /* waiting for a retry, by due_us */
    struct told *told;      /* of letters that are running, over or later */
    uv_timer_t timer;       /* for the first of `later` */
    int n_running;
    size_t n; /* all but the fresh ones */
    bool closing;
};

struct box *courier_box(struct courier *c, const struct letter *l); /* made if missing */

/* Hands a letter to a process. 0: running; it will end up in c->over. -1: already over, with
 * its result set. */
int courier_send(struct letter *l);

#endif
