/* The figures. Sums of times are exact; slowdowns are added up in order of arrival, as in the
 * reference. */
#include "sim/schedule_figures.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"

static void
swap(int64_t *a, int64_t *b)
{
    int64_t t = *a;
    *a = *b;
    *b = t;
}

/* The k-th smallest, from 0, by quickselect; the array is reordered. */
static int64_t
select_kth(int64_t *v, size_t n, size_t k)
{
    size_t low = 0, high = n - 1;
    while (low < high) {
        int64_t pivot = v[low + (high - low) / 2];
        size_t i = low, j = high;
        for (;;) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i >= j)
                break;
            swap(&v[i++], &v[j--]);
        }
        /* v[low..j] <= pivot <= v[j+1..high] */
        if (k <= j)
            high = j;
        else
            low = j + 1;
    }
    return v[k];
}

/* The ceil(percent/100 n)-th smallest. */
static int64_t
percentile(int64_t *v, size_t n, size_t percent)
{
    size_t rank = (n * percent + 99) / 100;
    return select_kth(v, n, rank ? rank - 1 : 0);
}

/* The VRAM that the job takes, summed over its cards. */
static int64_t
vram_taken(const struct shape *s, const struct machine *m, uint64_t cards)
{
    int64_t sum = 0;
    for (; cards; cards &= cards - 1)
        sum += shape_takes_mib(s, m->total_mib[__builtin_ctzll(cards)]);
    return sum;
}

struct sums {
    __int128 wait, jct, multi, vram;
    double slowdown;
    int64_t first_arrival, last_end;
};

static void
add_job(const struct sim_job *job, const struct shape *shape, const struct machine *m,
        const struct sim_run *run, struct sums *sums, struct metrics *out)
{
    int64_t wait = run->start - job->arrival, end = run->start + job->duration;
    double slowdown =
        (double)(wait + job->duration) / (double)(job->duration > 10 ? job->duration : 10);
    sums->wait += wait;
    sums->jct += end - job->arrival;
    sums->slowdown += slowdown > 1 ? slowdown : 1;
    sums->vram += (__int128)vram_taken(shape, m, run->cards) * job->duration;
    if (job->arrival < sums->first_arrival)
        sums->first_arrival = job->arrival;
    if (end > sums->last_end)
        sums->last_end = end;
    if (wait > out->wait_max)
        out->wait_max = wait;
    if (shape->n > 1) {
        out->multi_jobs++;
        sums->multi += wait;
        if (wait > out->multi_max)
            out->multi_max = wait;
    }
    if (shape->n == m->n && wait > out->all_gpu_max)
        out->all_gpu_max = wait;
}

/* Waits, or times from arrival to end, of jobs that ran. */
static size_t
collect_times(const struct workload *w, const struct schedule *s, bool to_end, int64_t *out)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct sim_job *job = &w->jobs[i];
        if (s->runs[i].start >= 0)
            out[n++] = s->runs[i].start + (to_end ? job->duration : 0) - job->arrival;
    }
    return n;
}

void
metrics_compute(const struct workload *w, const struct machine *m, const struct schedule *s,
                struct metrics *out)
{
    struct sums sums = {.first_arrival = INT64_MAX, .last_end = INT64_MIN};
    auto_free int64_t *times = xmalloc((w->n + 1) * sizeof *times);
    int64_t total = 0;
    *out = (struct metrics){.jobs = collect_times(w, s, false, times),
                            .promised = s->promised,
                            .broken = s->broken,
                            .overtaken = s->overtaken};
    out->never_ran = w->n - out->jobs;
    if (out->jobs == 0)
        return;
    double n = (double)out->jobs;
    for (size_t i = 0; i < w->n; i++) {
        if (s->runs[i].start >= 0)
            add_job(&w->jobs[i], &w->shapes[w->jobs[i].shape], m, &s->runs[i], &sums, out);
    }
    out->wait_p95 = percentile(times, out->jobs, 95);
    out->wait_p99 = percentile(times, out->jobs, 99);
    collect_times(w, s, true, times);
    out->jct_p99 = percentile(times, out->jobs, 99);
    for (int i = 0; i < m->n; i++)
        total += m->total_mib[i];
    out->makespan = sums.last_end - sums.first_arrival;
    out->wait_mean = (double)sums.wait / n;
    out->jct_mean = (double)sums.jct / n;
    out->bsld = sums.slowdown / n;
    if (out->multi_jobs)
        out->multi_mean = (double)sums.multi / (double)out->multi_jobs;
    if (out->makespan)
        out->mem_util = (double)sums.vram / ((double)total * (double)out->makespan);
}
