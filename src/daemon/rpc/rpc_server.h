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
#define METHOD_LATER 1 /* the method kept a ticket and answers with server_answer */

typedef int (*method_fn)(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
                         struct err *e);

/* Binds the socket, replacing one left by a dead daemon, and listens. find returns the method
 * with that name, or NULL. */
struct method;
struct server *server_open(struct rpc *rpc, const struct method *(*find)(const char *name),
                           struct err *e);
/* Accepts no new connections and no new requests. Clients stay connected until server_hang_up,
 * because the closed connection tells them that the daemon has released everything. */
void server_close(struct server *s);
void server_hang_up(struct server *s);
void server_free(struct server *s);
int server_client_count(const struct server *s);
/* Number of connections refused or dropped because there were too many or because too much
 * data was unread. *at_us: time of the last, on the boot clock (0: never). at_us may be
 * NULL. */
int64_t server_turned_away(const struct server *s, int64_t *at_us);
bool server_has_callers(const struct server *s); /* connections that are not accepted yet */

/* Sets the caller for whom the following work is done; NULL: none. */
void rpc_serve(struct rpc *rpc, const struct caller *c);

/* Reserves a later answer to this call. The ticket counts towards the memory its user may hold
 * here, because each job that ends may have to look at it; so does what is kept for it. */
struct ticket *server_ticket(struct caller *c);
void ticket_keep(struct ticket *t, int64_t bytes);
/* Answers and frees the ticket. result: one JSON value, which is taken over. */
void server_answer(struct ticket *t, struct buf *result);
/* If the client asked for progress, reports that the answer is still to come. This may drop
 * the client and with it the ticket. */
void server_say_progress(const struct ticket *t);
/* Looks again at clients that wait to be served (rpc_client.c), because the reason may be
 * gone. */
void server_resume(struct server *s);
void server_new_round(struct server *s); /* round of the loop (pace.h) */
/* server_may_work: whether the group has time left for more work now. server_charge: charges
 * it time (user_shares.h). */
bool server_may_work(struct server *s, uid_t group);
void server_charge(struct server *s, uid_t group, int64_t us);
/* Counts bytes of a request that is kept longer than its line; negative: released. */
void server_keep(struct server *s, uid_t group, int64_t bytes);
/* The same for requests that wait for their answer. */
void server_keep_waiting(struct server *s, uid_t group, int64_t bytes);
/* Whether another request of the group may wait for its answer (user_shares.h). */
bool server_may_wait(const struct server *s, uid_t group);
/* server_changed marks a group whose request changed something in this turn;
 * server_charge_turn divides the cost of the turn between these groups. */
void server_charge_turn(struct server *s, int64_t us);
void server_changed(struct server *s, uid_t group);
void server_refuse(struct ticket *t, const struct err *why); /* answers with an error */
void ticket_free(struct ticket *t);
bool ticket_is_of(const struct ticket *t, const struct client *client);

/* Sends the held answers. With failed, answers to methods that change something are replaced
 * by that error. */
void server_release(struct server *s, const struct err *failed);

/* The client follows all later events that its filter passes. A follower that leaves too many
 * unread is disconnected; it can then request the stored events from where it stopped. */
struct event_filter;
struct event_view;
void server_follow(struct client *client, struct event_filter *filter); /* takes it over */
/* True if any client follows events of this kind. */
bool server_is_followed(const struct server *s, const char *kind);
void server_publish(struct server *s, const struct event_view *ev);
/* Call after one or more server_publish: sends the events together. */
void server_publish_end(struct server *s);

#endif
