/* Which starts are promised, and for when; see firm.c. In scheduling order: once a job that
 * waits for running jobs cannot be promised its start, or not yet, no later job gets a
 * promise, because that might delay the first one. Until its start is near (rules.horizon_ms),
 * a job has only the reservation of reserve.c, beside which others may start by their
 * estimates: a promise counts by limits, and would keep GPUs idle for hours that such jobs
 * could use. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "core/plan/plan_priv.h"

/* After a job without a limit was seen waiting, more may come for this long. */
#define UNLIMITED_US (INT64_C(86400) * 1000000)

#define TRIES_MAX 32 /* jobs per pass tried in vain, because others' promises block them */

bool
promise_is_possible(const struct planning *pl, const struct job *job)
{
    const struct limits *limits = pl->planner->rules.limits;
    const struct demand *d = &job->req.demand;
    if (d->max_used_permille || d->max_load_permille || plan_array_bound(pl, job))
        return false;
    if (!limits)
        return true;
    const struct limit *own = limits_of(limits, job->uid), *all = &limits->all;
    return !own->running && !own->gpus && !own->vram_mib && !all->running && !all->gpus &&
           !all->vram_mib;
}

/* When a running or promised job is certainly over. */
struct over {
    int64_t at_us;
    uint32_t id;
};

static int
compare_overs(const void *a, const void *b)
{
    const struct over *x = a, *y = b;
    if (x->at_us != y->at_us)
        return x->at_us < y->at_us ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Sorted by time. The caller frees the list. */
static struct over *
list_overs(struct planning *pl, size_t *n)
{
    const struct planner *p = pl->planner;
    runs_make(pl);
    struct over *overs = xmalloc((pl->n_runs + p->n_promises + 1) * sizeof *overs);
    *n = 0;
    for (size_t i = 0; i < pl->n_runs; i++) {
        const struct run *run = &pl->runs[i];
        if (run->over_us != NEVER)
            overs[(*n)++] = (struct over){run->over_us + PROMISE_LAUNCH_US, run->id};
    }
    for (size_t i = 0; i < p->n_promises; i++) {
        const struct promise *x = &p->promises[i];
        int64_t over_us = promise_over_if_started_us(pl, queue_get(pl->q, x->job), x->at_us);
        if (over_us != NEVER)
            overs[(*n)++] = (struct over){over_us, x->job};
    }
    if (*n)
        qsort(overs, *n, sizeof *overs, compare_overs);
    return overs;
}

/* Places the job at that time, in the ledger as of then, without taking room from later
 * promises. */
static bool
place_at(struct planning *pl, const struct job *job, const struct ledger *l, int64_t at_us,
         struct placement *where)
{
    const struct planner *p = pl->planner;
    int64_t over_us = promise_over_if_started_us(pl, job, at_us);
    uint64_t cards = UINT64_MAX;
    size_t first = 0;
    while (first < p->n_promises && p->promises[first].at_us < at_us)
        first++;
    for (size_t i = first; i < p->n_promises && over_us > p->promises[i].at_us; i++)
        cards = place_cards_beside(&job->req.demand, pl->rooms[i], cards);
    if (!place_job_within(&job->req.demand, l, cards, NULL, where, NULL))
        return false;
    for (size_t i = first; i < p->n_promises && over_us > p->promises[i].at_us; i++) {
        if (!promise_stands_with(pl, i, job, cards_of_placement(where)))
            return false;
    }
    return true;
}

/* The earliest time before before_us at which the job has room for certain, and can keep
 * it. */
static bool
find_time(struct planning *pl, const struct job *job, int64_t before_us, struct promise *out)
{
    const struct planner *p = pl->planner;
    size_t n, n_gone = 0, n_before = 0;
    bool found = false;
    promise_rooms_make(pl);
    auto_free struct over *overs = list_overs(pl, &n);
    struct ledger *l = ledger_clone(pl->l);
    for (size_t i = 0; i < n && overs[i].at_us < before_us && !found; i++) {
        int64_t at_us = overs[i].at_us;
        struct placement where;
        if (at_us <= pl->now_us || (i > 0 && at_us == overs[i - 1].at_us))
            continue;
        for (; n_before < p->n_promises && p->promises[n_before].at_us <= at_us; n_before++)
            promise_book(l, queue_get(pl->q, p->promises[n_before].job),
                         p->promises[n_before].cards);
        for (; n_gone < n && overs[n_gone].at_us <= at_us; n_gone++)
            ledger_release_ahead(l, overs[n_gone].id);
        found = place_at(pl, job, l, at_us, &where);
        if (found) {
            out->at_us = at_us;
            out->cards = cards_of_placement(&where);
        }
    }
    ledger_free(l);
    return found;
}

/* Whether the job may be moved to an earlier time. That time follows from limits alone, and
 * must not take room kept for a job that goes first and has no promise. */
static bool
may_be_earlier(const struct planning *pl, const struct job *job)
{
    const struct reservation *r = &pl->planner->reserved;
    const struct job *first = r->job ? queue_get(pl->q, r->job) : NULL;
    if (!first || !first->kind || first == job || planner_promise_of(pl->planner, first->id))
        return true;
    return !r->lasting && first->req.priority <= job->req.priority;
}

void
promises_move_up(struct planning *pl)
{
    struct planner *p = pl->planner;
    for (size_t i = 0; i < p->n_promises; i++) {
        struct promise x = p->promises[i];
        const struct job *job = queue_get(pl->q, x.job);
        if (!may_be_earlier(pl, job))
            continue;
        promise_drop(pl, i);
        (void)find_time(pl, job, x.at_us, &x);
        promise_rooms_free(pl);
        promise_insert(p, &x);
    }
}

/* A job of higher priority that is held back by a limit may start, and take its room, at any
 * time: when other jobs of its user, or tasks of its array, end, which cannot be predicted. */
static bool
is_below_a_limited_one(const struct planning *pl, const struct job *job)
{
    for (struct job *run = queue_active(pl->q); run; run = queue_active_next(run)) {
        const struct job *array = run->array ? queue_get(pl->q, run->array) : NULL;
        if (array && array->req.priority > job->req.priority &&
            array->parked & PARK_ARRAY_LIMIT && array_next(array) >= 0)
            return true;
    }
    return pl->limited_priority > job->req.priority;
}

static int64_t
horizon_of(const struct planning *pl)
{
    const struct planner *p = pl->planner;
    if (p->rules.horizon_ms >= 0)
        return p->rules.horizon_ms * 1000;
    bool are_unlimited = p->unlimited_us && pl->now_us - p->unlimited_us < UNLIMITED_US;
    return are_unlimited ? PROMISE_HORIZON_MS * 1000 : 0;
}

/* Whether the time is within the horizon. If not, wakes the planner when it will be. */
static bool
is_near(struct planning *pl, int64_t at_us)
{
    int64_t horizon_us = horizon_of(pl);
    if (!horizon_us || at_us - pl->now_us <= horizon_us)
        return true;
    wake_at(pl, at_us - horizon_us);
    return false;
}

void
promise_to(struct planning *pl, const struct job *job)
{
    struct planner *p = pl->planner;
    struct promise x = {
        .job = job->id, .demand_hash = job->kind->demand_hash, .limit_ms = job->req.limit_ms};
    struct placement unused;
    if (pl->has_unpromised || p->n_promises >= (size_t)p->rules.reservations ||
        p->rules.textbook || planner_promise_of(p, job->id))
        return;
    if (pl->n_promise_tries++ >= TRIES_MAX ||
        !place_job(&job->req.demand, ahead_all(pl), &unused, NULL))
        return; /* what blocks it is not ours, or does not exist */
    if (promise_is_possible(pl, job) && !is_below_a_limited_one(pl, job) &&
        find_time(pl, job, NEVER, &x) && is_near(pl, x.at_us)) {
        promise_rooms_free(pl);
        promise_insert(p, &x);
    } else {
        pl->has_unpromised = true;
    }
}
