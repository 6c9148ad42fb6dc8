/* Computes and caches the forecast; see expected_starts.h. Called by job_view.c and
 * method_explain.c, once for each job that they show. A forecast that took 40 ms is valid for
 * 400 ms, so repeated requests take at most a tenth of the daemon's time. A forecast that
 * takes longer than a slice continues in the following turns; meanwhile the previous one is
 * used. */
#include "daemon/view/expected_starts.h"

#include <stdlib.h>
#include <uv.h>

#include "base/clock.h"
#include "base/err.h"
#include "core/plan/plan.h"
#include "core/queue/job.h"
#include "daemon/common/instance.h"
#include "daemon/common/pace.h"
#include "daemon/view/views.h"

#define STARTS_MAX  1000  /* starts to forecast */
#define GOOD_FACTOR 10    /* validity as a multiple of the cost */
#define SLICE_US    10000 /* CPU time: a short one completes at once on a busy machine too */

struct forecast {
    struct expected_start *starts; /* owned; sorted by job */
    size_t n;
    int64_t as_of_us;         /* wall clock: time of the forecast */
    int64_t good_until_us;    /* boot clock */
    struct forecast_run *run; /* the next forecast while it is computed */
    int64_t run_as_of_us, run_cost_us;
    uv_idle_t idle;
};

static int
compare_jobs(const void *a, const void *b)
{
    const struct expected_start *x = a, *y = b;
    return x->job < y->job ? -1 : x->job > y->job;
}

static void
take_over(struct forecast *f)
{
    free(f->starts);
    f->starts = NULL;
    f->n = forecast_run_end(f->run, &f->starts);
    f->run = NULL;
    f->as_of_us = f->run_as_of_us;
    if (f->n > 1)
        qsort(f->starts, f->n, sizeof *f->starts, compare_jobs);
    f->good_until_us = clock_boot_us() + f->run_cost_us * GOOD_FACTOR;
    uv_idle_stop(&f->idle);
}

/* Runs one slice of the forecast. */
static void
go_on(struct views *views, struct forecast *f)
{
    int64_t begun_us = clock_thread_us(), now_us = begun_us;
    bool more = true;
    while (more && now_us - begun_us < SLICE_US) {
        more = forecast_run_step(f->run);
        now_us = clock_thread_us();
    }
    f->run_cost_us += now_us - begun_us;
    pace_spent(views->pace, "forecast", UINT32_MAX);
    if (!more)
        take_over(f);
}

static void
on_idle(uv_idle_t *idle)
{
    struct views *views = idle->data;
    go_on(views, views->forecast);
}

static struct forecast *
look_ahead(struct views *views)
{
    struct forecast *f = views->forecast;
    if (!f) {
        f = views->forecast = xcalloc(1, sizeof *f);
        uv_idle_init(views->inst->loop, &f->idle);
        f->idle.data = views;
    }
    if (f->run || clock_boot_us() < f->good_until_us || views->inst->leaving)
        return f;
    int64_t begun_us = clock_thread_us();
    f->run_as_of_us = clock_wall_us();
    f->run = forecast_run_begin(views->inst->planner, views->inst->queue, views->inst->ledger,
                                f->run_as_of_us, STARTS_MAX);
    f->run_cost_us = clock_thread_us() - begun_us;
    uv_idle_start(&f->idle, on_idle);
    go_on(views, f);
    return f;
}

int64_t
forecast_as_of_us(const struct views *views)
{
    return views->forecast ? views->forecast->as_of_us : 0;
}

/* The promise may be newer, and earlier, than the forecast. */
static int64_t
earlier(int64_t at_us, const struct promise *promised)
{
    return promised && promised->at_us < at_us ? promised->at_us : at_us;
}

int64_t
forecast_start_us(struct views *views, const struct job *job)
{
    if (job->state != JOB_PENDING || job->parked)
        return 0;
    const struct reservation *r = planner_reservation(views->inst->planner);
    const struct promise *promised = planner_promise_of(views->inst->planner, job->id);
    bool is_reserved = r->job == job->id && r->at_us != INT64_MAX;
    if (is_reserved && r->lasting)
        return earlier(r->at_us, promised);
    const struct forecast *f = look_ahead(views);
    const struct expected_start key = {.job = job->id};
    const struct expected_start *found =
        f->n ? bsearch(&key, f->starts, f->n, sizeof key, compare_jobs) : NULL;
    if (found && found->at_us != INT64_MAX)
        return earlier(found->at_us, promised);
    return promised ? promised->at_us : is_reserved ? r->at_us : 0;
}

void
forecast_forget(struct views *views)
{
    struct forecast *f = views->forecast;
    struct expected_start *unused = NULL;
    if (!f || !f->run)
        return;
    (void)forecast_run_end(f->run, &unused);
    free(unused);
    f->run = NULL;
    uv_idle_stop(&f->idle);
}

static void
on_closed(uv_handle_t *handle)
{
    struct views *views = handle->data;
    free(views->forecast->starts);
    free(views->forecast); /* which contains the handle */
    views->forecast = NULL;
}

void
forecast_free(struct views *views)
{
    if (!views->forecast)
        return;
    forecast_forget(views);
    uv_close((uv_handle_t *)&views->forecast->idle, on_closed);
}
