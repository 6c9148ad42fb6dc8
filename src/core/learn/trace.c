/* See trace.h. A point is a row of numbers: its step, the load, and MiB for each card. */
#include "core/learn/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/learn/varint.h"

#define ENCODING 1
#define STEP_MAX (INT64_C(1) << 40)
#define SLOT_MAX (INT32_MAX / 2)
#define TIME_MAX (INT64_MAX / 4)

struct trace {
    int n_gpus, n;
    size_t cap;
    int64_t start_us, step_ms;
    int32_t *rows;
};

/* The columns of a row. */
enum { SLOT, UTIL, MIB };

struct trace *
trace_new(int n_gpus, int64_t start_us)
{
    struct trace *t = xcalloc(1, sizeof *t);
    t->n_gpus = n_gpus;
    t->start_us = start_us;
    t->step_ms = TRACE_STEP_MS;
    return t;
}

void
trace_free(struct trace *t)
{
    if (!t)
        return;
    free(t->rows);
    free(t);
}

int
trace_n_gpus(const struct trace *t)
{
    return t->n_gpus;
}

int
trace_n(const struct trace *t)
{
    return t->n;
}

int64_t
trace_start_us(const struct trace *t)
{
    return t->start_us;
}

int64_t
trace_step_ms(const struct trace *t)
{
    return t->step_ms;
}

static int
width(const struct trace *t)
{
    return MIB + t->n_gpus;
}

static int32_t *
row(const struct trace *t, int i)
{
    return t->rows + (size_t)i * (size_t)width(t);
}

static int32_t *
add_row(struct trace *t, int32_t slot)
{
    t->rows = xgrow(t->rows, t->n, &t->cap, (size_t)width(t) * sizeof *t->rows);
    int32_t *r = row(t, t->n++);
    memset(r, -1, (size_t)width(t) * sizeof *r);
    r[SLOT] = slot;
    return r;
}

static void
raise_row(const struct trace *t, int32_t *have, const int32_t *other)
{
    for (int i = UTIL; i < width(t); i++)
        if (other[i] > have[i])
            have[i] = other[i];
}

static void
double_step(struct trace *t)
{
    int keep = 0;
    t->step_ms *= 2;
    for (int i = 0; i < t->n; i++) {
        int32_t *from = row(t, i);
        from[SLOT] /= 2;
        if (keep > 0 && row(t, keep - 1)[SLOT] == from[SLOT])
            raise_row(t, row(t, keep - 1), from);
        else
            memmove(row(t, keep++), from, (size_t)width(t) * sizeof *from);
    }
    t->n = keep;
}

void
trace_thin(struct trace *t, int max)
{
    while (t->n > max)
        double_step(t);
}

bool
trace_add(struct trace *t, int64_t after_ms, const int32_t *mib, int util)
{
    bool doubled = false;
    if (after_ms < 0)
        after_ms = 0;
    while (after_ms / t->step_ms > SLOT_MAX) {
        double_step(t);
        doubled = true;
    }
    int32_t slot = (int32_t)(after_ms / t->step_ms);
    int32_t *r = t->n ? row(t, t->n - 1) : NULL;
    if (!r || r[SLOT] < slot)
        r = add_row(t, slot);
    if (util > r[UTIL])
        r[UTIL] = util;
    for (int i = 0; i < t->n_gpus; i++)
        if (mib[i] > r[MIB + i])
            r[MIB + i] = mib[i];
    if (t->n < TRACE_POINTS)
        return doubled;
    trace_thin(t, TRACE_POINTS / 2);
    return true;
}

struct trace_point
trace_at(const struct trace *t, int i)
{
    const int32_t *r = row(t, i);
    return (struct trace_point){
        .at_us = t->start_us + r[SLOT] * t->step_ms * 1000, .util = r[UTIL], .mib = r + MIB};
}

void
trace_encode(const struct trace *t, struct buf *out)
{
    const int32_t *before = NULL;
    varint_put(out, ENCODING);
    varint_put(out, (uint64_t)t->n_gpus);
    varint_put(out, (uint64_t)t->step_ms);
    varint_put_signed(out, t->start_us);
    varint_put(out, (uint64_t)t->n);
    for (int i = 0; i < t->n; i++) {
        const int32_t *r = row(t, i);
        varint_put(out, (uint64_t)(r[SLOT] - (before ? before[SLOT] : 0)));
        varint_put(out, (uint64_t)((int64_t)r[UTIL] + 1));
        for (int k = MIB; k < width(t); k++)
            varint_put_signed(out, (int64_t)r[k] - (before ? before[k] : 0));
        before = r;
    }
}

static void
decode_row(struct trace *t, struct varint_reader *v, bool first)
{
    int64_t slot = varint_get(v, first ? 0 : 1, SLOT_MAX);
    int32_t util = (int32_t)varint_get(v, 0, INT16_MAX) - 1;
    slot += first ? 0 : row(t, t->n - 1)[SLOT];
    v->bad |= slot > SLOT_MAX || slot > TIME_MAX / 1000 / t->step_ms;
    if (v->bad)
        return;
    int32_t *r = add_row(t, (int32_t)slot);
    r[UTIL] = util;
    for (int k = MIB; k < width(t); k++) {
        int64_t mib = varint_get_signed(v) + (first ? 0 : row(t, t->n - 2)[k]);
        v->bad |= mib < -1 || mib > INT32_MAX;
        r[k] = v->bad ? -1 : (int32_t)mib;
    }
}

struct trace *
trace_decode(const void *bytes, size_t n)
{
    struct varint_reader v = varint_reader(bytes, n);
    varint_get(&v, ENCODING, ENCODING);
    struct trace *t = trace_new((int)varint_get(&v, 1, GPU_MAX), 0);
    t->step_ms = varint_get(&v, 1, STEP_MAX);
    t->start_us = varint_get_signed(&v);
    v.bad |= t->start_us > TIME_MAX || t->start_us < -TIME_MAX;
    int64_t count = varint_get(&v, 0, TRACE_POINTS);
    for (int64_t i = 0; i < count && !v.bad; i++)
        decode_row(t, &v, i == 0);
    if (!v.bad && v.at == v.end)
        return t;
    trace_free(t);
    return NULL;
}
