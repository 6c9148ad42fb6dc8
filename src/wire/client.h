/* A blocking JSON-RPC client for berthd's socket: one object per line, answers matched to
 * requests by id, notifications passed to a callback as they arrive. Every verb of `berth`
 * uses it. The descriptor is exposed so that a verb can poll it with others and then call
 * client_pump, which takes what has arrived without waiting. Once the connection is lost,
 * every call fails with ERR_UNREACHABLE; make a new client, or let this one reconnect
 * (client_keep). */
#ifndef WIRE_CLIENT_H
#define WIRE_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client;
struct err;

/* A notification. method and params are borrowed for the call. Callbacks only take note: they
 * must not send requests themselves. */
typedef void (*client_notify_fn)(void *ctx, const char *method, json_t *params);

/* The answer to a client_send: result (borrowed) or, if that is NULL, the error. */
typedef void (*client_answer_fn)(void *ctx, int64_t id, json_t *result,
                                 const struct err *error);

/* The text of a result, n bytes; borrowed. */
typedef void (*client_text_fn)(void *ctx, int64_t id, const char *result, size_t n);

/* Connects to the socket at path. NULL with ERR_UNREACHABLE if nothing listens there,
 * ERR_PERMISSION if access is denied. */
struct client *client_connect(const char *path, struct err *e);
/* Takes over a connected stream socket. */
struct client *client_from_fd(int fd);
void client_free(struct client *c); /* NULL is fine */

int client_fd(const struct client *c);
/* The path passed to client_connect; NULL after client_from_fd. Borrowed. */
const char *client_path(const struct client *c);

/* Sets the timeout: if the daemon stays silent for this long while an answer is due, plus one
 * second per 64 KiB of the request, the connection is lost and the call fails with
 * ERR_UNREACHABLE. 0: no timeout, the default. */
void client_set_patience(struct client *c, int ms);

/* Reconnects: returns a connected stream socket, or -1 with e filled. May block. */
typedef int (*client_again_fn)(void *ctx, struct err *e);
/* Called after a reconnect, once unanswered requests were resent. Uses client_send for what
 * each new daemon must be asked, such as following events. */
typedef void (*client_back_fn)(void *ctx, struct client *c);

/* From now on, again(ctx) restores a lost connection; c owns ctx and frees it with free_ctx
 * (may be NULL). The descriptor keeps its number, unanswered requests are resent with the same
 * ids, and each request carries a token, by which a daemon recognises a request that it has
 * already carried out. No reconnect happens after a person stopped the daemon, or on a
 * timeout. */
void client_keep(struct client *c, client_again_fn again, void (*free_ctx)(void *), void *ctx);
/* True if the daemon has announced that a person stops it. */
bool client_was_stopped(const struct client *c);
/* Sets the callback for each new connection; may be NULL. */
void client_on_back(struct client *c, client_back_fn back, void *ctx);

#define CLIENT_TOKEN_SIZE 33
/* A unique token that makes a request idempotent: a daemon that has already carried out a
 * request with this token repeats its answer (docs/protocol.md, `token`). "" early in boot,
 * when the kernel has no random numbers yet. */
void client_make_token(char out[CLIENT_TOKEN_SIZE]);
/* Uses this token for the next request, for callers that repeat a request over another
 * connection themselves. */
void client_name_next(struct client *c, const char *token);

/* Sets the callbacks for notifications and for answers to client_send; either may be NULL
 * (dropped). */
void client_listen(struct client *c, client_notify_fn on_notify, client_answer_fn on_answer,
                   void *ctx);

/* Delivers results of client_send as text, with the same ctx, for lists that are drawn without
 * building a tree. Errors still go to on_answer, as do results not in berthd's own format. */
void client_listen_text(struct client *c, client_text_fn on_text);

/* Called for each keep-alive by which the daemon shows that it is still working on the answer
 * to a client_send. */
typedef void (*client_sign_fn)(void *ctx, int64_t id);
void client_listen_signs(struct client *c, client_sign_fn on_sign);

/* Sends a request and waits for the answer. Steals params (NULL: none). The caller owns
 * *result (result may be NULL: not wanted). An error answer fills e, code and message. */
int client_call(struct client *c, const char *method, json_t *params, json_t **result,
                struct err *e);

/* As client_call, with params as JSON text, for requests of many jobs, where building a tree
 * would cost more than everything else. */
int client_call_text(struct client *c, const char *method, const char *params, size_t n,
                     json_t **result, struct err *e);

/* client_call_text in two steps, so that the caller can work while the daemon does. Make no
 * other call on c in between. begin returns the id for end, or -1. */
int64_t client_call_begin(struct client *c, const char *method, const char *params, size_t n,
                          struct err *e);
int client_call_end(struct client *c, int64_t id, json_t **result, struct err *e);

/* As client_call, but the result stays JSON text, for lists so long that building a tree takes
 * longer than drawing them. Borrowed, valid until the next call on c. */
int client_call_raw(struct client *c, const char *method, json_t *params, const char **result,
                    size_t *n, struct err *e);

/* Sends a request without waiting; the answer goes to on_answer in a later pump or call.
 * Returns the request's id, or -1. */
int64_t client_send(struct client *c, const char *method, json_t *params, struct err *e);

/* Delivers all messages that have arrived, without waiting. -1: the connection is lost. Call
 * it once before polling the descriptor, because messages may already be buffered. */
int client_pump(struct client *c, struct err *e);

/* Delivers what has arrived; if nothing has, waits at most timeout_ms (-1: no timeout) and
 * then pumps. */
int client_wait(struct client *c, int timeout_ms, struct err *e);

#define auto_client __attribute__((cleanup(client_cleanup)))
void client_cleanup(struct client **c);

#define auto_json __attribute__((cleanup(client_json_cleanup)))
void client_json_cleanup(json_t **j);

#endif
