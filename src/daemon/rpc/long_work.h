/* Long requests in slices: a walk through the history, a list of 100,000 jobs, a report. A
 * method runs its first slice at once, which completes nearly every request; the rest runs one
 * slice per turn of the loop, users taking turns, and is charged to its user (user_shares.h).
 * So no user waits for more than a slice, however much another requests. */
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
    /* Works until the boot clock reaches until_us, but does at least one piece. Returns
     * WORK_MORE, WORK_DONE when the whole result is in out, or -1 with e. c is as it was when
     * the request arrived; jobs may have changed since. */
    int (*step)(struct rpc *rpc, const struct caller *c, void *arg, struct jsonw *out,
                int64_t until_us, struct err *e);
    void (*free)(void *arg);
    /* If set, the client is answered not when step returns WORK_DONE but later, by the code
     * that takes this ticket. NULL: the answer is in out. */
    void (*answer_later)(struct rpc *rpc, void *arg, struct ticket *t);
    /* For kinds that change jobs; set all of them or none. What each piece has done is stored
     * as text in the same commit; a piece with nothing new writes nothing. If the daemon dies
     * in between and the client repeats the request with its token, the next daemon passes
     * these texts to resume in order before the first step, so that the request continues there
     * and its answer covers the whole. */
    void (*so_far)(void *arg, struct buf *out);
    void (*resume)(void *arg, const char *text);
    size_t (*n_done)(const void *arg); /* jobs; with `lines` set, lines of a jobs file */
    bool lines;
    bool past;    /* reads the history: none of it may be deleted until this is done */
    bool changes; /* changes jobs: is completed even if the client has disconnected */
    /* For kinds that change jobs but first wait for other requests of their connection: true
     * once they no longer wait. Until then the request is dropped with its client, and a
     * stopping daemon does not wait for it. NULL: it never waits. */
    bool (*has_begun)(const void *arg);
    bool last_changes; /* only its last piece changes jobs; until then it can be refused */
};

/* Runs the first slice. Takes over arg; holds a reference to params while the work lasts.
 * Returns what a method returns: 0 with the whole result in out, -1, or METHOD_LATER if there
 * is more to do. */
int work_begin(struct rpc *rpc, struct caller *c, const struct work_kind *kind, void *arg,
               json_t *params, struct jsonw *out, struct err *e);

/* If a request with this token is still in progress for a client that lost its connection,
 * hands its answer to this caller. False: there is none. */
bool works_take_up(struct rpc *rpc, struct caller *c);
/* works_change: whether a request is changing jobs. works_finish: completes such requests at
 * once. */
bool works_change(const struct rpc *rpc);
void works_finish(struct rpc *rpc);
/* Ends requests that change jobs with this error: nothing more may be accepted. */
void works_fail(struct rpc *rpc, const struct err *why);
/* Called when the turn's commit, which contains the last piece of each request, has succeeded,
 * or has failed for this reason. On failure, requests that change jobs end and report how much
 * was saved. */
void works_saved(struct rpc *rpc);
void works_not_saved(struct rpc *rpc, const struct err *why);
void works_drop_client(struct rpc *rpc, const struct client *client);
void works_free(struct rpc *rpc);
bool works_read_past(const struct rpc *rpc);

#endif
