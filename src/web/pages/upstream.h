/* The one connection to berthd. It is there while a visitor looks and for a while after, so
 * that an idle daemon can exit; questions of all visitors go over it, a few at a time. A lost
 * connection is made again every second as long as a visitor looks. A daemon that is silent
 * while an answer is due is given up after some seconds. */
#ifndef WEB_PAGES_UPSTREAM_H
#define WEB_PAGES_UPSTREAM_H

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

struct err;
struct upstream;

/* The answer: result (borrowed), or NULL and why. Called exactly once, never from within
 * upstream_ask. At the end of everything: neither; then only ctx is to be freed. */
typedef void (*upstream_answer_fn)(void *ctx, json_t *result, const struct err *error);

struct upstream_calls {
    void (*on_event)(void *ctx, const json_t *event);
    /* It was reached, or lost: why in words. */
    void (*on_state)(void *ctx, bool connected, const char *why);
    void *ctx;
};

/* Where to connect: socket by name (NULL: not named), or dir as everywhere (NULL: the user's
 * own daemon, else the machine's). Both are borrowed for as long as it lives. */
struct upstream *upstream_new(uv_loop_t *loop, const char *socket, const char *dir,
                              const struct upstream_calls *calls);
void upstream_free(struct upstream *u);

/* A visitor looks. */
void upstream_want(struct upstream *u);

/* params is stolen. */
void upstream_ask(struct upstream *u, const char *method, json_t *params, upstream_answer_fn fn,
                  void *ctx);

#endif
