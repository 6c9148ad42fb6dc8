/* Keeping pages up to date: see live_pages.h. */
#include "web/pages/live_pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "web/http/query.h"
#include "web/http/reply.h"
#include "web/http/web_stream.h"
#include "web/pages/cache.h"

#define GATHER_MS 100  /* events often come in groups */
#define BUSY_MS   2000 /* loads and memory are sampled about this often */
#define IDLE_MS   5000
#define BEAT_MS   15000

struct live {
    struct cache *cache;
    struct stream *stream;
    uv_timer_t *look; /* the next query */
    uv_timer_t *beat;
    struct waiter *waiting; /* for the answer to a query */
    bool soon;              /* an event has advanced the next query */
    uint64_t revision;
    char seen[44]; /* ETag of what the pages got last */
};

static void on_look(uv_timer_t *timer);

static void
on_closed(uv_handle_t *handle)
{
    free(handle);
}

struct live *
live_pages_new(uv_loop_t *loop)
{
    struct live *l = xcalloc(1, sizeof *l);

    l->look = xcalloc(1, sizeof *l->look);
    l->beat = xcalloc(1, sizeof *l->beat);
    l->look->data = l->beat->data = l;
    uv_timer_init(loop, l->look);
    uv_timer_init(loop, l->beat);
    return l;
}

void
live_pages_join(struct live *l, struct cache *cache, struct stream *stream)
{
    l->cache = cache;
    l->stream = stream;
}

void
live_pages_free(struct live *l)
{
    if (!l)
        return;
    uv_close((uv_handle_t *)l->look, on_closed);
    uv_close((uv_handle_t *)l->beat, on_closed);
    free(l);
}

/* --- asking --- */

static bool
is_busy(const struct reply *r)
{
    const json_t *counts = json_object_get(r->tree, "counts");

    return json_integer_value(json_object_get(counts, "RUNNING")) > 0 ||
           json_integer_value(json_object_get(counts, "STARTING")) > 0;
}

static void
on_overview(void *ctx, struct reply *reply)
{
    struct live *l = ctx;
    char data[48];

    l->waiting = NULL;
    if (reply->status == 200 && strcmp(l->seen, reply->etag) != 0) {
        snprintf(l->seen, sizeof l->seen, "%s", reply->etag);
        int n =
            snprintf(data, sizeof data, "{\"rev\":%llu}", (unsigned long long)++l->revision);
        stream_send(l->stream, "rev", data, (size_t)n, false);
    }
    if (stream_listeners(l->stream) > 0 && !uv_is_active((uv_handle_t *)l->look)) {
        l->soon = false;
        uv_timer_start(l->look, on_look, is_busy(reply) ? BUSY_MS : IDLE_MS, 0);
    }
}

static void
on_look(uv_timer_t *timer)
{
    struct live *l = timer->data;
    const struct query q = {.kind = QUERY_OVERVIEW};

    l->soon = false;
    if (!l->waiting && stream_listeners(l->stream) > 0)
        cache_get(l->cache, &q, on_overview, l, &l->waiting);
}

void
live_pages_on_event(struct live *l, const json_t *event)
{
    const struct query q = {.kind = QUERY_OVERVIEW};
    auto_free char *text = NULL;

    cache_expire(l->cache);
    if (stream_listeners(l->stream) == 0)
        return;
    text = json_dumps(event, JSON_COMPACT);
    if (text)
        stream_send(l->stream, "event", text, strlen(text), true);
    if (l->soon)
        return;
    l->soon = true;
    uv_timer_start(l->look, on_look, GATHER_MS + (uint64_t)(cache_rest_us(l->cache, &q) / 1000),
                   0);
}

void
live_pages_on_state(struct live *l, bool connected, const char *why)
{
    json_t *state = json_pack("{s:b,s:s}", "connected", connected, "why", why);
    auto_free char *text = state ? json_dumps(state, JSON_COMPACT) : NULL;

    cache_expire(l->cache);
    if (text)
        stream_send(l->stream, "state", text, strlen(text), false);
    json_decref(state);
    l->seen[0] = '\0'; /* the next answer counts as a change, even if it is the same */
    if (stream_listeners(l->stream) > 0)
        uv_timer_start(l->look, on_look, connected ? GATHER_MS : BUSY_MS, 0);
}

static void
on_beat(uv_timer_t *timer)
{
    const struct live *l = timer->data;

    stream_beat(l->stream);
}

void
live_pages_on_listeners(struct live *l, int listeners)
{
    if (listeners == 0) {
        uv_timer_stop(l->look);
        uv_timer_stop(l->beat);
        return;
    }
    if (!uv_is_active((uv_handle_t *)l->beat))
        uv_timer_start(l->beat, on_beat, BEAT_MS, BEAT_MS);
    if (!uv_is_active((uv_handle_t *)l->look) && !l->waiting)
        uv_timer_start(l->look, on_look, 0, 0);
}
