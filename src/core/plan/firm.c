/* Promised starts; see plan_priv.h. A promise is made (firm_new.c) where time limits, which
 * are enforced, bound everything in its way: the running jobs that must end first, and the
 * promised jobs ahead of it. From then on it is a deadline. The order still decides which job
 * is tried first, but no job starts that would still run at that time and leave the promised
 * job without room. So a promised start never gets later, unless a job of higher priority
 * comes, the job itself is changed, or the machine changes: a GPU is lost, other processes
 * take memory, or a job does not end when killed. */
#include <stdlib.h>
#include <string.h>

#include "core/plan/plan_priv.h"

/* The planner's. */

const struct promise *
planner_promises(const struct planner *p, size_t *n)
{
    *n = p->n_promises;
    return p->promises;
}

const struct promise *
planner_promise_of(const struct planner *p, uint32_t job)
{
    for (size_t i = 0; i < p->n_promises; i++) {
        if (p->promises[i].job == job)
            return &p->promises[i];
    }
    return NULL;
}

void
promise_insert(struct planner *p, const struct promise *x)
{
    size_t at = p->n_promises++;
    for (; at > 0 && x->at_us < p->promises[at - 1].at_us; at--)
        p->promises[at] = p->promises[at - 1];
    p->promises[at] = *x;
}

void
planner_restore_promise(struct planner *p, const struct promise *x)
{
    if (p->n_promises < PROMISES_MAX && !planner_promise_of(p, x->job))
        promise_insert(p, x);
}

void
planner_clock_set(struct planner *p, int64_t by_us)
{
    balance_clock_set(p->balance, by_us);
    for (size_t i = 0; i < p->n_promises; i++) {
        p->promises[i].at_us += by_us;
        if (p->promises[i].misfit_us)
            p->promises[i].misfit_us += by_us;
    }
}

/* Whether the promised job still waits with the same request. */
static bool
is_as_it_was(const struct planning *pl, struct promise *x)
{
    const struct job *job = queue_get(pl->q, x->job);
    if (!job || !job->kind)
        return false;
    if (!x->demand_hash)
        x->demand_hash = job->kind->demand_hash; /* restored after a restart */
    return job->kind->demand_hash == x->demand_hash && job->req.limit_ms == x->limit_ms;
}

/* Jobs that may start. */

bool
promise_is_due(const struct planning *pl, const struct job *job)
{
    const struct promise *x = planner_promise_of(pl->planner, job->id);
    return x && x->at_us <= pl->now_us;
}

/* Whether the promise restricts this job, which would still run at that time. */
static bool
is_bound(const struct planning *pl, const struct job *job, int64_t over_us,
         const struct promise *x)
{
    return over_us > x->at_us && x->job != job->id &&
           job->req.priority <= queue_get(pl->q, x->job)->req.priority;
}

bool
promises_allow(struct planning *pl, const struct job *job, const struct placement *where,
               struct blocked *why)
{
    const struct planner *p = pl->planner;
    int64_t over_us = p->n_promises ? promise_over_if_started_us(pl, job, pl->now_us) : 0;
    if (p->n_promises)
        promise_rooms_make(pl); /* may break promises */
    for (size_t i = 0; i < p->n_promises; i++) {
        const struct promise *x = &p->promises[i];
        if (!is_bound(pl, job, over_us, x))
            continue;
        if (promise_stands_with(pl, i, job, cards_of_placement(where)))
            continue;
        *why = (struct blocked){.reason = REASON_RESERVATION,
                                .gpu = -1,
                                .waits_for = {.id = x->job},
                                .until_us = x->at_us,
                                .until_firm = true};
        return false;
    }
    return true;
}

uint64_t
promises_leave(struct planning *pl, const struct job *job, uint64_t cards)
{
    const struct planner *p = pl->planner;
    int64_t over_us = promise_over_if_started_us(pl, job, pl->now_us);
    if (p->n_promises)
        promise_rooms_make(pl); /* may break promises */
    for (size_t i = 0; i < p->n_promises && cards; i++) {
        if (!is_bound(pl, job, over_us, &p->promises[i]))
            continue;
        bool was_booked = promise_unbook(pl->rooms[i], job);
        cards = place_cards_beside(&job->req.demand, pl->rooms[i], cards);
        if (was_booked)
            promise_book(pl->rooms[i], job, planner_promise_of(p, job->id)->cards);
    }
    return cards;
}

uint64_t
promises_close(const struct planning *pl, const struct job *job)
{
    const struct planner *p = pl->planner;
    int64_t over_us = promise_over_if_started_us(pl, job, pl->now_us);
    uint64_t cards = 0;
    for (size_t i = 0; i < p->n_promises; i++) {
        if (is_bound(pl, job, over_us, &p->promises[i]))
            cards |= p->promises[i].cards;
    }
    return cards;
}

/* Breaks promises of lower priority that lose their room to the job. */
static void
break_those_below(struct planning *pl, const struct job *job, const struct placement *where,
                  int64_t over_us)
{
    const struct planner *p = pl->planner;
    bool loses[PROMISES_MAX] = {false};
    if (p->n_promises)
        promise_rooms_make(pl); /* may break promises */
    for (size_t i = 0; i < p->n_promises; i++) {
        const struct promise *x = &p->promises[i];
        if (over_us <= x->at_us || is_bound(pl, job, over_us, x))
            continue;
        loses[i] = !promise_stands_with(pl, i, job, cards_of_placement(where));
    }
    for (size_t i = p->n_promises; i-- > 0;) {
        if (loses[i])
            promise_break(pl, i, BROKEN_PRIORITY, job->id);
    }
}

void
promises_started(struct planning *pl, const struct job *job, uint32_t id,
                 const struct placement *where)
{
    struct planner *p = pl->planner;
    if (job->req.demand.engine == ENGINE_SLURM)
        return;
    int64_t over_us = promise_over_if_started_us(pl, job, pl->now_us);
    const struct promise *own = planner_promise_of(p, job->id);
    if (own) {
        pl->p->kept[pl->p->n_kept++] = (struct kept_promise){.promise = *own, .as = id};
        promise_drop(pl, (size_t)(own - p->promises));
        pl->has_kept_one = true;
    }
    break_those_below(pl, job, where, over_us);
    for (size_t i = 0; pl->has_rooms && i < p->n_promises; i++) {
        if (over_us > p->promises[i].at_us)
            ledger_hold(pl->rooms[i], id, &job->req.demand, where->gpus, where->n);
    }
}

/* Whether the promise can still be kept if the reserved job starts as expected. */
static bool
stands_with_kept(struct planning *pl, size_t i)
{
    const struct keep *k = &pl->keep;
    const struct promise *x = &pl->planner->promises[i];
    const struct job *job = queue_get(pl->q, x->job);
    if (k->at_us <= x->at_us)
        return promise_over_if_started_us(pl, k->job, k->at_us) <= x->at_us ||
               promise_stands_with(pl, i, k->job, k->cards);
    return promise_over_if_started_us(pl, job, x->at_us) <= k->in_time_us ||
           reserve_stands_with(pl, job, x->cards);
}

void
promises_give_way(struct planning *pl)
{
    const struct planner *p = pl->planner;
    const struct job *first = pl->keep.job;
    bool loses[PROMISES_MAX] = {false};
    if (!p->n_promises || planner_promise_of(p, first->id))
        return;
    promise_rooms_make(pl);
    for (size_t i = 0; i < p->n_promises; i++)
        loses[i] = queue_get(pl->q, p->promises[i].job)->req.priority < first->req.priority &&
                   !stands_with_kept(pl, i);
    for (size_t i = p->n_promises; i-- > 0;) {
        if (loses[i])
            promise_break(pl, i, BROKEN_PRIORITY, first->id);
    }
}

/* The pass. */

/* Drops promises that the job or the settings no longer allow. */
static void
drop_void_ones(struct planning *pl)
{
    struct planner *p = pl->planner;
    for (size_t i = p->n_promises; i-- > 0;) {
        struct promise *x = &p->promises[i];
        if (!is_as_it_was(pl, x)) {
            promise_drop(pl, i);
            p->has_ended = true;
        } else if (!promise_is_possible(pl, queue_get(pl->q, x->job))) {
            promise_break(pl, i, BROKEN_LIMIT, 0);
        }
    }
    /* A failed start may restore one promise too many; only new rules reduce the number. */
    while (p->has_new_rules && p->n_promises > (size_t)p->rules.reservations)
        promise_break(pl, p->n_promises - 1, BROKEN_SETTINGS, 0);
    p->has_new_rules = false;
}

static uint64_t
cards_up(const struct ledger *l)
{
    uint64_t up = 0;
    for (int i = 0; i < ledger_n_cards(l); i++)
        up |= card_state(ledger_card(l, i)) == GPU_UP ? UINT64_C(1) << i : 0;
    return up;
}

void
promises_begin(struct planning *pl)
{
    struct planner *p = pl->planner;
    uint64_t up = cards_up(pl->l);
    drop_void_ones(pl);
    p->has_ended |= (up & ~p->up) != 0;
    p->up = up;
    if (!p->n_promises)
        return;
    promise_rooms_make(pl);
    if (p->has_ended)
        promises_move_up(pl);
    p->has_ended = false;
}

void
promises_end(struct planning *pl)
{
    struct planner *p = pl->planner;
    for (size_t i = p->n_promises; i-- > 0;) {
        if (p->promises[i].at_us <= pl->now_us)
            promise_break_for_cause(pl, i);
    }
    if (pl->has_kept_one)
        promises_move_up(pl);
    for (size_t i = 0; i < p->n_promises; i++)
        wake_at(pl, p->promises[i].at_us);
    promise_rooms_free(pl);
}
