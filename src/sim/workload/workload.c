/* The list of jobs. Shapes are deduplicated by hash as jobs are added, so that a job stores
 * one number for all that it requests of the cards. */
#include "sim/workload/workload.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"

#define BUCKETS_FIRST 256

void
workload_free(struct workload *w)
{
    free(w->jobs);
    free(w->shapes);
    free(w->buckets);
    for (size_t i = 0; i < w->n_requests; i++)
        request_free(&w->requests[i]);
    free(w->requests);
    *w = (struct workload)WORKLOAD_INIT;
}

static bool
is_same_shape(const struct shape *a, const struct shape *b)
{
    return a->allowed == b->allowed && a->vram_mib == b->vram_mib && a->n == b->n &&
           a->alone == b->alone && a->share_permille == b->share_permille;
}

static size_t
hash_shape(const struct shape *s)
{
    uint64_t h = s->allowed ^ (uint64_t)(uint32_t)s->vram_mib << 16 ^ (uint64_t)s->n << 1 ^
                 s->alone ^ (uint64_t)(uint16_t)s->share_permille << 8;
    return (size_t)(h * UINT64_C(0x9e3779b97f4a7c15) >> 20);
}

/* Open addressing; a bucket holds a shape's index plus one. */
static uint32_t *
find_bucket(const struct workload *w, const struct shape *s)
{
    size_t at = hash_shape(s) & (w->n_buckets - 1);
    while (w->buckets[at] && !is_same_shape(&w->shapes[w->buckets[at] - 1], s))
        at = (at + 1) & (w->n_buckets - 1);
    return &w->buckets[at];
}

static void
grow_shapes(struct workload *w)
{
    w->shapes = xgrow(w->shapes, w->n_shapes, &w->cap_shapes, sizeof *w->shapes);
    if (w->n_shapes * 2 < w->n_buckets)
        return;
    free(w->buckets);
    w->n_buckets = w->n_buckets ? w->n_buckets * 2 : BUCKETS_FIRST;
    w->buckets = xcalloc(w->n_buckets, sizeof *w->buckets);
    for (size_t i = 0; i < w->n_shapes; i++)
        *find_bucket(w, &w->shapes[i]) = (uint32_t)i + 1;
}

static uint32_t
shape_number(struct workload *w, const struct shape *s)
{
    uint32_t *bucket = w->n_buckets ? find_bucket(w, s) : NULL;
    if (bucket && *bucket)
        return *bucket - 1;
    grow_shapes(w);
    w->shapes[w->n_shapes] = *s;
    *find_bucket(w, s) = (uint32_t)++w->n_shapes;
    return (uint32_t)w->n_shapes - 1;
}

void
workload_add(struct workload *w, const struct sim_job *job, const struct shape *shape)
{
    if (w->n == w->cap) {
        w->cap = w->cap ? w->cap + w->cap / 2 : 1024;
        w->jobs = xrealloc(w->jobs, w->cap * sizeof *w->jobs);
    }
    uint32_t number = shape_number(w, shape);
    w->jobs[w->n] = *job;
    w->jobs[w->n++].shape = number;
}

uint32_t
workload_add_request(struct workload *w, struct request *r)
{
    w->requests = xgrow(w->requests, w->n_requests, &w->cap_requests, sizeof *w->requests);
    w->requests[w->n_requests++] = *r;
    request_init(r);
    return (uint32_t)w->n_requests;
}

void
workload_forget_users(struct workload *w)
{
    for (size_t i = 0; i < w->n; i++)
        w->jobs[i].user = 0;
}

void
workload_batch(struct workload *w)
{
    for (size_t i = 0; i < w->n; i++)
        w->jobs[i].arrival = 0;
}

void
workload_scale(struct workload *w, double factor)
{
    for (size_t i = 0; i < w->n; i++)
        w->jobs[i].arrival = (int64_t)rint((double)w->jobs[i].arrival * factor);
}

static int
compare_jobs(const void *a, const void *b)
{
    const struct sim_job *x = a, *y = b;
    if (x->arrival != y->arrival)
        return x->arrival < y->arrival ? -1 : 1;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    return x->id == y->id ? 0 : x->id < y->id ? -1 : 1;
}

static int
compare_ids(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return *x == *y ? 0 : *x < *y ? -1 : 1;
}

static bool
is_sorted(const struct workload *w)
{
    for (size_t i = 1; i < w->n; i++) {
        if (compare_jobs(&w->jobs[i - 1], &w->jobs[i]) >= 0)
            return false;
    }
    return true;
}

static bool
ids_ascend(const struct workload *w)
{
    for (size_t i = 1; i < w->n; i++) {
        if (w->jobs[i - 1].id >= w->jobs[i].id)
            return false;
    }
    return true;
}

static int
refuse_twins(const struct workload *w, const char *file, struct err *e)
{
    int64_t *ids = xmalloc(w->n * sizeof *ids), twin = -1;
    for (size_t i = 0; i < w->n; i++)
        ids[i] = w->jobs[i].id;
    qsort(ids, w->n, sizeof *ids, compare_ids);
    for (size_t i = 1; i < w->n && twin < 0; i++) {
        if (ids[i] == ids[i - 1])
            twin = ids[i];
    }
    free(ids);
    if (twin < 0)
        return 0;
    uint32_t lines[2] = {0, 0};
    for (size_t i = 0; i < w->n; i++) {
        if (w->jobs[i].id == twin && (lines[0] == 0 || w->jobs[i].line < lines[0])) {
            lines[1] = lines[0];
            lines[0] = w->jobs[i].line;
        } else if (w->jobs[i].id == twin && (lines[1] == 0 || w->jobs[i].line < lines[1])) {
            lines[1] = w->jobs[i].line;
        }
    }
    return err_set(e, ERR_USAGE, "%s:%u:1: job %" PRId64 " is already in line %u", file,
                   lines[1], twin, lines[0]);
}

int
workload_sort(struct workload *w, const char *file, struct err *e)
{
    if (!ids_ascend(w) && refuse_twins(w, file, e) < 0)
        return -1;
    if (!is_sorted(w))
        qsort(w->jobs, w->n, sizeof *w->jobs, compare_jobs);
    return 0;
}

static int
refuse_job(const struct sim_job *job, const struct shape *s, const struct machine *m,
           const char *file, struct err *e)
{
    char vram[24];
    int32_t most = 0;
    for (int i = 0; i < m->n; i++)
        most = m->total_mib[i] > most ? m->total_mib[i] : most;
    if (s->n > m->n)
        return err_set(e, ERR_REFUSED, "%s:%u: job %" PRId64 " needs %d GPUs; there are %d",
                       file, job->line, job->id, s->n, m->n);
    return err_set(e, ERR_REFUSED,
                   "%s:%u: job %" PRId64 " needs %s and a margin of %d MiB on %d of the GPUs "
                   "it may have; the largest has %d MiB",
                   file, job->line, job->id, format_mib(s->vram_mib, vram), m->margin_mib, s->n,
                   most);
}

int
workload_check(const struct workload *w, const struct machine *m, const char *file,
               struct err *e)
{
    struct node node;
    node_init(&node, m->total_mib, m->n, m->margin_mib);
    for (size_t i = 0; i < w->n_shapes; i++) {
        if (node_fits_empty(&node, &w->shapes[i]))
            continue;
        for (size_t j = 0; j < w->n; j++) {
            if (w->jobs[j].shape == i)
                return refuse_job(&w->jobs[j], &w->shapes[i], m, file, e);
        }
    }
    return 0;
}
