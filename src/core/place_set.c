/* Which cards of those that would do: joined by NVLink, then on one NUMA node, then by pack or
 * spread. Called by place.c. At most 64 cards, so the choice of a joined set grows one set from
 * each card; where nothing is joined the first of the order are it. */
#include <string.h>

#include "core/fit.h"
#include "core/gpu.h"
#include "core/place_priv.h"

/* Whether card a is to be taken before b: pack or spread; whole cards by number. A share looks
 * at what is left of the compute first: that is what it would break into pieces. */
static bool
comes_before(const struct demand *d, const struct ledger *l, int a, int b)
{
    const struct card *x = ledger_card(l, a), *y = ledger_card(l, b);
    enum fit_rule rule = demand_is_whole(d) ? FIT_FIRST : FIT_BEST;
    if (ledger_policy(l)->spread)
        rule = FIT_WORST;
    if (d->share_permille > 0 && x->share_held != y->share_held)
        return fit_precedes(rule, 1000 - x->share_held, a, 1000 - y->share_held, b);
    return fit_precedes(rule, x->headroom_mib, a, y->headroom_mib, b);
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
    for (int seed = 0; seed < n; seed++) {
        struct set s = grow_set(l, cards, n, seed, want);
        if (is_better(&s, &best))
            best = s;
    }
    return best.mask;
}

static bool
is_choice_free(const struct ledger *l, const uint8_t *cards, int n)
{
    for (int i = 0; i < n; i++) {
        if (ledger_card(l, cards[i])->links || !is_same_numa(l, cards[0], cards[i]))
            return false;
    }
    return true;
}

uint64_t
place_choose(const struct demand *d, const struct ledger *l, uint64_t cards, int want)
{
    uint8_t list[GPU_MAX];
    int n = 0;
    for (uint64_t rest = cards; rest; rest &= rest - 1)
        list[n++] = (uint8_t)__builtin_ctzll(rest);
    if (n == want)
        return cards;
    sort_candidates(d, l, list, n);
    if (want > 1 && !is_choice_free(l, list, n))
        return choose_set(l, list, n, want);
    uint64_t first = 0;
    for (int i = 0; i < want; i++)
        first |= UINT64_C(1) << list[i];
    return first;
}
