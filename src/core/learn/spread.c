/* Counters by size: each power of two is divided into 32 buckets of equal width; see
 * spread.h. */
#include "core/learn/spread.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/search.h"

#define SUB_BITS 5
#define SUBS     (1U << SUB_BITS)

static uint32_t
bucket_of(int64_t value)
{
    uint64_t v = (uint64_t)value;
    if (v < SUBS)
        return (uint32_t)v;
    int shift = 63 - __builtin_clzll(v) - SUB_BITS;
    return ((uint32_t)shift + 1) * SUBS + (uint32_t)(v >> shift) - SUBS;
}

/* The largest value in the bucket. */
static int64_t
top_of(uint32_t bucket)
{
    if (bucket < SUBS)
        return bucket;
    int shift = (int)(bucket / SUBS) - 1;
    uint64_t first = (uint64_t)(bucket % SUBS + SUBS) << shift;
    return (int64_t)(first + (UINT64_C(1) << shift) - 1);
}

void
spread_free(struct spread *s)
{
    free(s->v);
    *s = (struct spread){0};
}

static size_t
place_of(const struct spread *s, uint32_t bucket)
{
    return search_first(at, s->n_buckets, s->v[at].bucket < bucket);
}

void
spread_add(struct spread *s, int64_t value)
{
    value = value < 0 ? 0 : value;
    uint32_t bucket = bucket_of(value);
    size_t at = place_of(s, bucket);
    if (at == s->n_buckets || s->v[at].bucket != bucket) {
        s->v = xgrow(s->v, s->n_buckets, &s->cap, sizeof *s->v);
        memmove(&s->v[at + 1], &s->v[at], (s->n_buckets++ - at) * sizeof *s->v);
        s->v[at] = (struct spread_count){bucket, 0};
    }
    s->v[at].n++;
    s->min = s->n == 0 || value < s->min ? value : s->min;
    s->max = value > s->max ? value : s->max;
    s->sum += value;
    s->n++;
}

int64_t
spread_quantile(const struct spread *s, int permille)
{
    int64_t rank = (s->n * permille + 999) / 1000, seen = 0;
    if (s->n == 0)
        return -1;
    for (size_t i = 0; i < s->n_buckets; i++) {
        int64_t top = top_of(s->v[i].bucket);
        seen += s->v[i].n;
        if (seen >= rank)
            return top < s->max ? top : s->max;
    }
    return s->max;
}

int64_t
spread_mean(const struct spread *s)
{
    return s->n ? (s->sum + s->n / 2) / s->n : -1;
}
