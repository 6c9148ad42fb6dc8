/* The table of fingerprints: open addressing over 64-bit hashes of user and fingerprint, so
 * that 100,000 different commands take a few megabytes. Two commands with the same hash share
 * an estimate, which is harmless. A row exists while it has runs or live jobs. */
#include "core/learn/runtimes.h"

#include <stdlib.h>

#include "base/err.h"
#include "core/queue/job.h"

#define ROWS_FIRST    64 /* a power of two, as all sizes */
#define SPAN_FIRST_MS 1000

struct row {
    uint64_t key; /* 0: unused */
    struct runs runs;
    struct job *first;
};

/* A walk over the live jobs of a key after a run was noted: there may be a hundred
 * thousand. */
struct walk {
    uint64_t key;
    struct job *at; /* the next one; NULL: finished */
    bool again;     /* another run was noted during the walk */
};

struct history {
    struct row *rows;
    size_t n, cap;
    struct walk *walks;
    size_t n_walks, cap_walks;
};

struct history *
history_new(void)
{
    struct history *h = xcalloc(1, sizeof *h);
    h->cap = ROWS_FIRST;
    h->rows = xcalloc(h->cap, sizeof *h->rows);
    return h;
}

void
history_free(struct history *h)
{
    if (!h)
        return;
    free(h->rows);
    free(h->walks);
    free(h);
}

/* FNV-1a with a final mix, because the table uses the low bits. */
static uint64_t
key_of(uint32_t uid, const char *fingerprint)
{
    uint64_t k = UINT64_C(14695981039346656037) ^ uid;
    for (const char *s = fingerprint; *s; s++)
        k = (k ^ (unsigned char)*s) * UINT64_C(1099511628211);
    k ^= k >> 32;
    k *= UINT64_C(0x9e3779b97f4a7c15);
    k ^= k >> 29;
    return k ? k : 1;
}

/* The key's row, or the unused row where it belongs. */
static struct row *
find(const struct history *h, uint64_t key)
{
    size_t at = key & (h->cap - 1);
    while (h->rows[at].key && h->rows[at].key != key)
        at = (at + 1) & (h->cap - 1);
    return &h->rows[at];
}

static void
grow(struct history *h)
{
    struct row *old = h->rows;
    size_t n = h->cap;
    h->cap *= 2;
    h->rows = xcalloc(h->cap, sizeof *h->rows);
    for (size_t i = 0; i < n; i++)
        if (old[i].key)
            *find(h, old[i].key) = old[i];
    free(old);
}

static struct row *
find_or_add(struct history *h, uint64_t key)
{
    struct row *row = find(h, key);
    if (row->key)
        return row;
    if ((h->n + 1) * 5 > h->cap * 4) {
        grow(h);
        row = find(h, key);
    }
    h->n++;
    row->key = key;
    return row;
}

/* Removes the row and moves up the rows after it that it had displaced. */
static void
remove_row(struct history *h, struct row *row)
{
    size_t mask = h->cap - 1, hole = (size_t)(row - h->rows);
    for (size_t at = (hole + 1) & mask; h->rows[at].key; at = (at + 1) & mask) {
        size_t home = h->rows[at].key & mask;
        if (((at - home) & mask) < ((at - hole) & mask))
            continue; /* it belongs after the hole */
        h->rows[hole] = h->rows[at];
        hole = at;
    }
    h->rows[hole] = (struct row){0};
    h->n--;
}

void
history_restore(struct history *h, uint32_t uid, const char *fingerprint, struct runs r)
{
    if (r.last_ms > 0)
        find_or_add(h, key_of(uid, fingerprint))->runs = r;
}

/* A walk in progress is finished first, or it would never reach the last jobs. */
static void
begin_walk(struct history *h, const struct row *row)
{
    for (size_t i = 0; i < h->n_walks; i++)
        if (h->walks[i].key == row->key) {
            h->walks[i].again = true;
            return;
        }
    if (!row->first)
        return;
    h->walks = xgrow(h->walks, h->n_walks, &h->cap_walks, sizeof *h->walks);
    h->walks[h->n_walks++] = (struct walk){.key = row->key, .at = row->first};
}

struct runs
history_note(struct history *h, const struct job *job, int64_t run_ms)
{
    struct row *row = find_or_add(h, key_of(job->uid, job->fingerprint));
    row->runs.before_ms = row->runs.last_ms;
    row->runs.last_ms = run_ms > 0 ? run_ms : 1;
    begin_walk(h, row);
    return row->runs;
}

struct job *
history_next(struct history *h)
{
    while (h->n_walks > 0) {
        struct walk *w = &h->walks[h->n_walks - 1];
        struct job *job = w->at;
        if (!job && w->again) {
            w->again = false;
            job = find(h, w->key)->first;
        }
        if (job) {
            w->at = job->same_next;
            return job;
        }
        h->n_walks--;
    }
    return NULL;
}

bool
history_has_next(const struct history *h)
{
    return h->n_walks > 0;
}

struct runs
history_runs(const struct history *h, const struct job *job)
{
    static const struct runs none;
    return job->fingerprint ? find(h, key_of(job->uid, job->fingerprint))->runs : none;
}

struct job *
history_first(const struct history *h, const struct job *job)
{
    return job->fingerprint ? find(h, key_of(job->uid, job->fingerprint))->first : NULL;
}

bool
history_expect(const struct history *h, struct job *job)
{
    struct runs r = history_runs(h, job);
    int64_t span = job->span_ms;
    job->estimate_ms = r.before_ms ? (r.last_ms + r.before_ms) / 2 : r.last_ms;
    job->span_ms = job->req.limit_ms > 0 ? job->req.limit_ms : span_class(job->estimate_ms);
    return job->span_ms != span;
}

void
history_enter(struct history *h, struct job *job)
{
    history_expect(h, job);
    if (!job->fingerprint || job->same_listed)
        return;
    struct row *row = find_or_add(h, key_of(job->uid, job->fingerprint));
    job->same_listed = true;
    job->same_prev = NULL;
    job->same_next = row->first;
    if (row->first)
        row->first->same_prev = job;
    row->first = job;
}

void
history_leave(struct history *h, struct job *job)
{
    if (!job->same_listed)
        return;
    struct row *row = find(h, key_of(job->uid, job->fingerprint));
    for (size_t i = 0; i < h->n_walks; i++)
        if (h->walks[i].at == job)
            h->walks[i].at = job->same_next;
    if (job->same_prev)
        job->same_prev->same_next = job->same_next;
    else
        row->first = job->same_next;
    if (job->same_next)
        job->same_next->same_prev = job->same_prev;
    job->same_next = job->same_prev = NULL;
    job->same_listed = false;
    if (!row->first && row->runs.last_ms == 0)
        remove_row(h, row);
}

int64_t
span_class(int64_t estimate_ms)
{
    int64_t span = SPAN_FIRST_MS;
    if (estimate_ms <= 0)
        return 0;
    while (span < estimate_ms)
        span += span / 4;
    return span;
}
