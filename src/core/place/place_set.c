/* Which of the cards with room a job gets. Several cards: the set with most pairs joined by
 * NVLink; then on the fewest NUMA nodes; then on nodes with the cores that the job would be
 * bound to; then the set that leaves most for other jobs, by breaking the fewest NVLink pairs
 * and leaving the fewest cards on its nodes; then by pack or spread. For a single card, pack
 * or spread decides first, and the rest breaks ties. Called by place.c. At most 64 cards, so
 * it grows one set from each card; if all cards are alike, the first ones in order are the
 * answer. */
#include "core/place/fit.h"
#include "core/place/place_priv.h"

/* A card with room, and the properties that decide. */
struct candidate {
    uint8_t card;
    uint8_t node; /* index of its NUMA node among the candidates', not the kernel's number */
    int64_t room; /* of the resource that is scarce for this demand */
    int64_t room_next;
    uint64_t links; /* to other candidates */
    int32_t numa;
    int degree;    /* number of those links */
    int peers;     /* candidates on its node, including itself */
    bool no_cores; /* too few free cores near it for the job */
};

/* The candidates, and which criteria apply. */
struct choice {
    const struct placing *p;
    enum fit_rule rule;
    bool binds;      /* free cores near the cards matter */
    bool spares;     /* what is left for others matters: not if the rule alone decides */
    bool joined;     /* some are joined by NVLink */
    bool spread_out; /* on several NUMA nodes */
    struct candidate list[GPU_MAX];
    int n;
};

/* For jobs with whole cards all cards are alike, unless the job says otherwise. */
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

/* Room is free VRAM; but for a share, free compute first, since it is what a share
 * fragments. */
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

/* A card of unknown node counts as on a node of its own. */
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

/* Whether the job would be bound to these cards' nodes but too few cores are free there. */
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

/* Number of other candidates linked to it, then of those on its node. */
static int
company(const struct candidate *c)
{
    return c->degree * (GPU_MAX + 1) + c->peers;
}

/* By pack or spread; whole cards are all alike. */
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

/* The first in order, without sorting all. */
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

/* A growing set of cards, and its criteria, best one first. */
struct set {
    uint64_t mask;
    uint64_t on; /* mask of its nodes */
    int nodes;   /* number of nodes */
    int pairs;   /* pairs joined by NVLink */
    int promise; /* links of the card just added to cards that may be added next */
    int degrees; /* links of its cards to any candidate */
    int near;    /* candidates on its nodes, including its own */
    int ranks;   /* sum of its cards' places in the pack (or spread) order */
    /* only for a complete set */
    bool no_cores;
    int cut;   /* links from its cards to other candidates */
    int apart; /* candidates that it leaves over on its nodes */
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

/* Grows a set from one card, always adding the best next one. */
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

/* The best set of the wanted size, as a mask. The list is sorted by preference. */
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
