/* See series.h. Two rings that grow up to their bound. A walk takes its older part from the
 * minutes, the rest from the samples. */
#include "core/learn/series.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/learn/varint.h"

#define ENCODING 1
#define MIB_MAX  (INT32_MAX - 1)

struct ring {
    struct series_point *points;
    size_t cap, first, n, most;
};

struct series {
    struct ring fine, minutes;
};

struct series *
series_new(void)
{
    struct series *s = xcalloc(1, sizeof *s);
    s->fine.most = SERIES_POINTS;
    s->minutes.most = SERIES_MINUTES;
    return s;
}

void
series_free(struct series *s)
{
    if (!s)
        return;
    free(s->fine.points);
    free(s->minutes.points);
    free(s);
}

static struct series_point *
ring_at(const struct ring *r, size_t i)
{
    return &r->points[(r->first + i) % r->cap];
}

/* Nothing is dropped before the ring is full, so a growing ring starts at index 0. */
static void
ring_push(struct ring *r, const struct series_point *p)
{
    if (r->n == r->most) {
        r->points[r->first] = *p;
        r->first = (r->first + 1) % r->cap;
        return;
    }
    if (r->n == r->cap) {
        size_t cap = r->cap ? r->cap * 2 : 32;
        r->cap = cap < r->most ? cap : r->most;
        r->points = xrealloc(r->points, r->cap * sizeof *r->points);
    }
    r->points[r->n++] = *p;
}

static void
raise32(int32_t *have, int32_t v)
{
    if (v > *have)
        *have = v;
}

static void
raise16(int16_t *have, int16_t v)
{
    if (v > *have)
        *have = v;
}

static void
raise_to(struct series_point *have, const struct series_point *p)
{
    raise32(&have->used_mib, p->used_mib);
    raise32(&have->held_mib, p->held_mib);
    raise32(&have->external_mib, p->external_mib);
    raise16(&have->util, p->util);
    raise16(&have->temperature_c, p->temperature_c);
}

static int64_t
step_of(int64_t at_us, int64_t step_us)
{
    int64_t q = at_us / step_us;
    return at_us % step_us < 0 ? q - 1 : q;
}

static void
ring_add(struct ring *r, const struct series_point *p, int64_t step_us)
{
    if (r->n > 0) {
        struct series_point *last = ring_at(r, r->n - 1);
        if (step_of(last->at_us, step_us) == step_of(p->at_us, step_us)) {
            raise_to(last, p);
            return;
        }
    }
    ring_push(r, p);
}

void
series_add(struct series *s, const struct series_point *p)
{
    ring_add(&s->fine, p, SERIES_STEP_US);
    ring_add(&s->minutes, p, SERIES_MINUTE_US);
}

int64_t
series_step_us(int64_t since_us, int64_t now_us, int64_t max)
{
    /* A window that begins within a step overlaps one more step than fits into it. */
    int64_t parts = max > 1 ? max - 1 : 1,
            window_us = now_us > since_us ? now_us - since_us : 0;
    int64_t steps = (window_us / parts + SERIES_STEP_US) / SERIES_STEP_US;
    return steps * SERIES_STEP_US;
}

/* --- walking --- */

struct walk {
    struct series_point now; /* the step being collected */
    bool any;
    int64_t since_us, step_us;
    series_cb cb;
    void *arg;
};

static void
walk_point(struct walk *w, const struct series_point *p)
{
    if (p->at_us < w->since_us)
        return;
    if (w->any && step_of(w->now.at_us, w->step_us) == step_of(p->at_us, w->step_us)) {
        raise_to(&w->now, p);
        return;
    }
    if (w->any)
        w->cb(&w->now, w->arg);
    w->now = *p;
    w->any = true;
}

void
series_walk(const struct series *s, int64_t since_us, int64_t step_us, series_cb cb, void *arg)
{
    struct walk w = {.since_us = since_us, .step_us = step_us, .cb = cb, .arg = arg};
    int64_t fine_us = s->fine.n ? ring_at(&s->fine, 0)->at_us : INT64_MAX;
    for (size_t i = 0; i < s->minutes.n; i++) {
        const struct series_point *p = ring_at(&s->minutes, i);
        if (p->at_us >= fine_us)
            break;
        walk_point(&w, p);
    }
    for (size_t i = 0; i < s->fine.n; i++)
        walk_point(&w, ring_at(&s->fine, i));
    if (w.any)
        cb(&w.now, arg);
}

int64_t
series_oldest_us(const struct series *s)
{
    return s->minutes.n ? ring_at(&s->minutes, 0)->at_us : INT64_MAX;
}

/* --- kept --- */

/* For values from -1 on. */
static void
put_reported(struct buf *out, int64_t v)
{
    varint_put(out, (uint64_t)(v + 1));
}

void
series_encode(const struct series *s, int64_t offset_us, struct buf *out)
{
    int64_t before_us = 0;
    varint_put(out, ENCODING);
    varint_put(out, s->minutes.n);
    for (size_t i = 0; i < s->minutes.n; i++) {
        const struct series_point *p = ring_at(&s->minutes, i);
        int64_t at_us = p->at_us + offset_us;
        varint_put_signed(out, at_us - before_us);
        put_reported(out, p->used_mib);
        put_reported(out, p->held_mib);
        put_reported(out, p->external_mib);
        put_reported(out, p->util);
        put_reported(out, p->temperature_c);
        before_us = at_us;
    }
}

int
series_decode(struct series *s, int64_t offset_us, int64_t now_us, const void *bytes, size_t n)
{
    struct varint_reader r = varint_reader(bytes, n);
    int64_t at_us = 0;
    varint_get(&r, ENCODING, ENCODING);
    int64_t count = varint_get(&r, 0, SERIES_MINUTES);
    for (int64_t i = 0; i < count && !r.bad; i++) {
        int64_t more_us = varint_get_signed(&r);
        struct series_point p;
        at_us += more_us;
        r.bad |= i > 0 && more_us < 0;
        r.bad |= at_us < 0 || at_us > INT64_MAX / 4;
        p.used_mib = (int32_t)varint_get(&r, 0, MIB_MAX) - 1;
        p.held_mib = (int32_t)varint_get(&r, 0, MIB_MAX) - 1;
        p.external_mib = (int32_t)varint_get(&r, 0, MIB_MAX) - 1;
        p.util = (int16_t)(varint_get(&r, 0, INT16_MAX) - 1);
        p.temperature_c = (int16_t)(varint_get(&r, 0, INT16_MAX) - 1);
        p.at_us = at_us - offset_us;
        if (!r.bad && p.at_us <= now_us) /* the clock may have been set back */
            ring_push(&s->minutes, &p);
    }
    return r.bad ? -1 : 0;
}
