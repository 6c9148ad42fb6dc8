/* Which cards of those that would do: joined by NVLink, then on one NUMA node, then by pack or
 * spread. Called by place.c. At most 64 cards, so the choice of a joined set grows one set from
 * each card; where nothing is joined the first of the order are it. */
#include "core/place/fit.h"
#include "core/place/place_priv.h"

/* A card that would do, with what the choice looks at. */
struct candidate {
    uint8_t card;
    int32_t numa;
    int64_t room; /* of what is scarce for this demand */
    int64_t room_next;
    uint64_t links; /* to other candidates */
};

/* By how much is left: of VRAM, but a share looks at what is left of the compute first, since
 * that is what it would break into pieces. */
static struct candidate
candidate_of(const struct placing *p, int card, uint64_t cards)
{
    const struct card *c = &p->cards[card];
    bool share = p->d->share_permille > 0;
    return (struct candidate){
        .card = (uint8_t)card,
        .numa = c->info.numa,
        .room = share ? 1000 - c->share_held : c->headroom_mib,
        .room_next = c->headroom_mib,
        .links = c->links & cards,
    };
}

/* Pack or spread; whole cards by number. */
static bool
comes_before(enum fit_rule rule, const struct candidate *a, const struct candidate *b)
{
    if (a->room == b->room)
        return fit_precedes(rule, a->room_next, a->card, b->room_next, b->card);
    return fit_precedes(rule, a->room, a->card, b->room, b->card);
}

static void
sort_candidates(enum fit_rule rule, struct candidate *list, int n)
{
    for (int i = 1; i < n; i++) {
        struct candidate one = list[i];
        int j = i;
        for (; j > 0 && comes_before(rule, &one, &list[j - 1]); j--)
            list[j] = list[j - 1];
        list[j] = one;
    }
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

/* Takes into the set, seeded with list[seed], the best next card until it has want. */
static struct set
grow_set(const struct candidate *list, int n, int seed, int want)
{
    struct set s = {.mask = UINT64_C(1) << list[seed].card, .on_node = true, .ranks = seed};
    for (int have = 1; have < want; have++) {
        struct set best = {.pairs = -1};
        for (int i = 0; i < n; i++) {
            uint64_t links = list[i].links, bit = UINT64_C(1) << list[i].card;
            if (s.mask & bit)
                continue;
            struct set next = {
                .mask = s.mask | bit,
                .pairs = s.pairs + __builtin_popcountll(links & s.mask),
                .promise = have + 1 < want ? __builtin_popcountll(links & ~s.mask) : 0,
                .on_node = s.on_node && list[seed].numa == list[i].numa,
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
choose_set(const struct candidate *list, int n, int want)
{
    struct set best = {.pairs = -1};
    for (int seed = 0; seed < n; seed++) {
        struct set s = grow_set(list, n, seed, want);
        if (is_better(&s, &best))
            best = s;
    }
    return best.mask;
}

static bool
are_all_alike(const struct candidate *list, int n)
{
    for (int i = 0; i < n; i++) {
        if (list[i].links || list[i].numa != list[0].numa)
            return false;
    }
    return true;
}

/* The first of the order, without putting all of them in order. */
static uint64_t
choose_one(const struct placing *p, enum fit_rule rule, uint64_t cards)
{
    struct candidate best = candidate_of(p, __builtin_ctzll(cards), cards);
    for (cards &= cards - 1; cards; cards &= cards - 1) {
        struct candidate one = candidate_of(p, __builtin_ctzll(cards), cards);
        if (comes_before(rule, &one, &best))
            best = one;
    }
    return UINT64_C(1) << best.card;
}

/* For jobs that take whole cards they are all alike, unless requested otherwise. */
static enum fit_rule
rule_of(const struct placing *p)
{
    switch ((enum placing_rule)p->d->placement) {
    case PLACING_PACK:
        return p->whole ? FIT_FIRST : FIT_BEST;
    case PLACING_SPREAD:
        return FIT_WORST;
    case PLACING_FIRST:
        return FIT_FIRST;
    case PLACING_DEFAULT:
        break;
    }
    if (ledger_policy(p->l)->spread)
        return FIT_WORST;
    return p->whole ? FIT_FIRST : FIT_BEST;
}

uint64_t
place_choose(const struct placing *p, uint64_t cards)
{
    struct candidate list[GPU_MAX];
    int n = 0;
    enum fit_rule rule = rule_of(p);
    if (__builtin_popcountll(cards) == p->want)
        return cards;
    if (p->want == 1)
        return choose_one(p, rule, cards);
    for (uint64_t rest = cards; rest; rest &= rest - 1)
        list[n++] = candidate_of(p, __builtin_ctzll(rest), cards);
    sort_candidates(rule, list, n);
    if (!are_all_alike(list, n))
        return choose_set(list, n, p->want);
    uint64_t first = 0;
    for (int i = 0; i < n && i < p->want; i++)
        first |= UINT64_C(1) << list[i].card;
    return first;
}
