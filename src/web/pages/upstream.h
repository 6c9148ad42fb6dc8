/* The one connection to berthd, shared by all visitors, with a few requests in flight at a
 * time. It is open while a visitor is present and for a while after, so that an idle daemon
 * can exit. A lost connection is retried every second as long as a visitor is present. A
 * daemon that is silent for some seconds while an answer is due is given up. */
#ifndef WEB_PAGES_UPSTREAM_H
#define WEB_PAGES_UPSTREAM_H

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

struct err;
struct upstream;

/* The answer: result (borrowed), or NULL and the error. Called exactly once, never from within
 * upstream_ask. On upstream_free both are NULL, and the callback only frees ctx. */
typedef void (*upstream_answer_fn)(void *ctx, json_t *result, const struct err *error);

struct upstream_calls {
    void (*on_event)(void *ctx, const json_t *event);
    /* Connected, or lost the connection: why. */
    void (*on_state)(void *ctx, bool connected, const char *why);
    void *ctx;
};

/* Where to connect: to socket (NULL: not given), or to dir as elsewhere (NULL: the user's own
 * daemon, else the machine's). Both are borrowed until upstream_free. */
struct upstream *upstream_new(uv_loop_t *loop, const char *socket, const char *dir,
                              const struct upstream_calls *calls);
void upstream_free(struct upstream *u);

/* A visitor is present. */
void upstream_want(struct upstream *u);

/* Takes over params. */
void upstream_ask(struct upstream *u, const char *method, json_t *params, upstream_answer_fn fn,
                  void *ctx);

#endif
