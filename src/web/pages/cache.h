/* Caches replies to visitors' queries. A reply is kept while it is fresh (query_ttl_us), and
 * longer the more it cost the daemon: a hundred tabs with the same page cause the queries of
 * one. The number of entries bounds memory. */
#ifndef WEB_PAGES_CACHE_H
#define WEB_PAGES_CACHE_H

#include <stdint.h>

struct cache;
struct query;
struct reply;
struct upstream;
struct waiter;

/* The reply is borrowed. Called once, possibly from within cache_get. */
typedef void (*cache_ready_fn)(void *ctx, struct reply *reply);

struct cache *cache_new(struct upstream *u);
/* Call after upstream_free. Drops visitors that still wait. */
void cache_free(struct cache *c);

/* *waiting: a handle for cache_forget; NULL if the query was answered at once. */
void cache_get(struct cache *c, const struct query *q, cache_ready_fn ready, void *ctx,
               struct waiter **waiting);
void cache_forget(struct waiter *w);

/* Marks all entries stale after a change: later queries go to the daemon again, within the
 * limit on its time. */
void cache_expire(struct cache *c);

/* For how long the present answer to q will still be used; 0: a query would go to the
 * daemon. */
int64_t cache_rest_us(struct cache *c, const struct query *q);

#endif
