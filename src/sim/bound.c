/* A lower bound of the makespan, from dual feasible functions as in the reference simulator.
 * If cards differ in size, all are taken to be as large as the largest, which is still a
 * bound; in addition the plain sum of VRAM is compared with the plain sum over cards. Jobs may
 * differ in the margin that they leave free on a card (a share leaves none, and a line of a
 * jobs file may set its own), so the smallest is used for all. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sim/schedule_figures.h"

#define ROUNDINGS      7
#define THRESHOLDS_MAX 256 /* each costs some milliseconds per million jobs */

static const int roundings[ROUNDINGS] = {1, 2, 3, 4, 5, 7, 9};

/* Values of the functions by shape: weight[shape * n + function]. */
struct weights {
    size_t n;
    double *weight; /* owned */
    double *work;   /* owned; per function, summed so far */
    double *best;   /* owned; per function, the latest end that it proves */
};

/* The machine's sizes that the functions need, in MiB without margins. */
struct capacity {
    int64_t largest, smallest, sum;
    int n;
};

static int32_t
least_margin(const struct workload *w, const struct machine *m)
{
    int32_t least = m->margin_mib;
    for (size_t i = 0; i < w->n_shapes; i++)
        if (w->shapes[i].share_permille > 0)
            least = 0;
    for (size_t i = 0; i < w->n_requests; i++) {
        int32_t own = w->requests[i].demand.margin_mib;
        if (own >= 0 && own < least)
            least = own;
    }
    return least;
}

static struct capacity
capacity_of(const struct workload *w, const struct machine *m)
{
    const int32_t margin_mib = least_margin(w, m);
    struct capacity c = {.largest = 1, .smallest = INT64_MAX, .n = m->n};
    for (int i = 0; i < m->n; i++) {
        int64_t usable = m->total_mib[i] - margin_mib;
        if (usable < 1)
            usable = 1;
        c.largest = usable > c.largest ? usable : c.largest;
        c.smallest = usable < c.smallest ? usable : c.smallest;
        c.sum += usable;
    }
    return c;
}

/* VRAM that a job takes of a card, at most cap; shares are parts of `whole`. */
static int64_t
size_of(const struct shape *s, int64_t cap, int64_t whole)
{
    int64_t size = shape_takes_mib(s, whole);
    return size > cap ? cap : size;
}

static int
compare_sizes(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return *x == *y ? 0 : *x < *y ? -1 : 1;
}

/* The distinct sizes up to half a card. */
static size_t
thresholds(const struct workload *w, int64_t cap, int64_t *out)
{
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < w->n_shapes; i++) {
        int64_t size = size_of(&w->shapes[i], cap, cap);
        if (2 * size <= cap)
            out[n++] = size;
    }
    qsort(out, n, sizeof *out, compare_sizes);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || out[i] != out[kept - 1])
            out[kept++] = out[i];
    }
    if (kept <= THRESHOLDS_MAX)
        return kept;
    for (size_t i = 0; i < THRESHOLDS_MAX; i++)
        out[i] = out[i * kept / THRESHOLDS_MAX];
    return THRESHOLDS_MAX;
}

/* A large job counts as a whole card, one smaller than the threshold as nothing. */
static double
by_threshold(int64_t v, int64_t cap, int64_t threshold)
{
    if (v > cap - threshold)
        return 1;
    return v >= threshold ? (double)v / (double)cap : 0;
}

/* Rounds down to multiples of 1/k. */
static double
by_rounding(int64_t v, int64_t cap, int k)
{
    int64_t product = (k + 1) * v;
    int64_t full = product / cap;
    return product % cap == 0 ? (double)v / (double)cap : (double)full / k;
}

static void
weights_make(const struct workload *w, const struct capacity *c, struct weights *x)
{
    auto_free int64_t *limits = xmalloc((w->n_shapes + 1) * sizeof *limits);
    int64_t cap = c->largest;
    size_t n_limits = thresholds(w, cap, limits);
    x->n = n_limits + ROUNDINGS + 2;
    x->weight = xmalloc(w->n_shapes * x->n * sizeof *x->weight);
    x->work = xcalloc(x->n, sizeof *x->work);
    x->best = xcalloc(x->n, sizeof *x->best);
    for (size_t i = 0; i < w->n_shapes; i++) {
        const struct shape *s = &w->shapes[i];
        int64_t v = size_of(s, cap, cap);
        double *at = &x->weight[i * x->n];
        *at++ = (double)size_of(s, cap, c->smallest) * s->n / (double)c->sum;
        *at++ = (2 * v > cap ? 1.0 : 0.0) * s->n / c->n;
        for (size_t k = 0; k < n_limits; k++)
            *at++ = by_threshold(v, cap, limits[k]) * s->n / c->n;
        for (int k = 0; k < ROUNDINGS; k++)
            *at++ = by_rounding(v, cap, roundings[k]) * s->n / c->n;
    }
}

/* From the last arrival backwards: work that arrives at r or later takes that long after r. */
static int64_t
add_work(const struct workload *w, struct weights *x)
{
    int64_t first = w->jobs[0].arrival, best = 0;
    double most = 0;
    for (size_t i = w->n; i-- > 0;) {
        const struct sim_job *job = &w->jobs[i];
        const double *weight = &x->weight[job->shape * x->n];
        double run = (double)job->duration, from = (double)(job->arrival - first);
        for (size_t k = 0; k < x->n; k++) {
            x->work[k] += weight[k] * run;
            double end = x->work[k] + from;
            x->best[k] = end > x->best[k] ? end : x->best[k];
        }
        if (job->arrival - first + job->duration > best)
            best = job->arrival - first + job->duration;
    }
    for (size_t k = 0; k < x->n; k++)
        most = x->best[k] > most ? x->best[k] : most;
    int64_t proved = (int64_t)ceil(most - 1e-6);
    return proved > best ? proved : best;
}

int64_t
bound_makespan(const struct workload *w, const struct machine *m)
{
    struct weights x;
    struct capacity c = capacity_of(w, m);
    weights_make(w, &c, &x);
    int64_t bound = add_work(w, &x);
    free(x.weight);
    free(x.work);
    free(x.best);
    return bound;
}
