/* The look ahead and how long it is good for; see forecast.h. Called by jobjson.c and
 * method_explain.c, once for each job that they show. A look that took 40 ms is good for 400,
 * so whoever asks again and again takes a tenth of the daemon at most. */
#include "daemon/forecast.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "core/job.h"
#include "core/plan.h"
#include "daemon/daemon.h"

#define STARTS_MAX  1000 /* looked ahead */
#define GOOD_FACTOR 10   /* times what it cost */

struct forecast {
    struct expected_start *starts; /* owned; by job */
    size_t n;
    int64_t good_until_us; /* boot clock */
};

static int
compare_jobs(const void *a, const void *b)
{
    const struct expected_start *x = a, *y = b;
    return x->job < y->job ? -1 : x->job > y->job;
}

static struct forecast *
look_ahead(struct daemon *d)
{
    int64_t begun_us = clock_boot_us();
    if (!d->forecast)
        d->forecast = xcalloc(1, sizeof *d->forecast);
    struct forecast *f = d->forecast;
    if (begun_us < f->good_until_us)
        return f;
    free(f->starts);
    f->starts = NULL;
    f->n =
        plan_forecast(d->planner, d->queue, d->ledger, clock_wall_us(), STARTS_MAX, &f->starts);
    if (f->n > 1)
        qsort(f->starts, f->n, sizeof *f->starts, compare_jobs);
    int64_t now_us = clock_boot_us();
    f->good_until_us = now_us + (now_us - begun_us) * GOOD_FACTOR;
    return f;
}

int64_t
forecast_start_us(struct daemon *d, const struct job *job)
{
    int64_t now_us = clock_wall_us();
    if (job->state != JOB_PENDING)
        return 0;
    if (job->begin_us > now_us || job->parked)
        return job->parked ? 0 : job->begin_us;
    const struct reservation *r = planner_reservation(d->planner);
    if (r->job == job->id && r->at_us != INT64_MAX)
        return r->at_us; /* what it was promised */
    const struct forecast *f = look_ahead(d);
    const struct expected_start key = {.job = job->id};
    const struct expected_start *found =
        f->n ? bsearch(&key, f->starts, f->n, sizeof key, compare_jobs) : NULL;
    return found && found->at_us != INT64_MAX ? found->at_us : 0;
}

void
forecast_free(struct daemon *d)
{
    if (!d->forecast)
        return;
    free(d->forecast->starts);
    free(d->forecast);
    d->forecast = NULL;
}
