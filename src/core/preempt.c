/* Who makes way for a blocked job: running jobs that may be preempted and are of lower
 * priority; as few as possible, then those of the lowest priority, then those that have run
 * least. Nobody is asked when that would not help, or when those who are leaving anyway will
 * do. Called by plan.c. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/plan_priv.h"

/* Those who might be asked, the least loss first, and how it would be without some. */
struct victims {
    struct run **list; /* into pl->runs */
    bool *chosen;
    size_t n, n_chosen;
};

static bool
fits(struct planning *pl, const struct job *job, const struct ledger *l)
{
    struct placement unused;
    struct blocked why;
    return reserve_place(pl, job, 0, l, UINT64_MAX, &unused, &why);
}

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

/* The ledger when those who are leaving, and the chosen, have left. */
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
    struct ledger *l = ledger_without(pl, v);
    bool does = fits(pl, job, l);
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

/* Has as many of the victims on this card leave, in order, as it takes for the job to have it.
 * Their number in *n, and the last of them in *last; false: it cannot have it. */
static bool
clear_card(const struct planning *pl, const struct job *job, const struct victims *v,
           struct ledger *l, int card, size_t *n, size_t *last)
{
    struct demand one = job->req.demand;
    struct placement unused;
    uint64_t bit = UINT64_C(1) << card;
    one.gpus = 1;
    one.n_ids = 0;
    one.devices = 0;
    one.cpus = one.mem_mib = 0;
    *n = 0;
    *last = 0;
    for (size_t i = 0; !place_job_within(&one, l, bit, NULL, &unused, NULL); i++) {
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

/* Chooses the victims of the card that costs fewest, of those that the job cannot have yet.
 * False: there is no such card. */
static bool
choose_card(struct planning *pl, const struct job *job, struct victims *v)
{
    int best = -1;
    size_t best_n = 0, best_last = 0;
    uint64_t cards = place_cards_of(&job->req.demand, pl->l);
    for (; cards; cards &= cards - 1) {
        int card = __builtin_ctzll(cards);
        size_t n, last;
        struct ledger *l = ledger_without(pl, v);
        bool can = clear_card(pl, job, v, l, card, &n, &last) && n > 0;
        ledger_free(l);
        if (!can || (best >= 0 && (n > best_n || (n == best_n && last >= best_last))))
            continue;
        best = card;
        best_n = n;
        best_last = last;
    }
    for (size_t i = 0; best >= 0 && i <= best_last; i++) {
        if (ledger_find_hold(pl->l, best, v->list[i]->id))
            choose(v, i, true);
    }
    return best >= 0;
}

/* Card by card; then, for cores and host memory, one by one. */
static void
choose_enough(struct planning *pl, const struct job *job, struct victims *v)
{
    while (!fits_without(pl, job, v) && choose_card(pl, job, v))
        ;
    for (size_t i = 0; i < v->n && !fits_without(pl, job, v); i++)
        choose(v, i, true);
}

/* The other way: in order until it fits. Where one victim holds many cards it may cost less. */
static void
choose_in_order(struct planning *pl, const struct job *job, struct victims *v)
{
    for (size_t i = 0; i < v->n && !fits_without(pl, job, v); i++)
        choose(v, i, true);
}

/* Whoever turns out not to be needed stays, the greatest loss first. */
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

/* The room that victims leave, when it is not kept already, is nobody's of lower rank. */
static void
close_cards(struct planning *pl, const struct job *job, const struct victims *v)
{
    struct ledger *l = ledger_without(pl, v);
    struct placement where;
    struct blocked why;
    if (pl->keep.job && reserve_place(pl, job, 0, l, UINT64_MAX, &where, &why)) {
        pl->closed |= cards_of_placement(&where);
        pl->closed_for = job->id;
    }
    ledger_free(l);
}

static void
ask(struct planning *pl, const struct job *job, const struct victims *v)
{
    for (size_t i = 0; i < v->n; i++) {
        struct run *run = v->list[i];
        if (!v->chosen[i])
            continue;
        int64_t end_us = pl->now_us + (run->job->req.grace_ms + 1000) * 1000;
        plan_add(pl->p, PLAN_PREEMPT, run->id)->by = job->id;
        run->leaving = run->firm = true;
        if (end_us < run->end_us)
            run->end_us = end_us;
    }
    runs_sort(pl);
    ledger_free(pl->ahead_known); /* more is known now */
    pl->ahead_known = NULL;
}

/* Whether somebody of lower priority is leaving to make way: then it may be for this one. */
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
preempt_for(struct planning *pl, struct job *job)
{
    struct victims v = {0};
    find_victims(pl, job, &v);
    if (fits_without(pl, job, &v)) {
        if (is_being_made_way_for(pl, job))
            close_cards(pl, job, &v);
    } else if (v.n > 0) {
        for (size_t i = 0; i < v.n; i++)
            choose(&v, i, true);
        bool helps = fits_without(pl, job, &v);
        for (size_t i = 0; i < v.n; i++)
            choose(&v, i, false);
        if (helps) {
            choose_fewest(pl, job, &v);
            close_cards(pl, job, &v);
            ask(pl, job, &v);
        }
    }
    free(v.list);
    free(v.chosen);
}
