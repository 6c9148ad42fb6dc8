/* What users used recently and hold now, and what that lets them start. Counted once at the
 * start of a pass, from running jobs, and updated with each start, so a query costs the same
 * however many jobs run and wait. Called by plan.c and plan_order.c. */
#include <stdlib.h>

#include "base/err.h"
#include "core/plan/fair.h"
#include "core/plan/plan_priv.h"

/* Seconds charged in advance for each start; once a job has run for longer, its run time is
 * charged instead. So users with equal use alternate from the first GPU on. */
#define ADVANCE_S 60

static size_t
slot_of(const struct users *users, uint32_t uid)
{
    size_t at = (uid * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (users->n_slots - 1);
    while (users->slots[at].taken && users->slots[at].uid != uid)
        at = (at + 1) & (users->n_slots - 1);
    return at;
}

static bool
counts_use(const struct planning *pl)
{
    return pl->planner->rules.fair_share && pl->planner->fair;
}

struct user *
plan_users_get(struct planning *pl, uint32_t uid)
{
    struct user *u = &pl->users.slots[slot_of(&pl->users, uid)];
    if (u->taken)
        return u;
    *u = (struct user){.taken = true, .uid = uid, .weight = 1};
    if (pl->planner->rules.limits) {
        u->limit = limits_of(pl->planner->rules.limits, uid);
        u->barred = limits_bar(pl->planner->rules.limits, uid);
    }
    if (counts_use(pl)) {
        u->weight = fair_weight(pl->planner->fair, uid);
        u->used = fair_usage(pl->planner->fair, uid, pl->now_us) / u->weight;
    }
    return u;
}

int64_t
used_in_steps(double used)
{
    double most = (double)(INT64_MAX / 2);
    return (int64_t)(used * 1000 < most ? used * 1000 : most);
}

int64_t
user_used(const struct user *u)
{
    return used_in_steps(u->used);
}

double
users_cost_anywhere(const struct planning *pl, uint32_t uid, const struct demand *d)
{
    struct placement where = {.n = 0};
    if (!counts_use(pl))
        return 0;
    while (where.n < demand_n_gpus(d) && where.n < ledger_n_cards(pl->l)) {
        where.gpus[where.n] = where.n;
        where.n++;
    }
    return fair_part(pl->l, d, where.gpus, where.n) * ADVANCE_S /
           fair_weight(pl->planner->fair, uid);
}

/* VRAM that the demand takes of this card: all of it, if it wants the card alone. */
static int64_t
vram_on(const struct demand *d, const struct ledger *l, int card)
{
    int64_t total = ledger_card(l, card)->info.total_mib;
    return demand_is_whole(d) ? total : demand_vram_mib(d, total);
}

static void
have_add(struct have *h, const struct demand *d, const struct ledger *l, const uint8_t *gpus,
         int n)
{
    if (d->engine == ENGINE_SLURM)
        return;
    h->running++;
    h->gpus += n;
    for (int i = 0; i < n; i++)
        h->vram_mib += vram_on(d, l, gpus[i]);
}

static void
count_active(struct planning *pl, const struct job *job)
{
    const struct attempt *run = job->run;
    const struct demand *d = &job->req.demand;
    struct user *u = plan_users_get(pl, job->uid);
    have_add(&u->have, d, pl->l, run->gpus, run->n_gpus);
    have_add(&pl->users.all, d, pl->l, run->gpus, run->n_gpus);
    if (job->req.preemptible && job->req.priority < pl->users.lowest_preemptible)
        pl->users.lowest_preemptible = job->req.priority;
    if (!counts_use(pl))
        return;
    int64_t from = run->started_us ? run->started_us + run->clock_set_us : pl->now_us;
    double part = fair_part(pl->l, d, run->gpus, run->n_gpus);
    double used = fair_integral(pl->planner->fair, part, from, pl->now_us);
    u->used += (used > part * ADVANCE_S ? used : part * ADVANCE_S) / u->weight;
}

void
plan_users_begin(struct planning *pl)
{
    size_t most = queue_n_users(pl->q) + queue_n_active(pl->q);
    for (pl->users.n_slots = 16; pl->users.n_slots < 2 * most;)
        pl->users.n_slots *= 2;
    pl->users.lowest_preemptible = INT32_MAX;
    pl->users.slots = xcalloc(pl->users.n_slots, sizeof *pl->users.slots);
    for (struct job *job = queue_active(pl->q); job; job = queue_active_next(job)) {
        if (job->run)
            count_active(pl, job);
    }
}

void
plan_users_free(struct planning *pl)
{
    free(pl->users.slots);
}

void
plan_users_charge(struct planning *pl, struct user *u, const struct demand *d,
                  const struct placement *where)
{
    have_add(&u->have, d, pl->l, where->gpus, where->n);
    have_add(&pl->users.all, d, pl->l, where->gpus, where->n);
    if (counts_use(pl))
        u->used += fair_part(pl->l, d, where->gpus, where->n) * ADVANCE_S / u->weight;
}

/* Limits. */

static bool
is_reached(struct blocked *why, char of, int64_t limit, int64_t have, int64_t more)
{
    if (limit <= 0 || have + more <= limit)
        return false;
    why->limit = limit;
    why->limit_of = (uint8_t)of;
    return true;
}

/* Cards small enough that n of them stay within what is left. */
static uint64_t
cards_within(const struct demand *d, const struct ledger *l, int n, int64_t left)
{
    uint64_t cards = 0;
    for (int i = 0; i < ledger_n_cards(l); i++) {
        if (vram_on(d, l, i) <= left / n)
            cards |= UINT64_C(1) << i;
    }
    return cards;
}

static int
by_vram(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The n smallest of these cards, if all of them together stay within what is left; 0: they do
 * not, or there are fewer. */
static uint64_t
smallest_within(const struct demand *d, const struct ledger *l, uint64_t of, int n,
                int64_t left)
{
    int64_t keys[GPU_MAX], sum = 0; /* sort key: VRAM, then card number */
    uint64_t cards = 0;
    int n_keys = 0;
    for (; of; of &= of - 1) {
        int card = __builtin_ctzll(of);
        keys[n_keys++] = (int64_t)vram_on(d, l, card) * GPU_MAX + card;
    }
    if (n_keys < n)
        return 0;
    qsort(keys, (size_t)n_keys, sizeof *keys, by_vram);
    for (int i = 0; i < n; i++) {
        sum += keys[i] / GPU_MAX;
        cards |= UINT64_C(1) << keys[i] % GPU_MAX;
    }
    return sum <= left ? cards : 0;
}

static bool
is_within(const struct planning *pl, const struct limit *limit, const struct have *have,
          const struct demand *d, uint64_t *cards, struct blocked *why)
{
    int n = demand_n_gpus(d);
    if (is_reached(why, 'r', limit->running, have->running, 1) ||
        (n > 0 && is_reached(why, 'g', limit->gpus, have->gpus, n)))
        return false;
    if (limit->vram_mib <= 0 || n == 0)
        return true;
    int64_t left = limit->vram_mib - have->vram_mib;
    uint64_t usable = *cards & place_cards_of(d, pl->l);
    *cards &= cards_within(d, pl->l, n, left);
    if (__builtin_popcountll(*cards & usable) >= n)
        return true;
    *cards = smallest_within(d, pl->l, usable, n, left);
    if (*cards)
        return true;
    why->limit = limit->vram_mib;
    why->limit_of = 'v';
    return false;
}

/* The same together with the job for which something is kept, if any. */
static bool
is_within_beside(const struct planning *pl, const struct limit *limit, const struct have *have,
                 const struct kept *kept, const struct demand *d, uint64_t *cards,
                 struct blocked *why)
{
    struct have both = {.running = have->running + kept->needs.running,
                        .gpus = have->gpus + kept->needs.gpus,
                        .vram_mib = have->vram_mib + kept->needs.vram_mib};
    return is_within(pl, limit, &both, d, cards, why);
}

bool
plan_users_allow(const struct planning *pl, const struct user *u, const struct demand *d,
                 uint64_t *cards, struct blocked *why)
{
    const struct limits *limits = pl->planner->rules.limits;
    *cards = UINT64_MAX;
    if (!limits || d->engine == ENGINE_SLURM)
        return true; /* limits apply to this machine only */
    *why = (struct blocked){.gpu = -1};
    if (u->barred)
        why->reason = REASON_MACHINE;
    else if (!is_within_beside(pl, u->limit, &u->have, &u->kept, d, cards, why))
        why->reason = REASON_USER_LIMIT;
    else if (!is_within_beside(pl, &limits->all, &pl->users.all, &pl->users.kept, d, cards,
                               why))
        why->reason = REASON_QUEUE_LIMIT;
    return why->reason == REASON_NONE;
}

/* Upper bound on the VRAM the job can hold within the limit: n times the largest GPU that fits
 * an equal share, or, if fewer than n GPUs fit, the whole limit. */
static int64_t
most_vram(const struct planning *pl, const struct limit *limit, const struct demand *d)
{
    int n = demand_n_gpus(d);
    int64_t most = 0;
    if (limit->vram_mib <= 0 || n == 0)
        return 0;
    uint64_t cards = place_cards_of(d, pl->l) & cards_within(d, pl->l, n, limit->vram_mib);
    if (__builtin_popcountll(cards) < n)
        return limit->vram_mib;
    for (; cards; cards &= cards - 1) {
        int64_t vram = vram_on(d, pl->l, __builtin_ctzll(cards));
        most = vram > most ? vram : most;
    }
    return most * n;
}

static void
keep_for(struct planning *pl, const struct limit *limit, const struct job *job,
         struct kept *kept)
{
    const struct demand *d = &job->req.demand;
    *kept = (struct kept){
        .job = job->id,
        .needs = {.running = 1, .gpus = demand_n_gpus(d), .vram_mib = most_vram(pl, limit, d)}};
    lines_watch(pl->planner, job->id);
}

/* A job that now waits for room on GPUs must not be pushed over its user's limit again by
 * later jobs of that user starting meanwhile. A job that waits for anything else, such as a
 * paused GPU, might wait forever, so it does not hold back other jobs. */
void
plan_users_keep_on(struct planning *pl, struct user *u, const struct job *job)
{
    enum reason why = job->kind->blocked.reason;
    if (u->limit && !u->kept.job && job->limited_since_us != 0 &&
        demand_n_gpus(&job->req.demand) > 0 &&
        (plan_is_about_cards(why) || why == REASON_RESERVATION) &&
        patience_ends_us(pl, job->limited_since_us) <= pl->now_us)
        keep_for(pl, u->limit, job, &u->kept);
}

/* Nothing is kept for a job that could not start even if nothing ran. */
void
plan_users_keep(struct planning *pl, struct user *u, struct job *job, const struct blocked *why)
{
    const struct limits *limits = pl->planner->rules.limits;
    bool is_users = why->reason == REASON_USER_LIMIT;
    const struct limit *limit = is_users ? u->limit : &limits->all;
    struct kept *kept = is_users ? &u->kept : &pl->users.kept;
    struct have none = {0};
    struct blocked unused;
    uint64_t cards = UINT64_MAX;
    if (kept->job)
        return;
    if (!is_within(pl, limit, &none, &job->req.demand, &cards, &unused)) {
        job->limited_since_us = 0;
        return;
    }
    if (job->limited_since_us == 0)
        job->limited_since_us = pl->now_us;
    int64_t until_us = patience_ends_us(pl, job->limited_since_us);
    if (until_us > pl->now_us)
        wake_at(pl, until_us);
    else
        keep_for(pl, limit, job, kept);
}
