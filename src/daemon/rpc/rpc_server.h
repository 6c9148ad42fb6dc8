/* The socket: connections, frames, JSON-RPC, callers. Every answer is held until the turn that
 * made it true is committed (turn.h), then sent. */
#ifndef DAEMON_RPC_RPC_SERVER_H
#define DAEMON_RPC_RPC_SERVER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/common/caller.h"

struct buf;
struct client;
struct err;
struct jsonw;
struct rpc;

/* What a method returns besides 0 (the result is in *out) and -1 (e is filled). */
#define METHOD_LATER 1 /* it kept a ticket and answers with server_answer */

typedef int (*method_fn)(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
                         struct err *e);

/* Binds the socket (replacing what a dead daemon left) and listens. find: the method of a name;
 * NULL: there is none. */
struct method;
struct server *server_open(struct rpc *rpc, const struct method *(*find)(const char *name),
                           struct err *e);
/* No new connections and no new requests. Clients stay connected until server_hang_up, because
 * that is how clients see that the daemon has let go of everything. */
void server_close(struct server *s);
void server_hang_up(struct server *s);
void server_free(struct server *s);
int server_client_count(const struct server *s);
/* Connections that were turned away because there were too many, or because too much waited in
 * them; at_us: when that was last, on the boot clock (0: never). NULL: not wanted. */
int64_t server_turned_away(const struct server *s, int64_t *at_us);
bool server_has_callers(const struct server *s); /* connected, and not accepted yet */

/* What is done from now on is done for this caller; NULL: for none. */
void rpc_serve(struct rpc *rpc, const struct caller *c);

/* A place in line for a later answer to this call. It counts as some of what its user may keep
 * here, as each job that ends may have to look at it; so does what is kept for it. */
struct ticket *server_ticket(struct caller *c);
void ticket_keep(struct ticket *t, int64_t bytes);
/* Answers and frees the ticket. result: one JSON value; it is taken. */
void server_answer(struct ticket *t, struct buf *result);
/* Tells a client that asked for it that the answer is still to come. The client may be dropped,
 * with the ticket. */
void server_say_progress(const struct ticket *t);
/* Clients that wait to be served (rpc_client.c) may not have to any more. */
void server_resume(struct server *s);
void server_new_round(struct server *s); /* of the loop (pace.h) */
/* Whether work for this group may go on now, and that it has taken so long (user_shares.h). */
bool server_may_work(struct server *s, uid_t group);
void server_charge(struct server *s, uid_t group, int64_t us);
/* Bytes of a request that is kept beyond its line: more, or fewer. */
void server_keep(struct server *s, uid_t group, int64_t bytes);
/* The same of requests that wait for their answer. */
void server_keep_waiting(struct server *s, uid_t group, int64_t bytes);
/* Whether another of its requests may wait for its answer (user_shares.h). */
bool server_may_wait(const struct server *s, uid_t group);
/* What a turn has cost, to those whose requests changed something in it. */
void server_charge_turn(struct server *s, int64_t us);
void server_changed(struct server *s, uid_t group);
void server_refuse(struct ticket *t, const struct err *why); /* the same with an error */
void ticket_free(struct ticket *t);
bool ticket_is_of(const struct ticket *t, const struct client *client);

/* Sends what is held; with e, answers to methods that change something become this error. */
void server_release(struct server *s, const struct err *failed);

/* A follower gets every later event that its filter lets through. One that leaves too many
 * unread is hung up on: it can ask for what is stored from where it stopped. */
struct event_filter;
struct event_view;
void server_follow(struct client *client, struct event_filter *filter); /* takes it over */
/* Whether any client wants events of this kind. */
bool server_is_followed(const struct server *s, const char *kind);
void server_publish(struct server *s, const struct event_view *ev);
/* Behind one or more of them: they go out together. */
void server_publish_end(struct server *s);

#endif
