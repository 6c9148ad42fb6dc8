/* The room at the time of each promise; see firm.c. For each promise there is the ledger as it
 * will be then: running jobs whose limit is over have left it, and the promised jobs are
 * booked. Between promises room only becomes free, so a job that fits in each of these ledgers
 * until it ends delays no promise. This file also detects promises that cannot be kept. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/plan/plan_priv.h"

#define MISFIT_US INT64_C(60000000) /* how long a temporary obstacle is tolerated */

int64_t
promise_over_if_started_us(const struct planning *pl, const struct job *job, int64_t from_us)
{
    int64_t over_us = promise_over_us(pl, job, from_us);
    return over_us == NEVER ? NEVER : over_us + PROMISE_LAUNCH_US;
}

void
promise_rooms_free(struct planning *pl)
{
    for (size_t i = 0; pl->has_rooms && i < pl->planner->n_promises; i++)
        ledger_free(pl->rooms[i]);
    pl->has_rooms = false;
}

void
promise_drop(struct planning *pl, size_t i)
{
    struct planner *p = pl->planner;
    promise_rooms_free(pl);
    p->n_promises--;
    memmove(&p->promises[i], &p->promises[i + 1], (p->n_promises - i) * sizeof *p->promises);
}

/* Jobs refused for its sake, or promised a later time because of it, get another pass. */
void
promise_break(struct planning *pl, size_t i, enum broken_why why, uint32_t by)
{
    struct plan *p = pl->p;
    const struct promise *x = &pl->planner->promises[i];
    p->broken = xgrow(p->broken, p->n_broken, &p->cap_broken, sizeof *p->broken);
    p->broken[p->n_broken++] =
        (struct broken){.job = x->job, .at_us = x->at_us, .why = why, .by = by};
    promise_drop(pl, i);
    pl->planner->has_ended = true;
    wake_at(pl, pl->now_us + 1);
}

/* The job of higher priority for which its room is kept or being emptied; 0: none. */
static uint32_t
higher_one(const struct planning *pl, const struct job *job)
{
    const struct job *kept = pl->keep.job, *closed = queue_get(pl->q, pl->closed_for);
    if (kept && kept->req.priority > job->req.priority)
        return kept->id;
    return closed && closed->req.priority > job->req.priority ? closed->id : 0;
}

/* Finds why the room is missing: a job of higher priority takes it, or a job is still on those
 * cards after its limit; else the machine has changed. */
void
promise_break_for_cause(struct planning *pl, size_t i)
{
    const struct promise *x = &pl->planner->promises[i];
    uint32_t higher = higher_one(pl, queue_get(pl->q, x->job));
    if (higher) {
        promise_break(pl, i, BROKEN_PRIORITY, higher);
        return;
    }
    runs_make(pl);
    for (size_t r = 0; r < pl->n_runs; r++) {
        const struct run *run = &pl->runs[r];
        if (run->over_us > pl->now_us)
            continue;
        for (uint64_t cards = x->cards; cards; cards &= cards - 1) {
            if (!ledger_find_hold(pl->l, __builtin_ctzll(cards), run->id))
                continue;
            promise_break(pl, i, BROKEN_OVERRUN, run->id);
            return;
        }
    }
    promise_break(pl, i, BROKEN_MACHINE, 0);
}

void
promise_book(struct ledger *l, const struct job *job, uint64_t cards)
{
    uint8_t gpus[GPU_MAX];
    int n = 0;
    for (; cards; cards &= cards - 1)
        gpus[n++] = (uint8_t)__builtin_ctzll(cards);
    ledger_hold(l, job->id, &job->req.demand, gpus, n);
}

bool
promise_unbook(struct ledger *l, const struct job *job)
{
    bool was = ledger_holds(l, job->id);
    ledger_release(l, job->id);
    return was;
}

/* Moves the ledger forward to at_us: removes running jobs, and the first n_before promised
 * jobs, that are over by then. */
static void
move_to(const struct planning *pl, struct ledger *l, size_t n_before, int64_t at_us)
{
    for (size_t i = 0; i < pl->n_runs; i++) {
        if (pl->runs[i].over_us <= at_us)
            ledger_release_ahead(l, pl->runs[i].id);
    }
    for (size_t i = 0; i < n_before; i++) {
        const struct promise *x = &pl->planner->promises[i];
        if (promise_over_if_started_us(pl, queue_get(pl->q, x->job), x->at_us) <= at_us)
            ledger_release_ahead(l, x->job);
    }
}

/* After a restart it may take a moment until the start times of running jobs are known. They
 * were known when the promise was made, so jobs with a limit end in time. */
static void
release_unseen(const struct planning *pl, struct ledger *l)
{
    for (size_t i = 0; i < pl->n_runs; i++) {
        const struct job *job = pl->runs[i].job;
        if (job && job->run && !job->run->started_us && pl->runs[i].over_us != NEVER)
            ledger_release_ahead(l, pl->runs[i].id);
    }
}

/* On the promised cards, or elsewhere. */
static bool
place_promised(const struct planning *pl, struct promise *x, const struct ledger *l)
{
    const struct demand *d = &queue_get(pl->q, x->job)->req.demand;
    struct placement where;
    bool fits =
        place_job_within(d, l, x->cards, NULL, &where, NULL) || place_job(d, l, &where, NULL);
    if (fits)
        x->cards = cards_of_placement(&where);
    return fits;
}

enum cards_are { CARDS_UP, CARDS_UNKNOWN, CARDS_AWAY };

/* CARDS_AWAY: a card is lost, sick or paused, or missing after a restart. */
static enum cards_are
look_at_cards(const struct ledger *l, uint64_t cards)
{
    enum cards_are are = CARDS_UP;
    for (; cards; cards &= cards - 1) {
        int card = __builtin_ctzll(cards);
        enum gpu_state s =
            card < ledger_n_cards(l) ? card_state(ledger_card(l, card)) : GPU_LOST;
        if (s == GPU_UNKNOWN)
            are = CARDS_UNKNOWN;
        else if (s != GPU_UP)
            return CARDS_AWAY;
    }
    return are;
}

/* Whether the obstacle may be temporary: other processes' memory, where one sample proves
 * little, or a silent probe, which says nothing about the GPUs. The promised job keeps its
 * GPUs meanwhile, until it is due. A lost or paused GPU is not temporary. */
static bool
may_pass(struct planning *pl, struct promise *x)
{
    switch (look_at_cards(pl->l, x->cards)) {
    case CARDS_AWAY:
        return false;
    case CARDS_UNKNOWN:
        x->misfit_us = 0;
        return x->at_us > pl->now_us;
    case CARDS_UP:
        break;
    }
    if (!x->misfit_us)
        x->misfit_us = pl->now_us;
    wake_at(pl, x->misfit_us + MISFIT_US);
    return x->at_us > pl->now_us && x->misfit_us + MISFIT_US > pl->now_us;
}

/* Makes the ledger for the i-th promise out of l, the one for the promise before it. False:
 * there is no longer room for the promise. */
static bool
make_room(struct planning *pl, struct ledger *l, size_t i)
{
    struct promise *x = &pl->planner->promises[i];
    move_to(pl, l, i, x->at_us);
    bool fits = place_promised(pl, x, l);
    if (!fits) {
        release_unseen(pl, l);
        fits = place_promised(pl, x, l);
    }
    if (fits)
        x->misfit_us = 0;
    else if (!may_pass(pl, x))
        return false;
    promise_book(l, queue_get(pl->q, x->job), x->cards);
    pl->rooms[i] = ledger_clone(l);
    return true;
}

void
promise_rooms_make(struct planning *pl)
{
    runs_make(pl);
    while (!pl->has_rooms) {
        struct ledger *l = ledger_clone(pl->l);
        size_t n = 0;
        while (n < pl->planner->n_promises && make_room(pl, l, n))
            n++;
        ledger_free(l);
        pl->has_rooms = n == pl->planner->n_promises;
        for (size_t i = 0; !pl->has_rooms && i < n; i++)
            ledger_free(pl->rooms[i]);
        if (!pl->has_rooms)
            promise_break_for_cause(pl, n);
    }
}

bool
promise_stands_with(struct planning *pl, size_t i, const struct job *job, uint64_t cards)
{
    struct ledger *l = pl->rooms[i];
    const struct promise *x = &pl->planner->promises[i];
    const struct job *promised = queue_get(pl->q, x->job);
    const struct promise *own = planner_promise_of(pl->planner, job->id);
    const struct demand *d = &job->req.demand;
    struct placement where;
    bool was_booked = promise_unbook(l, job);
    bool fits = place_job_within(d, l, cards, NULL, &where, NULL);
    if (fits && (cards & x->cards || !cards)) {
        ledger_hold(l, LEDGER_TRIAL, d, where.gpus, where.n);
        ledger_release(l, x->job);
        struct placement unused;
        fits = place_job_within(&promised->req.demand, l, x->cards, NULL, &unused, NULL);
        ledger_release(l, LEDGER_TRIAL);
        promise_book(l, promised, x->cards);
    }
    if (was_booked)
        promise_book(l, job, own->cards);
    return fits;
}
