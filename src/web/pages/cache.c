/* Caches replies: see cache.h. An entry is empty, being queried, or has a reply. */
#include "web/pages/cache.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "web/http/query.h"
#include "web/http/reply.h"
#include "web/pages/upstream.h"

/* Limits a query that many visitors make to a twentieth of the daemon's time. */
#define COST_FACTOR 20
#define REST_MAX_US (INT64_C(5) * 1000000)
#define ENTRIES_MAX 128

struct waiter {
    struct waiter *next;
    cache_ready_fn ready; /* NULL: cancelled */
    void *ctx;
};

struct entry {
    struct entry *next;
    struct cache *cache;
    char *key;
    struct query query;
    struct reply *reply; /* NULL: none yet */
    int64_t asked_us;
    int64_t cost_us; /* duration of the last query */
    int64_t made_us;
    bool expired;           /* something has changed since the query */
    int n_parts, n_missing; /* n_missing > 0: being queried */
    json_t *results[QUERY_PARTS_MAX];
    bool optional[QUERY_PARTS_MAX];
    struct err failed; /* code 0: no failure */
    struct waiter *waiters;
};

struct cache {
    struct upstream *upstream;
    struct entry *entries;
    int n;
};

/* The entry and part that an answer is for. */
struct part {
    struct entry *entry;
    int index;
};

struct cache *
cache_new(struct upstream *u)
{
    struct cache *c = xcalloc(1, sizeof *c);

    c->upstream = u;
    return c;
}

static void
entry_free(struct entry *x)
{
    struct waiter *next;

    for (struct waiter *w = x->waiters; w; w = next) {
        next = w->next;
        free(w);
    }
    for (int i = 0; i < QUERY_PARTS_MAX; i++)
        json_decref(x->results[i]);
    reply_unref(x->reply);
    free(x->key);
    free(x);
}

void
cache_free(struct cache *c)
{
    struct entry *next;

    if (!c)
        return;
    for (struct entry *x = c->entries; x; x = next) {
        next = x->next;
        entry_free(x);
    }
    free(c);
}

/* --- answers --- */

static void
tell(struct entry *x)
{
    /* A waiter's callback may query again, and is then in a new list. */
    struct waiter *w = x->waiters, *next;
    struct reply *reply = reply_ref(x->reply);

    x->waiters = NULL;
    for (; w; w = next) {
        if (w->ready)
            w->ready(w->ctx, reply);
        next = w->next;
        free(w);
    }
    reply_unref(reply);
}

static void
settle(struct entry *x)
{
    reply_unref(x->reply);
    x->reply = x->failed.code ? reply_error(&x->failed) : query_reply(&x->query, x->results);
    for (int i = 0; i < x->n_parts; i++) {
        json_decref(x->results[i]);
        x->results[i] = NULL;
    }
    x->made_us = clock_boot_us();
    x->cost_us = x->failed.code ? 0 : x->made_us - x->asked_us;
    tell(x);
}

static void
on_part(void *ctx, json_t *result, const struct err *error)
{
    struct part *p = ctx;
    struct entry *x = p->entry;

    if (result)
        x->results[p->index] = json_incref(result);
    else if (!x->optional[p->index] && !x->failed.code && error)
        x->failed = *error;
    free(p);
    if (!error && !result) /* the upstream is being freed */
        return;
    if (--x->n_missing == 0)
        settle(x);
}

static void
ask(struct entry *x)
{
    struct query_part parts[QUERY_PARTS_MAX];

    x->n_parts = x->n_missing = query_parts(&x->query, parts);
    x->failed.code = ERR_NONE;
    x->asked_us = clock_boot_us();
    x->expired = false;
    for (int i = 0; i < x->n_parts; i++) {
        struct part *p = xcalloc(1, sizeof *p);
        *p = (struct part){x, i};
        x->optional[i] = parts[i].optional;
        upstream_ask(x->cache->upstream, parts[i].method, parts[i].params, on_part, p);
    }
}

/* --- entries --- */

static int64_t
rest_us(const struct entry *x)
{
    int64_t us = COST_FACTOR * x->cost_us;

    return us < REST_MAX_US ? us : REST_MAX_US;
}

static bool
is_fresh(const struct entry *x, int64_t now_us)
{
    int64_t age_us = now_us - x->made_us;

    if (!x->reply)
        return false;
    if (age_us < rest_us(x))
        return true;
    return !x->expired && age_us < query_ttl_us(&x->query);
}

/* Evicts the least recently queried entry, except those that visitors wait for. */
static bool
evict(struct cache *c)
{
    struct entry **oldest = NULL;

    for (struct entry **at = &c->entries; *at; at = &(*at)->next)
        if ((*at)->n_missing == 0 && (!oldest || (*at)->asked_us < (*oldest)->asked_us))
            oldest = at;
    if (!oldest)
        return false;
    struct entry *x = *oldest;
    *oldest = x->next;
    entry_free(x);
    c->n--;
    return true;
}

static struct entry *
find(struct cache *c, const struct query *q)
{
    struct buf key = BUF_INIT;
    struct entry *x = c->entries;

    query_key(q, &key);
    while (x && strcmp(x->key, buf_str(&key)) != 0)
        x = x->next;
    if (!x && (c->n < ENTRIES_MAX || evict(c))) {
        x = xcalloc(1, sizeof *x);
        x->cache = c;
        x->query = *q;
        x->key = xstrdup(buf_str(&key));
        x->next = c->entries;
        c->entries = x;
        c->n++;
    }
    buf_free(&key);
    return x;
}

static void
refuse(cache_ready_fn ready, void *ctx)
{
    struct err e;
    struct reply *r;

    err_set(&e, ERR_UNREACHABLE, "too many different requests at once; try again soon");
    r = reply_error(&e);
    ready(ctx, r);
    reply_unref(r);
}

void
cache_get(struct cache *c, const struct query *q, cache_ready_fn ready, void *ctx,
          struct waiter **waiting)
{
    struct entry *x = find(c, q);
    struct waiter *w;

    *waiting = NULL;
    upstream_want(c->upstream);
    if (!x) {
        refuse(ready, ctx);
        return;
    }
    if (x->n_missing == 0 && is_fresh(x, clock_boot_us())) {
        ready(ctx, x->reply);
        return;
    }
    w = xcalloc(1, sizeof *w);
    *w = (struct waiter){.next = x->waiters, .ready = ready, .ctx = ctx};
    x->waiters = w;
    *waiting = w;
    if (x->n_missing == 0)
        ask(x);
}

void
cache_forget(struct waiter *w)
{
    w->ready = NULL;
}

void
cache_expire(struct cache *c)
{
    for (struct entry *x = c->entries; x; x = x->next)
        x->expired = true;
}

int64_t
cache_rest_us(struct cache *c, const struct query *q)
{
    const struct entry *x = find(c, q);
    int64_t left_us;

    if (!x || !x->reply)
        return 0;
    left_us = x->made_us + rest_us(x) - clock_boot_us();
    return left_us > 0 ? left_us : 0;
}
