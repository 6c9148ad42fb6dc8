/* Which cards of those that would do. Several cards: the set with the most pairs joined by
 * NVLink; of such sets the one on the fewest NUMA nodes; then one on nodes with the cores that
 * the job would be bound to; then one that leaves most for other jobs: it takes apart the
 * fewest NVLink pairs, and leaves the fewest cards on its nodes; then by pack or spread. For
 * one card pack or spread comes first, and the rest decides where it says nothing. Called by
 * place.c. At most 64 cards, so the choice grows one set from each card; where the cards are
 * all alike the first of the order are it. */
#include "core/place/fit.h"
#include "core/place/place_priv.h"

/* A card that would do, with what the choice looks at. */
struct candidate {
    uint8_t card;
    uint8_t node; /* its NUMA node among those of the candidates, not the kernel's number */
    int64_t room; /* of what is scarce for this demand */
    int64_t room_next;
    uint64_t links; /* to other candidates */
    int32_t numa;
    int degree;    /* how many links those are */
    int peers;     /* candidates on its node, itself included */
    bool no_cores; /* the job would find too few cores near it */
};

/* What is chosen among, and by what. */
struct choice {
    const struct placing *p;
    enum fit_rule rule;
    bool binds;      /* it matters where cores are free */
    bool spares;     /* and what is left for others: not where the rule says which */
    bool joined;     /* some by NVLink */
    bool spread_out; /* over several NUMA nodes */
    struct candidate list[GPU_MAX];
    int n;
};

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

/* By how much is left: of VRAM, but a share looks at what is left of the compute first, since
 * that is what it would break into pieces. */
static struct candidate
candidate_of(const struct placing *p, int card, uint64_t cards)
{
    const struct card *c = &p->cards[card];
    bool share = p->d->share_permille > 0;
    uint64_t links = c->links & cards;
    return (struct candidate){
        .card = (uint8_t)card,
        .room = share ? 1000 - c->share_held : c->headroom_mib,
        .room_next = c->headroom_mib,
        .links = links,
        .numa = c->info.numa,
        .degree = links ? __builtin_popcountll(links) : 0,
    };
}

/* Cards whose node is not known count as on one of their own. */
static void
find_nodes(struct choice *x)
{
    struct candidate *list = x->list;
    int on[GPU_MAX], nodes = 0;
    for (int i = 0; i < x->n; i++) {
        int same = 0;
        while (list[same].numa != list[i].numa)
            same++;
        list[i].node = same == i ? (uint8_t)nodes : list[same].node;
        if (same == i)
            on[nodes++] = 0;
        on[list[i].node]++;
    }
    for (int i = 0; i < x->n; i++)
        list[i].peers = on[list[i].node];
}

/* Whether the job would be bound to the nodes of these cards, without finding its cores. */
static bool
lacks_cores(const struct choice *x, uint64_t cards)
{
    uint8_t gpus[GPU_MAX];
    uint64_t nodes;
    int n = 0;
    if (!x->binds)
        return false;
    for (; cards; cards &= cards - 1)
        gpus[n++] = (uint8_t)__builtin_ctzll(cards);
    return ledger_bind(x->p->l, x->p->d, gpus, n, &nodes) == BIND_FULL;
}

static void
choice_begin(struct choice *x, const struct placing *p, uint64_t cards)
{
    bool by_number = p->d->placement == PLACING_FIRST;
    x->p = p;
    x->rule = rule_of(p);
    x->binds = !by_number && p->d->cpus > 0 && ledger_bind_mode(p->l, p->d) == CPU_BIND_AUTO;
    x->spares = !by_number && x->rule != FIT_WORST;
    x->list[x->n = 0] = (struct candidate){.card = 0};
    x->joined = x->spread_out = false;
    for (uint64_t rest = cards; rest; rest &= rest - 1) {
        struct candidate *c = &x->list[x->n++];
        *c = candidate_of(p, __builtin_ctzll(rest), cards);
        x->joined |= c->links != 0;
        x->spread_out |= c->numa != x->list[0].numa;
    }
    if (x->spread_out)
        find_nodes(x);
}

/* --- one card --- */

/* How many other candidates are joined to it, or else on its node. */
static int
company(const struct candidate *c)
{
    return c->degree * (GPU_MAX + 1) + c->peers;
}

/* Pack or spread; whole cards are all alike. */
static bool
comes_before(const struct choice *x, const struct candidate *a, const struct candidate *b)
{
    bool alike = x->rule == FIT_FIRST || (a->room == b->room && a->room_next == b->room_next);
    if (!alike && a->room == b->room)
        return fit_precedes(x->rule, a->room_next, a->card, b->room_next, b->card);
    if (!alike)
        return fit_precedes(x->rule, a->room, a->card, b->room, b->card);
    if (a->no_cores != b->no_cores)
        return b->no_cores;
    if (x->spares && x->p->want == 1 && company(a) != company(b))
        return company(a) < company(b);
    return a->card < b->card;
}

/* The first of the order, without putting all of them in order. */
static uint64_t
choose_one(struct choice *x)
{
    int best = 0;
    for (int i = 0; i < x->n; i++) {
        x->list[i].no_cores = lacks_cores(x, UINT64_C(1) << x->list[i].card);
        if (comes_before(x, &x->list[i], &x->list[best]))
            best = i;
    }
    return UINT64_C(1) << x->list[best].card;
}

/* --- several --- */

static void
sort_candidates(struct choice *x)
{
    for (int i = 1; i < x->n; i++) {
        struct candidate one = x->list[i];
        int j = i;
        for (; j > 0 && comes_before(x, &one, &x->list[j - 1]); j--)
            x->list[j] = x->list[j - 1];
        x->list[j] = one;
    }
}

/* A set of cards as it grows, and what makes it good, best criterion first. */
struct set {
    uint64_t mask;
    uint64_t on; /* its nodes */
    int nodes;   /* how many those are */
    int pairs;   /* joined by NVLink */
    int promise; /* links of the card just taken to others that may follow it */
    int degrees; /* links of its cards to any candidate */
    int near;    /* candidates on its nodes, its own included */
    int ranks;   /* sum of places in the pack (or spread) order */
    /* only of a set that has them all */
    bool no_cores;
    int cut;   /* links from it to candidates outside */
    int apart; /* candidates that it leaves on its nodes */
};

static bool
is_better(const struct set *a, const struct set *b)
{
    if (a->pairs != b->pairs)
        return a->pairs > b->pairs;
    if (a->promise != b->promise)
        return a->promise > b->promise;
    if (a->nodes != b->nodes)
        return a->nodes < b->nodes;
    if (a->no_cores != b->no_cores)
        return b->no_cores;
    if (a->cut != b->cut)
        return a->cut < b->cut;
    if (a->apart != b->apart)
        return a->apart < b->apart;
    return a->ranks < b->ranks;
}

static struct set
with_card(const struct choice *x, const struct set *s, int i, bool is_last)
{
    const struct candidate *c = &x->list[i];
    bool is_new = !(s->on >> c->node & 1);
    int pairs = c->links ? __builtin_popcountll(c->links & s->mask) : 0;
    struct set next = {
        .mask = s->mask | UINT64_C(1) << c->card,
        .on = s->on | UINT64_C(1) << c->node,
        .nodes = s->nodes + is_new,
        .pairs = s->pairs + pairs,
        .promise = is_last ? 0 : c->degree - pairs,
        .degrees = s->degrees + c->degree,
        .near = s->near + (is_new ? c->peers : 0),
        .ranks = s->ranks + i,
    };
    if (is_last)
        next.no_cores = lacks_cores(x, next.mask);
    if (is_last && x->spares) {
        next.cut = next.degrees - 2 * next.pairs;
        next.apart = next.near - x->p->want;
    }
    return next;
}

/* Takes into the set, seeded with one card, the best next one until it has all. */
static struct set
grow_set(const struct choice *x, int seed)
{
    const struct set none = {.mask = 0};
    struct set s = with_card(x, &none, seed, false);
    for (int have = 1; have < x->p->want; have++) {
        struct set best = {.pairs = -1};
        for (int i = 0; i < x->n; i++) {
            if (s.mask >> x->list[i].card & 1)
                continue;
            struct set next = with_card(x, &s, i, have + 1 == x->p->want);
            if (is_better(&next, &best))
                best = next;
        }
        s = best;
    }
    return s;
}

/* The best of as many cards as are wanted, sorted by preference, as a mask. */
static uint64_t
choose_set(const struct choice *x)
{
    struct set best = {.pairs = -1};
    for (int seed = 0; seed < x->n; seed++) {
        struct set s = grow_set(x, seed);
        if (is_better(&s, &best))
            best = s;
    }
    return best.mask;
}

uint64_t
place_choose(const struct placing *p, uint64_t cards)
{
    struct choice x;
    uint64_t first = 0;
    if (__builtin_popcountll(cards) == p->want)
        return cards;
    choice_begin(&x, p, cards);
    if (p->want == 1)
        return choose_one(&x);
    sort_candidates(&x);
    if (x.joined || x.spread_out)
        return choose_set(&x);
    for (int i = 0; i < x.n && i < p->want; i++)
        first |= UINT64_C(1) << x.list[i].card;
    return first;
}
