/* A blocking JSON-RPC client of berthd's socket: one object per line, answers matched to
 * questions by id, events handed to a callback whenever they come by. Used by every verb of
 * `berth`. The descriptor is exposed so that a verb can poll it beside other things; then
 * client_pump takes whatever has arrived without waiting. Once the connection is lost every
 * call fails with ERR_UNREACHABLE; make a new client, or have this one connect again
 * (client_keep). */
#ifndef WIRE_CLIENT_H
#define WIRE_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client;
struct err;

/* A notification: method and params are borrowed and gone when it returns. Callbacks take
 * note and return; they ask the daemon nothing themselves. */
typedef void (*client_notify_fn)(void *ctx, const char *method, json_t *params);

/* The answer to a client_send: result (borrowed) or, when it is NULL, the error. */
typedef void (*client_answer_fn)(void *ctx, int64_t id, json_t *result,
                                 const struct err *error);

/* The text of a result, n bytes; borrowed. */
typedef void (*client_text_fn)(void *ctx, int64_t id, const char *result, size_t n);

/* Connects to the socket at path. NULL with ERR_UNREACHABLE when nothing listens there,
 * ERR_PERMISSION when the socket may not be used. */
struct client *client_connect(const char *path, struct err *e);
/* Takes over a connected stream socket. */
struct client *client_from_fd(int fd);
void client_free(struct client *c); /* NULL is fine */

int client_fd(const struct client *c);
/* The socket that client_connect was given; NULL of a client_from_fd. Borrowed. */
const char *client_path(const struct client *c);

/* A call fails with ERR_UNREACHABLE once the daemon has been silent for so long while an
 * answer was due, and the connection is lost; a second more for each 64 KiB of the request.
 * 0: wait for ever, as a new client does. */
void client_set_patience(struct client *c, int ms);

/* Connects again: a connected stream socket, or -1 with e filled when there is none to be had.
 * May wait. */
typedef int (*client_again_fn)(void *ctx, struct err *e);
/* It has been connected again, and what was not answered has been asked again. Asks with
 * client_send what has to be asked of each daemon anew, such as to follow events. */
typedef void (*client_back_fn)(void *ctx, struct client *c);

/* From now on a lost connection is restored by again(ctx), which c owns with free_ctx (may be
 * NULL): the descriptor keeps its number, unanswered requests are sent again with the same
 * ids, and each request has a token, by which a daemon recognises one that it has already
 * carried out. This does not happen after a person stopped the daemon, nor when it is
 * silent. */
void client_keep(struct client *c, client_again_fn again, void (*free_ctx)(void *), void *ctx);
/* Whether the daemon has said that a person stops it. */
bool client_was_stopped(const struct client *c);
/* Called for each new connection; may be NULL. */
void client_on_back(struct client *c, client_back_fn back, void *ctx);

#define CLIENT_TOKEN_SIZE 33
/* A name that no other request has: a daemon that has carried out a request of that name
 * answers as it did then (docs/protocol.md, `token`). "" where the kernel gives no random
 * numbers so early. */
void client_make_token(char out[CLIENT_TOKEN_SIZE]);
/* Use this token for the next request; for callers that repeat a request over another
 * connection themselves. */
void client_name_next(struct client *c, const char *token);

/* Called for notifications, and for answers to client_send; either may be NULL (dropped). */
void client_listen(struct client *c, client_notify_fn on_notify, client_answer_fn on_answer,
                   void *ctx);

/* Results of client_send as text, to the same ctx: for lists that are drawn without a tree. An
 * error still goes to on_answer, as does a result in a form that berthd does not write. */
void client_listen_text(struct client *c, client_text_fn on_text);

/* Told of the signs by which the daemon, asked with patience, says that it is still about the
 * answer to a client_send. */
typedef void (*client_sign_fn)(void *ctx, int64_t id);
void client_listen_signs(struct client *c, client_sign_fn on_sign);

/* Asks and waits for the answer. params is stolen (NULL: none). The caller owns *result
 * (which may be NULL: not wanted). An error answer becomes e, code and words. */
int client_call(struct client *c, const char *method, json_t *params, json_t **result,
                struct err *e);

/* The same with params as JSON text: for requests of many jobs, where building a tree first
 * costs more than everything else. */
int client_call_text(struct client *c, const char *method, const char *params, size_t n,
                     json_t **result, struct err *e);

/* client_call_text in two: what the caller does in between it does while the daemon works. It
 * calls nothing else of c there. The first returns what the second wants to know, or -1. */
int64_t client_call_begin(struct client *c, const char *method, const char *params, size_t n,
                          struct err *e);
int client_call_end(struct client *c, int64_t id, json_t **result, struct err *e);

/* The same, but the result stays JSON text: for lists so long that building a tree takes
 * longer than drawing them. Borrowed, valid until the next call on c. */
int client_call_raw(struct client *c, const char *method, json_t *params, const char **result,
                    size_t *n, struct err *e);

/* Asks without waiting; the answer goes to on_answer in a later pump or call.
 * Returns the question's id, or -1. */
int64_t client_send(struct client *c, const char *method, json_t *params, struct err *e);

/* Delivers every message that has arrived; waits for none. -1: the connection is lost.
 * Call it once before polling the descriptor: messages may be here already. */
int client_pump(struct client *c, struct err *e);

/* Delivers what has arrived; where that is nothing, waits at most timeout_ms (-1: for ever) for
 * something to arrive, then pumps. */
int client_wait(struct client *c, int timeout_ms, struct err *e);

#define auto_client __attribute__((cleanup(client_cleanup)))
void client_cleanup(struct client **c);

#define auto_json __attribute__((cleanup(client_json_cleanup)))
void client_json_cleanup(json_t **j);

#endif
