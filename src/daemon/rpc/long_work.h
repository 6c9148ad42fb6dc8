/* Long requests, in pieces: a walk through the history, a list of 100,000 jobs, a report. A
 * method begins a piece of work and goes as far as the first slice of time takes it, which is
 * all of it for nearly every request; the rest is done a slice per turn of the loop, each
 * user's in turn, and charged to that user (user_shares.h). So no user waits for more than a
 * slice, however much another asks. */
#ifndef DAEMON_RPC_LONG_WORK_H
#define DAEMON_RPC_LONG_WORK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/common/caller.h"

struct buf;
struct caller;
struct client;
struct err;
struct jsonw;
struct rpc;
struct ticket;

struct work_kind {
    /* Goes on until the boot clock says until_us, or for one piece at least. WORK_MORE, or
     * WORK_DONE when all of the result stands in out; -1 with e. c is as it was when the
     * request came; its jobs may be others since. */
    int (*step)(struct rpc *rpc, const struct caller *c, void *arg, struct jsonw *out,
                int64_t until_us, struct err *e);
    void (*free)(void *arg);
    /* The client is answered later than when step has said WORK_DONE, by the code that takes
     * this ticket. NULL: the answer stands in out. */
    void (*answer_later)(struct rpc *rpc, void *arg, struct ticket *t);
    /* Of those that change jobs; all or none. What each piece has done is kept as text with
     * it; a piece without news writes nothing. One that is asked again with its token, of the
     * daemon that comes after one that died in between, gets those texts, one after the other,
     * before it begins: it goes on from there and answers for the whole. */
    void (*so_far)(void *arg, struct buf *out);
    void (*resume)(void *arg, const char *text);
    size_t (*n_done)(const void *arg); /* jobs; with `lines`, lines of a jobs file */
    bool lines;
    bool past;    /* reads the history: nothing of that may go before it is done */
    bool changes; /* jobs: it is done to its end also when the client has gone */
    /* Of those that change jobs and wait for other requests of their connection first: whether
     * they do no more. One that still does goes with its client, and is not waited for when
     * the daemon stops. NULL: it never does. */
    bool (*has_begun)(const void *arg);
    bool last_changes; /* only its last piece does; before that it can be refused */
};

/* Does the first slice. Takes over arg; params stay while it lasts. Returns what a method does:
 * 0 with all in out, -1, or METHOD_LATER when there is more to do. */
int work_begin(struct rpc *rpc, struct caller *c, const struct work_kind *kind, void *arg,
               json_t *params, struct jsonw *out, struct err *e);

/* One that goes on for a client that lost its connection and asks again, with the same token:
 * it gets the answer. False: there is none. */
bool works_take_up(struct rpc *rpc, struct caller *c);
/* Whether jobs are being changed; and that to its end, at once. */
bool works_change(const struct rpc *rpc);
void works_finish(struct rpc *rpc);
/* Requests that change jobs end with this error: nothing more may be accepted. */
void works_fail(struct rpc *rpc, const struct err *why);
/* The turn's commit, with the last piece of each of them, has succeeded, or failed for this
 * reason: then they end, and say how much of them stays. */
void works_saved(struct rpc *rpc);
void works_not_saved(struct rpc *rpc, const struct err *why);
void works_drop_client(struct rpc *rpc, const struct client *client);
void works_free(struct rpc *rpc);
bool works_read_past(const struct rpc *rpc);

#endif
