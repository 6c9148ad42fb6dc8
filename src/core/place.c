/* Chooses cards for one job. A card either would do or refuses with a reason; among those
 * that would do the set is chosen, else the nearest refusal is explained. At most 64 cards,
 * so everything is plain loops; the choice of a joined set grows one set from each card.
 * What has room and what comes first is fit.h's to say, which the simulator asks too. */
#include "core/place.h"

#include <string.h>

#include "core/fit.h"
#include "core/gpu.h"
#include "core/ledger.h"

static bool
wants_whole(const struct demand *d)
{
    return d->vram_mib == 0;
}

static int
wanted(const struct demand *d)
{
    return d->n_ids ? d->n_ids : d->gpus;
}

static bool
may_use(const struct demand *d, int card)
{
    if (d->n_ids)
        return memchr(d->ids, card, d->n_ids) != NULL;
    return !d->devices || (d->devices >> card & 1);
}

static bool
has_room(const struct demand *d, const struct ledger *l, const struct card *c)
{
    return fit_has_room(c->headroom_mib, d->vram_mib, ledger_policy(l)->margin_mib);
}

static enum reason
state_refuses(const struct card *c)
{
    switch (card_state(c)) {
    case GPU_UP:
        break;
    case GPU_PAUSED:
    case GPU_DRAINING:
        return REASON_GPU_PAUSED;
    case GPU_LOST:
    case GPU_SICK:
        return REASON_GPU_SICK;
    case GPU_UNKNOWN:
        return REASON_PROBE;
    }
    return c->info.compute == GPU_COMPUTE_PROHIBITED ? REASON_GPU_PAUSED : REASON_NONE;
}

/* Why this card will not do now; REASON_NONE: it would. */
static enum reason
card_refuses(const struct demand *d, const struct ledger *l, const struct card *c)
{
    enum reason state = state_refuses(c);
    bool one_process = c->info.compute == GPU_COMPUTE_EXCLUSIVE;
    bool alone = wants_whole(d) || d->exclusive || !c->countable || one_process;
    if (state != REASON_NONE)
        return state;
    if (c->taken || (alone && c->n_holds > 0) || (one_process && c->n_strangers > 0))
        return REASON_GPU_BUSY;
    if ((wants_whole(d) || !c->countable) && c->external_mib >= ledger_policy(l)->idle_mib)
        return REASON_GPU_BUSY;
    if (!wants_whole(d) && c->info.total_mib > 0 && !has_room(d, l, c))
        return REASON_GPU_MEMORY;
    return REASON_NONE;
}

/* Whether card a is to be taken before b: pack or spread; whole cards by number. */
static bool
comes_before(const struct demand *d, const struct ledger *l, int a, int b)
{
    enum fit_rule rule = wants_whole(d) ? FIT_FIRST : FIT_BEST;
    if (ledger_policy(l)->spread)
        rule = FIT_WORST;
    return fit_precedes(rule, ledger_card(l, a)->headroom_mib, a,
                        ledger_card(l, b)->headroom_mib, b);
}

static void
sort_candidates(const struct demand *d, const struct ledger *l, uint8_t *cards, int n)
{
    for (int i = 1; i < n; i++) {
        uint8_t card = cards[i];
        int j = i;
        for (; j > 0 && comes_before(d, l, card, cards[j - 1]); j--)
            cards[j] = cards[j - 1];
        cards[j] = card;
    }
}

static bool
is_same_numa(const struct ledger *l, int a, int b)
{
    return ledger_card(l, a)->info.numa == ledger_card(l, b)->info.numa;
}

/* A set of cards as it grows, and what makes it good, best criterion first. */
struct set {
    uint64_t mask;
    int pairs;    /* joined by NVLink */
    int promise;  /* links of the card just taken to others that may follow it */
    bool on_node; /* all on one NUMA node */
    int ranks;    /* sum of places in the pack (or spread) order */
};

static bool
is_better(const struct set *a, const struct set *b)
{
    if (a->pairs != b->pairs)
        return a->pairs > b->pairs;
    if (a->promise != b->promise)
        return a->promise > b->promise;
    if (a->on_node != b->on_node)
        return a->on_node;
    return a->ranks < b->ranks;
}

/* Takes into the set, seeded with cards[seed], the best next card until it has want. */
static struct set
grow_set(const struct ledger *l, const uint8_t *cards, int n, int seed, int want)
{
    struct set s = {.mask = UINT64_C(1) << cards[seed], .on_node = true, .ranks = seed};
    uint64_t all = 0;
    for (int i = 0; i < n; i++)
        all |= UINT64_C(1) << cards[i];
    for (int have = 1; have < want; have++) {
        struct set best = {.pairs = -1};
        for (int i = 0; i < n; i++) {
            uint64_t links = ledger_card(l, cards[i])->links;
            uint64_t bit = UINT64_C(1) << cards[i];
            if (s.mask & bit)
                continue;
            struct set next = {
                .mask = s.mask | bit,
                .pairs = s.pairs + __builtin_popcountll(links & s.mask),
                .promise = have + 1 < want ? __builtin_popcountll(links & all & ~s.mask) : 0,
                .on_node = s.on_node && is_same_numa(l, cards[seed], cards[i]),
                .ranks = s.ranks + i,
            };
            if (is_better(&next, &best))
                best = next;
        }
        s = best;
    }
    return s;
}

/* The want best of n cards sorted by preference, as a mask. */
static uint64_t
choose_set(const struct ledger *l, const uint8_t *cards, int n, int want)
{
    struct set best = {.pairs = -1};
    for (int seed = 0; seed < (want == 1 ? 1 : n); seed++) {
        struct set s = grow_set(l, cards, n, seed, want);
        if (is_better(&s, &best))
            best = s;
    }
    return best.mask;
}

static void
fill_placement(const struct demand *d, uint64_t mask, struct placement *out)
{
    out->n = 0;
    if (d->n_ids) {
        memcpy(out->gpus, d->ids, d->n_ids);
        out->n = d->n_ids;
        return;
    }
    for (; mask; mask &= mask - 1)
        out->gpus[out->n++] = (uint8_t)__builtin_ctzll(mask);
}

/* Who is in the way on this card. */
static void
blame(const struct ledger *l, const struct card *c, struct blocked *why)
{
    int64_t largest = -1;
    for (int i = 0; i < c->n_holds; i++) {
        int64_t budget = card_budget(l, c, &c->holds[i]);
        if (budget > largest) {
            largest = budget;
            why->job = c->holds[i].job;
        }
    }
    int32_t most = -1;
    for (int i = 0; i < c->n_strangers; i++) {
        if (c->strangers[i].peak_mib > most) {
            most = c->strangers[i].peak_mib;
            why->stranger_pid = c->strangers[i].pid;
        }
    }
    why->stranger_mib = (int32_t)c->external_mib;
    if (c->n_holds > 0 && (c->taken || largest >= c->external_mib))
        why->by = BLOCKED_BY_JOB;
    else if (c->external_mib > 0 && c->external_mib >= why->short_mib)
        why->by = BLOCKED_BY_STRANGER;
    else
        why->by = c->n_strangers > 0 ? BLOCKED_BY_STRANGER : BLOCKED_BY_NOTHING;
}

/* The hope in a refusal: what may pass by itself first. */
static int
hopelessness(enum reason r)
{
    return r == REASON_GPU_MEMORY || r == REASON_GPU_BUSY ? 0 : (int)r;
}

/* Whether refusing card a is nearer to doing than refusing card b. */
static bool
is_nearer(const struct card *a, enum reason ra, const struct card *b, enum reason rb)
{
    if (hopelessness(ra) != hopelessness(rb))
        return hopelessness(ra) < hopelessness(rb);
    if (ra != rb)
        return ra == REASON_GPU_MEMORY;
    if (ra == REASON_GPU_MEMORY)
        return a->headroom_mib > b->headroom_mib;
    if (a->n_holds != b->n_holds)
        return a->n_holds < b->n_holds;
    return a->external_mib < b->external_mib;
}

static void
explain_cards(const struct demand *d, const struct ledger *l, int n_room, struct blocked *why)
{
    const struct card *near = NULL;
    enum reason reason = ledger_is_known(l) ? REASON_RESOURCES : REASON_PROBE;
    for (int i = 0; i < ledger_n_cards(l); i++) {
        const struct card *c = ledger_card(l, i);
        enum reason r = may_use(d, i) ? card_refuses(d, l, c) : REASON_NONE;
        if (r == REASON_NONE || (near && !is_nearer(c, r, near, reason)))
            continue;
        near = c;
        reason = r;
    }
    why->margin_mib = ledger_policy(l)->margin_mib;
    why->n_room = (int16_t)n_room;
    why->reason = n_room > 0 && near ? REASON_RESOURCES : reason;
    why->gpu = -1;
    if (!near)
        return;
    why->gpu = (int16_t)near->info.index;
    why->card_reason = reason;
    why->gpu_state = (uint8_t)card_state(near);
    why->free_mib = near->headroom_mib > 0 ? near->headroom_mib : 0;
    if (reason == REASON_GPU_MEMORY)
        why->short_mib = d->vram_mib + ledger_policy(l)->margin_mib - near->headroom_mib;
    if (reason == REASON_GPU_MEMORY || reason == REASON_GPU_BUSY)
        blame(l, near, why);
}

static bool
place_cards(const struct demand *d, const struct ledger *l, struct placement *out,
            struct blocked *why)
{
    uint8_t cards[GPU_MAX];
    int n = 0, want = wanted(d);
    for (int i = 0; i < ledger_n_cards(l); i++) {
        if (may_use(d, i) && card_refuses(d, l, ledger_card(l, i)) == REASON_NONE)
            cards[n++] = (uint8_t)i;
    }
    if (n < want) {
        explain_cards(d, l, n, why);
        return false;
    }
    if (d->n_ids) {
        fill_placement(d, 0, out);
        return true;
    }
    sort_candidates(d, l, cards, n);
    fill_placement(d, choose_set(l, cards, n, want), out);
    return true;
}

/* Cores and host memory: what is not known is not checked. */
static bool
host_has_room(const struct demand *d, const struct ledger *l, struct blocked *why)
{
    int64_t cpus = ledger_cpus(l) - ledger_cpus_held(l);
    int64_t mem = ledger_mem_mib(l) - ledger_mem_held(l);
    if (ledger_cpus(l) > 0 && demand_cpus(d) > 0 && demand_cpus(d) > cpus) {
        why->reason = REASON_CPUS;
        why->have = cpus > 0 ? cpus : 0;
        return false;
    }
    if (ledger_mem_mib(l) > 0 && d->mem_mib > 0 && d->mem_mib > mem) {
        why->reason = REASON_MEMORY;
        why->have = mem > 0 ? mem : 0;
        return false;
    }
    return true;
}

bool
place_job(const struct demand *d, const struct ledger *l, struct placement *out,
          struct blocked *why)
{
    struct blocked unused;
    if (!why)
        why = &unused;
    *why = (struct blocked){.gpu = -1};
    out->n = 0;
    if (wanted(d) > 0 && !place_cards(d, l, out, why))
        return false;
    return host_has_room(d, l, why);
}
