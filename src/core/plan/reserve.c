/* Room kept for the first job in the order that does not fit. Called by plan.c.
 *
 * By time, if the ends of running jobs are known: for the earliest time at which enough of
 * them have ended. Later jobs may start if they end by then, or if the blocked job would still
 * fit beside them at that time (EASY backfilling). The reservation is made anew in each pass
 * and, as long as limits are upper bounds, never gets later.
 *
 * By GPU, once the patience has run out and the ends are unknown or only estimated: the GPUs
 * that will be free soonest are pinned. A job without a time limit starts there only if there
 * is room beside the blocked job. A job with a limit may also start if it ends before the last
 * of the limits on the pinned GPUs, or, while a job without a limit still runs there, within
 * the patience. A pinned GPU stays pinned when it becomes free. So, counted from the pinning,
 * the job waits at most
 *
 *     max(longest limit on those GPUs, remaining run of jobs without a limit + patience),
 *
 * however many other jobs come. With the patience before it, that is its whole wait at the
 * head of the order (if limits are kept and no job of higher rank comes). preempt.c also pins
 * the GPUs that victims leave. */
#include "core/plan/plan_priv.h"

/* By time. */

/* Whether time limits guarantee the end of every job that this job waits for there. */
static bool
is_firm(const struct planning *pl, const struct placement *where, bool host, int64_t at_us)
{
    uint64_t cards = cards_of_placement(where);
    for (size_t i = 0; i < pl->n_runs && pl->runs[i].end_us <= at_us; i++) {
        uint8_t gpus[GPU_MAX];
        uint64_t held = 0;
        int n = ledger_cards_of(pl->l, pl->runs[i].id, gpus);
        for (int g = 0; g < n; g++)
            held |= UINT64_C(1) << gpus[g];
        if (!pl->runs[i].firm && (host || (held & cards)))
            return false;
    }
    return true;
}

/* The first time at which the demand fits. False if there is none. */
static bool
find_time(struct planning *pl, const struct demand *d, struct ledger *ahead, int64_t *at_us,
          struct placement *where)
{
    size_t i = 0;
    runs_make(pl);
    while (i < pl->n_runs && pl->runs[i].end_us != NEVER) {
        *at_us = pl->runs[i].end_us;
        for (; i < pl->n_runs && pl->runs[i].end_us == *at_us; i++)
            ledger_release_ahead(ahead, pl->runs[i].id);
        if (place_job(d, ahead, where, NULL))
            return true;
    }
    return false;
}

/* False if there is no such time, or if it is an estimate and the job's patience has run
 * out. */
static bool
keep_time(struct planning *pl, struct job *job, bool host, bool patient)
{
    const struct demand *d = &job->req.demand;
    struct placement where;
    int64_t at_us;
    if (pl->ahead_known && !place_job(d, pl->ahead_known, &where, NULL))
        return false;
    struct ledger *ahead = ledger_clone(pl->l);
    if (!find_time(pl, d, ahead, &at_us, &where)) {
        ledger_free(pl->ahead_known);
        pl->ahead_known = ahead; /* here all jobs with a known end have ended */
        return false;
    }
    bool firm = is_firm(pl, &where, host, at_us);
    if (!firm && !patient) {
        ledger_free(ahead);
        return false;
    }
    if (!firm)
        wake_at(pl, patience_ends_us(pl, job->blocked_since_us));
    pl->keep = (struct keep){.job = job,
                             .at_us = at_us,
                             .cards = cards_of_placement(&where),
                             .in_time_us = at_us,
                             .limits_only = !patient,
                             .ahead = ahead};
    return true;
}

/* By cards. */

/* A card that the job may have, and after which run's end, in order, there is room on it. */
struct prospect {
    uint8_t card;
    bool kept;  /* it was pinned in the last pass */
    size_t run; /* one more than the index in runs; 0: now */
};

static bool
is_better(const struct prospect *a, const struct prospect *b)
{
    if ((a->run == 0) != (b->run == 0))
        return a->run == 0;
    if (a->kept != b->kept)
        return a->kept;
    return a->run != b->run ? a->run < b->run : a->card < b->card;
}

static void
add_prospect(struct prospect *list, int *n, struct prospect p)
{
    int at = (*n)++;
    for (; at > 0 && is_better(&p, &list[at - 1]); at--)
        list[at] = list[at - 1];
    list[at] = p;
}

/* Adds those cards of the set that have room for one GPU of the job as prospects after that
 * run; returns the others. */
static uint64_t
take_fitting(const struct planning *pl, const struct job *job, const struct ledger *ahead,
             uint64_t cards, size_t run, struct prospect *list, int *n)
{
    const struct reservation *last = &pl->planner->reserved;
    struct demand one = plan_one_card(&job->req.demand);
    uint64_t left = cards;
    for (uint64_t set = cards; set; set &= set - 1) {
        int card = __builtin_ctzll(set);
        struct placement unused;
        if (!place_job_within(&one, ahead, UINT64_C(1) << card, NULL, &unused, NULL))
            continue;
        bool kept = last->job == job->id && last->pinned && (last->cards >> card & 1);
        add_prospect(list, n, (struct prospect){(uint8_t)card, kept, run});
        left &= ~(UINT64_C(1) << card);
    }
    return left;
}

/* Lists all cards that the job may have as our jobs end, best first; returns their number. */
static int
find_prospects(struct planning *pl, const struct job *job, struct prospect *list)
{
    struct ledger *ahead = ledger_clone(pl->l);
    uint64_t left = place_cards_of(&job->req.demand, pl->l);
    int n = 0;
    runs_make(pl);
    left = take_fitting(pl, job, ahead, left, 0, list, &n);
    for (size_t i = 0; i < pl->n_runs && left; i++) {
        uint8_t gpus[GPU_MAX];
        uint64_t freed = 0;
        int n_gpus = ledger_cards_of(ahead, pl->runs[i].id, gpus);
        for (int g = 0; g < n_gpus; g++)
            freed |= UINT64_C(1) << gpus[g];
        ledger_release_ahead(ahead, pl->runs[i].id);
        left = (left & ~freed) | take_fitting(pl, job, ahead, left & freed, i + 1, list, &n);
    }
    ledger_free(ahead);
    return n;
}

/* Lets one of the jobs in the way leave. */
static void
leave(const struct planning *pl, const struct run *run, struct keep *k)
{
    int64_t in_time_us = run->end_us;
    ledger_release_ahead(k->ahead, run->id);
    if (!run->firm) {
        in_time_us = pl->now_us;
        if (pl->planner->rules.patience_ms < (NEVER - pl->now_us) / 1000)
            in_time_us += pl->planner->rules.patience_ms * 1000;
    }
    if (in_time_us > k->in_time_us)
        k->in_time_us = in_time_us;
    if (run->end_us > k->at_us)
        k->at_us = run->end_us;
}

/* Whether this run occupies room on one of the first `want` prospects. */
static bool
has_to_leave(const struct planning *pl, size_t run, const struct prospect *list, int want)
{
    for (int i = 0; i < want; i++) {
        if (run < list[i].run && ledger_find_hold(pl->l, list[i].card, pl->runs[run].id))
            return true;
    }
    return false;
}

/* Lets all jobs in the way leave: first from the cards, then, if cores or host memory do not
 * suffice, from the host. True if the job then fits; it is booked. */
static bool
clear_cards(struct planning *pl, struct job *job, const struct prospect *list, int want,
            struct keep *k)
{
    struct placement where;
    struct blocked why;
    for (size_t i = 0; i < pl->n_runs; i++) {
        if (has_to_leave(pl, i, list, want))
            leave(pl, &pl->runs[i], k);
    }
    bool fits = place_job_within(&job->req.demand, k->ahead, k->cards, NULL, &where, &why);
    for (size_t i = 0; !fits && i < pl->n_runs; i++) {
        if (why.reason != REASON_CPUS && why.reason != REASON_MEMORY)
            return false;
        if (!ledger_holds(k->ahead, pl->runs[i].id))
            continue;
        leave(pl, &pl->runs[i], k);
        fits = place_job_within(&job->req.demand, k->ahead, k->cards, NULL, &where, &why);
    }
    if (fits)
        ledger_hold(k->ahead, job->id, &job->req.demand, where.gpus, where.n);
    return fits;
}

static void
keep_cards(struct planning *pl, struct job *job)
{
    struct prospect list[GPU_MAX];
    int want = demand_n_gpus(&job->req.demand);
    if (find_prospects(pl, job, list) < want)
        return;
    struct keep k = {.job = job,
                     .at_us = pl->now_us,
                     .pinned = true,
                     .in_time_us = pl->now_us,
                     .limits_only = true,
                     .ahead = ledger_clone(pl->l)};
    for (int i = 0; i < want; i++)
        k.cards |= UINT64_C(1) << list[i].card;
    if (clear_cards(pl, job, list, want, &k))
        pl->keep = k;
    else
        ledger_free(k.ahead);
}

void
reserve_for(struct planning *pl, struct job *job)
{
    const struct demand *d = &job->req.demand;
    struct placement unused;
    struct blocked why;
    bool patient = patience_ends_us(pl, job->blocked_since_us) > pl->now_us;
    bool host = !place_job(d, pl->l, &unused, &why) &&
                (why.reason == REASON_CPUS || why.reason == REASON_MEMORY);
    if (keep_time(pl, job, host, patient))
        return;
    if (!place_job(d, ahead_all(pl), &unused, NULL))
        return; /* what blocks it is not ours, or does not exist */
    if (patient)
        wake_at(pl, patience_ends_us(pl, job->blocked_since_us));
    else
        keep_cards(pl, job);
}

void
reserve_free(struct planning *pl)
{
    ledger_free(pl->keep.ahead);
}

/* Jobs that come later. */

static bool
is_over_in_time(const struct planning *pl, const struct job *job)
{
    const struct keep *k = &pl->keep;
    int64_t run_ms = k->limits_only ? job->req.limit_ms : job->span_ms;
    return run_ms > 0 && pl->now_us + run_ms * 1000 <= k->in_time_us;
}

/* Books the reserved job in the forecast, unless it is booked already. False: it does not fit,
 * so later jobs cannot take anything from it. */
static bool
book_kept(const struct keep *k)
{
    struct placement where;
    const struct demand *d = &k->job->req.demand;
    if (!place_job(d, k->ahead, &where, NULL))
        return false;
    ledger_hold(k->ahead, k->job->id, d, where.gpus, where.n);
    return true;
}

/* Whether the reserved job would still fit beside this one. */
static bool
fits_with(const struct keep *k, const struct demand *d, const struct placement *where)
{
    struct placement unused;
    ledger_hold(k->ahead, LEDGER_TRIAL, d, where->gpus, where->n);
    bool fits = place_job(&k->job->req.demand, k->ahead, &unused, NULL);
    ledger_release(k->ahead, LEDGER_TRIAL);
    return fits;
}

bool
reserve_stands_with(const struct planning *pl, const struct job *job, uint64_t cards)
{
    const struct keep *k = &pl->keep;
    struct placement where = {.n = 0}, unused;
    if (k->pinned) /* the reserved job is booked in k->ahead */
        return place_job_within(&job->req.demand, k->ahead, cards, NULL, &unused, NULL);
    for (; cards; cards &= cards - 1)
        where.gpus[where.n++] = (uint8_t)__builtin_ctzll(cards);
    return fits_with(k, &job->req.demand, &where);
}

/* Places a job beside the reserved one, which is booked in the forecast. Each must fit beside
 * the other, because their margins, and which other processes they count, may differ. */
static bool
place_beside(const struct keep *k, const struct demand *d, const struct ledger *l,
             uint64_t cards, struct placement *out, struct blocked *why)
{
    uint8_t gpus[GPU_MAX];
    if (!place_job_within(d, l, cards, k->ahead, out, why))
        return false;
    int n = ledger_cards_of(k->ahead, k->job->id, gpus);
    ledger_release(k->ahead, k->job->id);
    bool fits = fits_with(k, d, out);
    ledger_hold(k->ahead, k->job->id, &k->job->req.demand, gpus, n);
    if (!fits)
        *why = (struct blocked){.reason = REASON_RESERVATION, .gpu = -1};
    return fits;
}

/* Uses the GPUs that the job would get anyway, if the reserved job does not need them;
 * otherwise GPUs that the reserved job leaves free. */
static bool
place_by_time(const struct planning *pl, const struct demand *d, const struct ledger *l,
              uint64_t cards, struct placement *out, struct blocked *why)
{
    const struct keep *k = &pl->keep;
    if (!place_job_within(d, l, cards, NULL, out, why))
        return false;
    if (fits_with(k, d, out))
        return true;
    if (pl->planner->rules.textbook) {
        *why = (struct blocked){.reason = REASON_RESERVATION, .gpu = -1};
        return false;
    }
    if (!book_kept(k))
        return true; /* it has no place, so nothing delays it; the next pass reserves anew */
    bool fits = place_beside(k, d, l, cards, out, why);
    ledger_release(k->ahead, k->job->id);
    return fits;
}

/* Whether the reservation does not restrict this job. A job whose promise is due may delay the
 * reserved job: the promise was made with that in mind. */
static bool
is_free_of_kept(const struct planning *pl, const struct job *job)
{
    const struct keep *k = &pl->keep;
    return !k->job || is_over_in_time(pl, job) ||
           (k->job->req.priority <= job->req.priority && promise_is_due(pl, job));
}

static bool
place_beside_kept(const struct planning *pl, const struct job *job, const struct ledger *l,
                  uint64_t cards, struct placement *out, struct blocked *why)
{
    const struct demand *d = &job->req.demand;
    const struct keep *k = &pl->keep;
    if (is_free_of_kept(pl, job))
        return place_job_within(d, l, cards, NULL, out, why);
    return k->pinned ? place_beside(k, d, l, cards, out, why)
                     : place_by_time(pl, d, l, cards, out, why);
}

/* Also keeps all promised room: at the place found without it, or else on other cards. */
static bool
place_beside_promised(struct planning *pl, const struct job *job, const struct ledger *l,
                      uint64_t cards, struct placement *out, struct blocked *why)
{
    struct blocked unused;
    if (l != pl->l)
        cards &= ~promises_close(pl, job);
    if (!place_beside_kept(pl, job, l, cards, out, why))
        return false;
    if (l != pl->l || promises_allow(pl, job, out, why))
        return true;
    cards = promises_leave(pl, job, cards);
    return place_beside_kept(pl, job, l, cards, out, &unused) &&
           promises_allow(pl, job, out, &unused);
}

bool
reserve_place(struct planning *pl, const struct job *job, uint32_t id, const struct ledger *l,
              uint64_t cards, struct placement *out, struct blocked *why)
{
    if (job->req.demand.engine == ENGINE_SLURM)
        return place_job(&job->req.demand, l, out, why); /* uses nothing of this machine */
    if (!place_beside_promised(pl, job, l, cards & ~pl->closed, out, why))
        return false;
    if (id && !is_free_of_kept(pl, job))
        ledger_hold(pl->keep.ahead, id, &job->req.demand, out->gpus, out->n);
    return true;
}
