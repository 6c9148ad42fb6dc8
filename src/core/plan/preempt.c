/* Which jobs make way for a blocked job: preemptible running jobs of lower priority. As few as
 * possible, then those of lowest priority, then those that ran least. None is chosen if that
 * would not help, or if jobs that are leaving anyway suffice. In every order, what the victims
 * leave is kept for the job: otherwise the first victim to leave would start there again and
 * be preempted again, forever. Called by plan.c. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/plan/plan_priv.h"

/* Candidates, by increasing loss, and which of them are chosen. */
struct victims {
    uint64_t cards;    /* that the job may have within its user's limits */
    struct run **list; /* pointers into pl->runs */
    bool *chosen;
    size_t n, n_chosen;
};

static int
compare_victims(const void *a, const void *b)
{
    const struct run *x = *(struct run *const *)a, *y = *(struct run *const *)b;
    if (x->job->req.priority != y->job->req.priority)
        return x->job->req.priority < y->job->req.priority ? -1 : 1;
    if (x->started_us != y->started_us)
        return x->started_us > y->started_us ? -1 : 1;
    return x->id > y->id ? -1 : x->id < y->id;
}

static void
find_victims(struct planning *pl, const struct job *job, struct victims *v)
{
    runs_make(pl);
    v->list = xcalloc(pl->n_runs + 1, sizeof(struct run *));
    v->chosen = xcalloc(pl->n_runs + 1, sizeof(bool));
    for (size_t i = 0; i < pl->n_runs; i++) {
        struct run *run = &pl->runs[i];
        if (run->job && !run->leaving && run->job->req.preemptible &&
            run->job->req.priority < job->req.priority)
            v->list[v->n++] = run;
    }
    if (v->n)
        qsort(v->list, v->n, sizeof(struct run *), compare_victims);
}

/* The ledger after the leaving and the chosen jobs have left. */
static struct ledger *
ledger_without(const struct planning *pl, const struct victims *v)
{
    struct ledger *l = ledger_clone(pl->l);
    for (size_t i = 0; i < pl->n_runs; i++) {
        if (pl->runs[i].leaving)
            ledger_release_ahead(l, pl->runs[i].id);
    }
    for (size_t i = 0; i < v->n; i++) {
        if (v->chosen[i])
            ledger_release_ahead(l, v->list[i]->id);
    }
    return l;
}

static bool
fits_without(struct planning *pl, const struct job *job, const struct victims *v)
{
    struct placement unused;
    struct blocked why;
    struct ledger *l = ledger_without(pl, v);
    bool does = reserve_place(pl, job, 0, l, v->cards, &unused, &why);
    ledger_free(l);
    return does;
}

static void
choose(struct victims *v, size_t i, bool chosen)
{
    if (v->chosen[i] != chosen)
        v->n_chosen = chosen ? v->n_chosen + 1 : v->n_chosen - 1;
    v->chosen[i] = chosen;
}

static bool
has_room(const struct demand *one, const struct ledger *l, int card)
{
    struct placement unused;
    return place_job_within(one, l, UINT64_C(1) << card, NULL, &unused, NULL);
}

/* On how many of the cards one GPU of the demand fits. */
static int
n_cards_for(const struct demand *d, const struct ledger *l, uint64_t of)
{
    struct demand one = plan_one_card(d);
    int n = 0;
    for (uint64_t cards = place_cards_of(d, l) & of; cards; cards &= cards - 1)
        n += has_room(&one, l, __builtin_ctzll(cards));
    return n;
}

/* Removes victims on this card from l, in order, until the job can have the card. *n: how
 * many; *last: the last one. False: the job cannot have the card. */
static bool
clear_card(const struct planning *pl, const struct job *job, const struct victims *v,
           struct ledger *l, int card, size_t *n, size_t *last)
{
    struct demand one = plan_one_card(&job->req.demand);
    *n = *last = 0;
    for (size_t i = 0; !has_room(&one, l, card); i++) {
        while (i < v->n && (v->chosen[i] || !ledger_find_hold(pl->l, card, v->list[i]->id)))
            i++;
        if (i >= v->n)
            return false;
        ledger_release_ahead(l, v->list[i]->id);
        *last = i;
        ++*n;
    }
    return true;
}

/* What a card costs, and what it brings. */
struct bargain {
    int card;      /* -1: none */
    size_t n;      /* victims needed */
    size_t last;   /* index of the last one, in order of loss */
    int64_t gains; /* cards that the job can then have, up to those it lacks */
};

static bool
is_better(const struct bargain *a, const struct bargain *b)
{
    int64_t cost_a = (int64_t)a->n * b->gains, cost_b = (int64_t)b->n * a->gains;
    if (b->card < 0)
        return true;
    return cost_a != cost_b ? cost_a < cost_b : a->last < b->last;
}

/* Chooses the victims on the card with the best bargain among those that the job cannot have
 * yet. False: there is no such card. */
static bool
choose_card(struct planning *pl, const struct job *job, struct victims *v)
{
    const struct demand *d = &job->req.demand;
    struct bargain best = {.card = -1};
    struct ledger *l = ledger_without(pl, v);
    int had = n_cards_for(d, l, v->cards), lacks = demand_n_gpus(d) - had;
    ledger_free(l);
    uint64_t cards = place_cards_of(d, pl->l) & v->cards;
    for (; cards && lacks > 0; cards &= cards - 1) {
        struct bargain b = {.card = __builtin_ctzll(cards)};
        l = ledger_without(pl, v);
        bool can = clear_card(pl, job, v, l, b.card, &b.n, &b.last) && b.n > 0;
        b.gains = n_cards_for(d, l, v->cards) - had;
        ledger_free(l);
        if (b.gains > lacks)
            b.gains = lacks;
        if (can && is_better(&b, &best))
            best = b;
    }
    for (size_t i = 0; best.card >= 0 && i <= best.last; i++) {
        if (ledger_find_hold(pl->l, best.card, v->list[i]->id))
            choose(v, i, true);
    }
    return best.card >= 0;
}

/* Chooses card by card; then, for cores and host memory, one job at a time. */
static void
choose_enough(struct planning *pl, const struct job *job, struct victims *v)
{
    while (!fits_without(pl, job, v) && choose_card(pl, job, v))
        ;
    for (size_t i = 0; i < v->n && !fits_without(pl, job, v); i++)
        choose(v, i, true);
}

/* The alternative: in order until the job fits. It may cost less if one victim holds many
 * cards. */
static void
choose_in_order(struct planning *pl, const struct job *job, struct victims *v)
{
    for (size_t i = 0; i < v->n && !fits_without(pl, job, v); i++)
        choose(v, i, true);
}

/* Takes back victims that are not needed, the greatest loss first. */
static void
spare(struct planning *pl, const struct job *job, struct victims *v)
{
    for (size_t i = v->n; i-- > 0;) {
        if (!v->chosen[i])
            continue;
        choose(v, i, false);
        if (!fits_without(pl, job, v))
            choose(v, i, true);
    }
}

static void
choose_fewest(struct planning *pl, const struct job *job, struct victims *v)
{
    struct victims other = *v;
    other.chosen = xcalloc(v->n + 1, sizeof(bool));
    choose_enough(pl, job, v);
    spare(pl, job, v);
    choose_in_order(pl, job, &other);
    spare(pl, job, &other);
    if (other.n_chosen < v->n_chosen) {
        memcpy(v->chosen, other.chosen, v->n * sizeof(bool));
        v->n_chosen = other.n_chosen;
    }
    free(other.chosen);
}

static void
ask(struct planning *pl, const struct job *job, const struct victims *v)
{
    for (size_t i = 0; i < v->n; i++) {
        struct run *run = v->list[i];
        if (!v->chosen[i])
            continue;
        int64_t end_us = pl->now_us + (request_grace_ms(&run->job->req) + 1000) * 1000;
        plan_add(pl->p, PLAN_PREEMPT, run->id)->by = job->id;
        run->leaving = run->firm = true;
        if (end_us < run->end_us)
            run->end_us = end_us;
    }
    runs_sort(pl);
    ledger_free(pl->ahead_known); /* outdated: more ends are known now */
    pl->ahead_known = NULL;
}

/* The time at which enough of the leaving jobs have left; NEVER: they do not suffice. *ahead
 * becomes the ledger as of then. */
static int64_t
find_enough_left(struct planning *pl, const struct job *job, uint64_t cards,
                 struct ledger *ahead, struct placement *where)
{
    struct blocked unused;
    for (size_t i = 0; i < pl->n_runs; i++) {
        if (!pl->runs[i].leaving)
            continue;
        ledger_release_ahead(ahead, pl->runs[i].id);
        if (reserve_place(pl, job, 0, ahead, cards, where, &unused))
            return pl->runs[i].end_us;
    }
    return NEVER;
}

/* Keeps the room that victims leave from jobs of lower rank. It is pinned there, because other
 * jobs leaving room earlier may be only an estimate. No short job may start there meanwhile:
 * it would be in the way, and be preempted, once the victims have left. If room is already
 * kept for another job, the cards are closed to all later jobs. */
static void
keep_what_they_leave(struct planning *pl, struct job *job, uint64_t cards)
{
    struct placement where;
    struct ledger *ahead = ledger_clone(pl->l);
    int64_t at_us = find_enough_left(pl, job, cards, ahead, &where);
    if (at_us != NEVER && !pl->keep.job) {
        ledger_hold(ahead, job->id, &job->req.demand, where.gpus, where.n);
        pl->keep = (struct keep){.job = job,
                                 .at_us = at_us,
                                 .pinned = true,
                                 .cards = cards_of_placement(&where),
                                 .in_time_us = pl->now_us,
                                 .limits_only = true,
                                 .ahead = ahead};
        return;
    }
    if (at_us != NEVER) {
        pl->closed |= cards_of_placement(&where);
        pl->closed_for = job->id;
    }
    ledger_free(ahead);
}

/* Whether a job of lower priority is already being preempted: perhaps for this job. */
static bool
is_being_made_way_for(const struct planning *pl, const struct job *job)
{
    for (size_t i = 0; i < pl->n_runs; i++) {
        const struct job *other = pl->runs[i].job;
        if (other && other->requeue_asked == REQUEUE_PREEMPTED &&
            other->req.priority < job->req.priority)
            return true;
    }
    return false;
}

void
preempt_for(struct planning *pl, const struct user *u, struct job *job)
{
    struct victims v = {0};
    struct blocked unused;
    (void)plan_users_allow(pl, u, &job->req.demand, &v.cards, &unused);
    find_victims(pl, job, &v);
    if (fits_without(pl, job, &v)) {
        if (is_being_made_way_for(pl, job)) {
            keep_what_they_leave(pl, job, v.cards);
            if (lines_are_watched(pl, job))
                lines_watch(pl->planner, job->id);
        }
    } else if (v.n > 0) {
        for (size_t i = 0; i < v.n; i++)
            choose(&v, i, true);
        bool helps = fits_without(pl, job, &v);
        for (size_t i = 0; i < v.n; i++)
            choose(&v, i, false);
        if (helps) {
            choose_fewest(pl, job, &v);
            ask(pl, job, &v);
            keep_what_they_leave(pl, job, v.cards);
            lines_watch(pl->planner, job->id);
        }
    }
    free(v.list);
    free(v.chosen);
}
