/* What must happen before a blocked job can start, if no single GPU shows it: the jobs whose
 * ends would suffice, and the GPUs that something else keeps from it. Called for explanations
 * only; the pass does not need it and does not pay for it.
 *
 * Running jobs are removed in order of their expected ends until the job fits; then those that
 * turn out not to matter are put back. So, if no other job comes, the job starts when all
 * named jobs have ended, and not before. */
#include <stdlib.h>

#include "base/err.h"
#include "core/plan/plan_priv.h"

#define SPARED_MAX 32 /* with more jobs none is put back: each costs a trial on a copy */

/* Which of pl->runs leave. */
struct leaving {
    bool *leaves;
    size_t n; /* how many leave */
};

static bool
fits_after(const struct planning *pl, const struct demand *d, const struct leaving *who)
{
    struct placement unused;
    struct ledger *ahead = ledger_clone(pl->l);
    for (size_t i = 0; i < pl->n_runs; i++) {
        if (who->leaves[i])
            ledger_release_ahead(ahead, pl->runs[i].id);
    }
    bool fits = place_job(d, ahead, &unused, NULL);
    ledger_free(ahead);
    return fits;
}

/* How many runs must leave until the job fits, and its place then; 0: it never fits. */
static size_t
leave_until_it_fits(const struct planning *pl, const struct demand *d, struct placement *where)
{
    struct ledger *ahead = ledger_clone(pl->l);
    size_t n = 0;
    bool fits = false;
    while (n < pl->n_runs && !fits) {
        ledger_release_ahead(ahead, pl->runs[n++].id);
        fits = place_job(d, ahead, where, NULL);
    }
    ledger_free(ahead);
    return fits ? n : 0;
}

static void
choose(const struct planning *pl, size_t first_n, uint64_t cards, struct leaving *who)
{
    who->n = 0;
    for (size_t i = 0; i < pl->n_runs; i++) {
        bool leaves = false;
        for (uint64_t rest = cards; i < first_n && rest && !leaves; rest &= rest - 1)
            leaves = ledger_find_hold(pl->l, __builtin_ctzll(rest), pl->runs[i].id) != NULL;
        who->leaves[i] = leaves || (i < first_n && !cards);
        who->n += who->leaves[i];
    }
}

/* Puts back jobs that make no difference, the last to leave first. */
static void
spare(const struct planning *pl, const struct demand *d, struct leaving *who)
{
    if (who->n > SPARED_MAX)
        return;
    for (size_t i = pl->n_runs; i-- > 0;) {
        if (!who->leaves[i])
            continue;
        who->leaves[i] = false;
        if (fits_after(pl, d, who))
            who->n--;
        else
            who->leaves[i] = true;
    }
}

static void
tell_ends(const struct planning *pl, const struct leaving *who, struct blocked *why)
{
    for (size_t i = 0; i < pl->n_runs; i++) {
        if (!who->leaves[i])
            continue;
        if (why->n_ends < BLOCKED_ENDS)
            why->ends[why->n_ends] = (struct called){.id = pl->runs[i].id};
        why->n_ends++;
    }
}

/* Records whose ends let the job start. False: no ends would suffice. */
static bool
find_ends(const struct planning *pl, const struct demand *d, struct blocked *why)
{
    struct placement where;
    size_t n = leave_until_it_fits(pl, d, &where);
    if (n == 0)
        return false;
    struct leaving who = {.leaves = xcalloc(pl->n_runs, sizeof(bool))};
    choose(pl, n, cards_of_placement(&where), &who);
    if (where.n == 0 || !fits_after(pl, d, &who))
        choose(pl, n, 0, &who); /* cores or host memory: all jobs share them */
    spare(pl, d, &who);
    tell_ends(pl, &who, why);
    free(who.leaves);
    return true;
}

/* The cards with room for one GPU of the demand. */
static uint64_t
cards_with_room(const struct demand *d, const struct ledger *l)
{
    struct demand one = plan_one_card(d);
    struct placement unused;
    uint64_t room = 0;
    for (uint64_t rest = place_cards_of(d, l); rest; rest &= rest - 1) {
        uint64_t card = rest & -rest;
        if (place_job_within(&one, l, card, NULL, &unused, NULL))
            room |= card;
    }
    return room;
}

/* The same demand, for exactly these cards. */
static struct demand
demand_for_all(const struct demand *d, uint64_t cards)
{
    struct demand all = *d;
    all.gpus = __builtin_popcountll(cards);
    all.devices = cards;
    all.n_ids = 0;
    return all;
}

/* Ends alone do not suffice: records the other obstacles too. */
static void
tell_what_is_kept(struct planning *pl, const struct demand *d, struct blocked *why)
{
    const struct ledger *ahead = ahead_all(pl);
    struct placement unused;
    struct blocked rest;
    if (place_job(d, ahead, &unused, &rest) || rest.reason == REASON_CPUS ||
        rest.reason == REASON_MEMORY)
        return;
    uint64_t room = cards_with_room(d, ahead);
    rest.n_room = why->n_room;
    if (__builtin_popcountll(room) > why->n_room) {
        struct demand all = demand_for_all(d, room);
        if (find_ends(pl, &all, &rest))
            rest.n_freed = (int16_t)(__builtin_popcountll(room) - why->n_room);
    }
    rest.to_free = place_cards_of(d, ahead) & ~room;
    *why = rest;
}

static bool
is_about_room(const struct blocked *why, const struct demand *d)
{
    switch (why->reason) {
    case REASON_CPUS:
    case REASON_MEMORY:
        return true;
    case REASON_RESOURCES:
    case REASON_GPU_MEMORY:
    case REASON_GPU_SHARE:
    case REASON_GPU_BUSY:
    case REASON_GPU_PAUSED:
    case REASON_GPU_SICK:
    case REASON_GPU_MPS:
    case REASON_GPU_CAP:
        return demand_n_gpus(d) > 1;
    case REASON_NONE:
    case REASON_PRIORITY:
    case REASON_HELD:
    case REASON_BEGIN_TIME:
    case REASON_PROBE:
    case REASON_DEPENDENCY:
    case REASON_ARRAY_LIMIT:
    case REASON_USER_LIMIT:
    case REASON_QUEUE_LIMIT:
    case REASON_RESERVATION:
    case REASON_DISK:
    case REASON_MACHINE:
    case REASON_SLURM:
        break;
    }
    return false;
}

bool
plan_may_tell_needs(const struct job *job)
{
    return job->kind && !job->kind->blocked.told_needs &&
           is_about_room(&job->kind->blocked, &job->kind->demand);
}

void
plan_tell_needs(struct queue *q, struct ledger *l, const struct job *job, int64_t now_us)
{
    struct plan none = PLAN_INIT;
    struct planning pl = {.q = q, .l = l, .now_us = now_us, .p = &none};
    const struct demand *d = &job->kind->demand;
    struct blocked *why = &job->kind->blocked;
    runs_make(&pl);
    bool host = why->reason == REASON_CPUS || why->reason == REASON_MEMORY;
    if (find_ends(&pl, d, why))
        why->n_freed = host ? 0 : (int16_t)(demand_n_gpus(d) - why->n_room);
    else if (!host)
        tell_what_is_kept(&pl, d, why);
    why->told_needs = true;
    runs_free(&pl);
}
