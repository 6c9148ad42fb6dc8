/* The formulas for external use, budgets and headroom of one card, from its facts. Called by
 * ledger.c and ledger_sample.c after every change, and by ledger_check to compare.
 *
 * Unreported values are never taken for 0:
 * - used memory not reported: the known use of other processes counts, one of unknown size
 *   makes the card not idle, and the card is not countable: one job of ours at a time;
 * - total not reported: not countable either;
 * - a process of ours with unreported memory, and no other process with that: memory that
 *   nothing explains is attributed to that job, up to its budget; beyond that it is external.
 *   If another process does not report its memory either, all of it is external, because it
 *   cannot be attributed;
 * - no process is listed at all (inside most containers no other process is visible, and often
 *   not even one's own): growth of used memory since our first job came to the card is
 *   attributed to the jobs there that were never listed, up to their budgets; the growth beyond
 *   that, and what was used before, is external. So a job is not counted twice, as its budget
 *   and as external use; the cost is that a process that comes later is noticed only once our
 *   jobs use what they declared. */
#include <string.h>

#include "core/ledger/ledger_priv.h"

static int64_t
with_spike(const struct ledger *l, int64_t mib)
{
    return (mib * (1000 + l->policy.spike_permille) + 999) / 1000;
}

int64_t
card_budget(const struct ledger *l, const struct card *c, const struct hold *h)
{
    if (h->demand_mib == 0 && !h->by_share)
        return c->info.total_mib;
    int64_t budget = h->demand_mib;
    if (h->peak_mib > h->demand_mib)
        budget = with_spike(l, h->peak_mib);
    return h->now_mib > budget ? h->now_mib : budget;
}

struct hold *
card_hold(const struct card *c, uint32_t job)
{
    for (int i = 0; i < c->n_holds; i++) {
        if (c->holds[i].job == job)
            return &c->holds[i];
    }
    return NULL;
}

int64_t
card_rest(const struct card *c)
{
    if (c->used_mib < 0 || !c->listed)
        return -1;
    return c->used_mib > c->listed_mib ? c->used_mib - c->listed_mib : 0;
}

/* Used memory that no process in the last list explains. -1: unknown. */
static int64_t
unexplained_mib(const struct card *c)
{
    if (c->used_mib < 0)
        return -1;
    return c->used_mib > c->listed_mib ? c->used_mib - c->listed_mib : 0;
}

int64_t
card_grown(const struct card *c)
{
    int64_t rest = unexplained_mib(c);
    if (!c->names_nobody || rest < 0)
        return 0;
    return c->before_mib > 0 ? rest - c->before_mib : rest;
}

bool
card_hides(const struct card *c, const struct hold *h)
{
    return c->names_nobody && h->peak_mib < 0 && !h->unreported;
}

/* If jobs are found running after a restart, all of it may be theirs. */
static void
note_before(struct card *c)
{
    int64_t rest = unexplained_mib(c);
    if (rest < 0)
        return;
    if (c->n_holds == 0)
        c->before_mib = rest;
    else if (c->before_mib < 0)
        c->before_mib = 0;
    else if (rest < c->before_mib)
        c->before_mib = rest;
}

/* Memory of other processes, and whether one of them does not report its own. */
static int64_t
strangers_mib(const struct ledger *l, const struct card *c, bool *silent)
{
    int64_t peaks = 0;
    *silent = false;
    for (int i = 0; i < c->n_strangers; i++) {
        if (c->strangers[i].mib < 0)
            *silent = true;
        if (c->strangers[i].peak_mib > 0)
            peaks += c->strangers[i].peak_mib;
    }
    return with_spike(l, peaks);
}

/* Unexplained memory that our own processes with unreported memory may account for. */
static int64_t
own_credit(const struct ledger *l, const struct card *c)
{
    int64_t room = 0;
    for (int i = 0; i < c->n_holds; i++) {
        const struct hold *h = &c->holds[i];
        int64_t known = h->now_mib > 0 ? h->now_mib : 0;
        if (h->unreported)
            room += card_budget(l, c, h) - known;
    }
    int64_t rest = card_rest(c);
    if (rest < 0 || room < 0)
        return 0;
    return room < rest ? room : rest;
}

/* The same when no process is listed at all. */
static int64_t
hidden_credit(const struct ledger *l, const struct card *c)
{
    int64_t room = 0, grown = card_grown(c);
    for (int i = 0; i < c->n_holds; i++) {
        if (card_hides(c, &c->holds[i]))
            room += card_budget(l, c, &c->holds[i]);
    }
    return room < grown ? room : grown;
}

static int64_t
card_external(const struct ledger *l, const struct card *c)
{
    bool silent;
    int64_t strangers = strangers_mib(l, c, &silent);
    if (c->used_mib < 0)
        return silent ? strangers + l->policy.idle_mib : strangers;
    int64_t not_ours = c->used_mib;
    for (int i = 0; i < c->n_holds; i++) {
        if (c->holds[i].now_mib > 0)
            not_ours -= c->holds[i].now_mib;
    }
    if (!silent)
        not_ours -= own_credit(l, c) + hidden_credit(l, c);
    return not_ours > strangers ? not_ours : strangers;
}

void
card_derive(const struct ledger *l, struct card *c)
{
    c->held_mib = 0;
    c->share_held = 0;
    c->taken = false;
    for (int i = 0; i < c->n_holds; i++) {
        c->share_held += c->holds[i].share_permille;
        c->held_mib += card_budget(l, c, &c->holds[i]);
        c->taken |= c->holds[i].exclusive;
    }
    note_before(c);
    c->external_mib = card_external(l, c);
    c->headroom_mib = c->info.total_mib - c->external_mib - c->held_mib;
    c->countable = c->info.total_mib > 0 && c->used_mib >= 0;
}

static const char *
check_card(const struct ledger *l, const struct card *c)
{
    struct card again = *c;
    card_derive(l, &again);
    if (again.external_mib != c->external_mib)
        return "external use of a card is stale";
    if (again.held_mib != c->held_mib || again.headroom_mib != c->headroom_mib)
        return "budgets or headroom of a card are stale";
    if (again.share_held != c->share_held)
        return "the shares of a card are added up wrongly";
    if (c->share_held > 1000)
        return "more of a card's compute is given away than it has";
    if (again.taken != c->taken || again.countable != c->countable)
        return "a card's flags are stale";
    for (int i = 0; i < c->n_holds; i++) {
        if (card_hold(c, c->holds[i].job) != &c->holds[i])
            return "a job holds a card twice";
        if (!ledger_holds(l, c->holds[i].job))
            return "a card is held by a job that holds nothing";
    }
    return NULL;
}

const char *
ledger_check(const struct ledger *l)
{
    int64_t cpus = 0, mem = 0, parts = 0, holds = 0;
    for (size_t b = 0; b < l->n_buckets; b++) {
        for (const struct holding *h = l->buckets[b]; h; h = h->next) {
            cpus += h->cpus;
            mem += h->mem_mib;
            parts += h->n;
            for (int i = 0; i < h->n; i++) {
                if (!card_hold(&l->cards[h->gpus[i]], h->job))
                    return "a job's card does not know of it";
            }
        }
    }
    if (cpus != l->cpus_held || mem != l->mem_held_mib)
        return "cores or host memory are booked wrongly";
    if (!nodes_agree(l))
        return "cores of NUMA nodes are booked wrongly";
    for (int i = 0; i < l->n_cards; i++) {
        const char *wrong = check_card(l, &l->cards[i]);
        if (wrong)
            return wrong;
        holds += l->cards[i].n_holds;
    }
    return holds == parts ? NULL : "cards and jobs disagree about the number of holds";
}
