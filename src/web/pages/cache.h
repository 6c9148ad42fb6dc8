/* Answers to what visitors ask, each kept for as long as it is good enough (query_ttl_us,
 * and longer the more it cost the daemon): a hundred tabs that show the same cause the
 * questions of one. Memory is bounded by the number of entries. */
#ifndef WEB_PAGES_CACHE_H
#define WEB_PAGES_CACHE_H

#include <stdint.h>

struct cache;
struct query;
struct reply;
struct upstream;
struct waiter;

/* The reply is borrowed. Called once, perhaps from within cache_get. */
typedef void (*cache_ready_fn)(void *ctx, struct reply *reply);

struct cache *cache_new(struct upstream *u);
/* After upstream_free. Visitors that still wait are forgotten. */
void cache_free(struct cache *c);

/* *waiting: the waiting request, for cache_forget; NULL when it was answered at once. */
void cache_get(struct cache *c, const struct query *q, cache_ready_fn ready, void *ctx,
               struct waiter **waiting);
void cache_forget(struct waiter *w);

/* Something has changed: what is asked from now on is asked afresh, within what the daemon
 * can bear. */
void cache_expire(struct cache *c);

/* How long the answer to q will still be handed out as it is: 0 when it would be asked
 * afresh. */
int64_t cache_rest_us(struct cache *c, const struct query *q);

#endif
