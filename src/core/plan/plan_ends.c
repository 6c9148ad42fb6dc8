/* When a running job is expected to end: by its time limit, else by its estimate, else
 * unknown. An overdue job, and one whose processes are gone, is expected to end in a second;
 * one that was asked to stop, by the end of its grace. Called by reserve.c and preempt.c, so a
 * pass in which nothing is blocked does not pay for it. */
#include <stdlib.h>

#include "base/err.h"
#include "core/plan/plan_priv.h"

#define SECOND_US INT64_C(1000000)

static int
compare_runs(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    if (x->end_us != y->end_us)
        return x->end_us < y->end_us ? -1 : 1;
    if (x->due_us != y->due_us)
        return x->due_us < y->due_us ? -1 : 1;
    /* With no known end, the younger first: a job that has run long is likely to run long. */
    if (x->started_us != y->started_us)
        return x->started_us > y->started_us ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

void
runs_sort(struct planning *pl)
{
    if (pl->n_runs > 1)
        qsort(pl->runs, pl->n_runs, sizeof *pl->runs, compare_runs);
}

int64_t
promise_over_us(const struct planning *pl, const struct job *job, int64_t from_us)
{
    if (job->req.limit_ms <= 0)
        return NEVER;
    return from_us + (job->req.limit_ms + request_grace_ms(&job->req)) * 1000 +
           pl->planner->rules.settle_ms * 1000;
}

static struct run
run_of(const struct planning *pl, uint32_t id, const struct job *job, int64_t started_us)
{
    struct run run = {.id = id,
                      .end_us = NEVER,
                      .due_us = NEVER,
                      .started_us = started_us,
                      .over_us = pl->planner ? promise_over_us(pl, job, started_us) : NEVER};
    if (job->span_ms <= 0)
        return run;
    run.due_us = started_us + job->span_ms * 1000;
    run.end_us = run.due_us > pl->now_us ? run.due_us : pl->now_us + SECOND_US;
    run.firm = job->req.limit_ms > 0;
    return run;
}

static void
make_leave(struct run *run, int64_t by_us)
{
    run->leaving = run->firm = true;
    if (by_us < run->end_us)
        run->end_us = by_us;
}

static struct run
run_of_active(const struct planning *pl, const struct job *job)
{
    int64_t started_us = pl->now_us;
    if (job->run && job->run->started_us)
        started_us = job->run->started_us + job->run->clock_set_us;
    struct run run = run_of(pl, job->id, job, started_us);
    run.job = job;
    if (job->state == JOB_SUSPENDED) {
        run.end_us = run.due_us = run.over_us = NEVER;
        run.firm = false;
    }
    if (job->state == JOB_COMPLETING)
        make_leave(&run, pl->now_us + SECOND_US);
    else if (job->cancel_asked || job->requeue_asked)
        make_leave(&run, pl->now_us + job_grace_ms(job) * 1000 + SECOND_US);
    return run;
}

static void
runs_push(struct planning *pl, struct run run)
{
    pl->runs = xgrow(pl->runs, pl->n_runs, &pl->cap_runs, sizeof *pl->runs);
    pl->runs[pl->n_runs++] = run;
}

void
runs_make(struct planning *pl)
{
    if (pl->has_runs)
        return;
    pl->has_runs = true;
    for (struct job *job = queue_active(pl->q); job; job = queue_active_next(job))
        runs_push(pl, run_of_active(pl, job));
    for (size_t i = 0; i < pl->p->n; i++) {
        const struct decision *d = &pl->p->decisions[i];
        if (d->type == PLAN_START)
            runs_push(pl, run_of(pl, d->task >= 0 ? d->as : d->job, queue_get(pl->q, d->job),
                                 pl->now_us));
    }
    runs_sort(pl);
}

void
runs_started(struct planning *pl, uint32_t id, const struct job *job)
{
    if (!pl->has_runs)
        return;
    struct run run = run_of(pl, id, job, pl->now_us);
    runs_push(pl, run);
    size_t at = pl->n_runs - 1;
    for (; at > 0 && compare_runs(&run, &pl->runs[at - 1]) < 0; at--)
        pl->runs[at] = pl->runs[at - 1];
    pl->runs[at] = run;
    if (pl->ahead_known && run.end_us == NEVER) {
        uint8_t gpus[GPU_MAX];
        int n = ledger_cards_of(pl->l, id, gpus);
        ledger_hold(pl->ahead_known, id, &job->req.demand, gpus, n);
    }
}

void
runs_free(struct planning *pl)
{
    free(pl->runs);
    ledger_free(pl->ahead_known);
    ledger_free(pl->ahead_all);
}

const struct ledger *
ahead_all(struct planning *pl)
{
    if (pl->ahead_all)
        return pl->ahead_all;
    pl->ahead_all = ledger_clone(pl->l);
    runs_make(pl);
    for (size_t i = 0; i < pl->n_runs; i++)
        ledger_release_ahead(pl->ahead_all, pl->runs[i].id);
    return pl->ahead_all;
}
