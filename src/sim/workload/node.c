/* Cards as numbers, kept sorted by free VRAM, so that most queries need no loop: a shape fits
 * if it fits on the n-th card from the end. */
#include "sim/workload/node.h"

#include "base/err.h"

void
node_init(struct node *d, const int32_t *total_mib, int n, int32_t margin_mib)
{
    if (n < 1 || n > GPU_MAX)
        err_abort("a node with %d cards", n);
    *d = (struct node){.n = n, .margin_mib = margin_mib};
    d->all = n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
    for (int i = 0; i < n; i++) {
        d->total_mib[i] = total_mib[i];
        d->free_mib[i] = total_mib[i];
        int at = i;
        for (; at > 0 && fit_precedes(FIT_BEST, total_mib[i], i, d->free_mib[d->order[at - 1]],
                                      d->order[at - 1]);
             at--)
            d->order[at] = d->order[at - 1];
        d->order[at] = (uint8_t)i;
    }
}

int64_t
shape_takes_mib(const struct shape *s, int64_t total_mib)
{
    if (s->share_permille > 0)
        return total_mib * s->share_permille / 1000;
    return s->alone && s->vram_mib == 0 ? total_mib : s->vram_mib;
}

/* A job that has a card alone needs no margin; but one that does not share and yet declared
 * its VRAM is placed as declared, with margin. */
static int32_t
margin_of(const struct node *d, const struct shape *s)
{
    return d->whole || (s->alone && s->vram_mib == 0) ? 0 : d->margin_mib;
}

bool
node_card_does(const struct node *d, const struct shape *s, int card, int64_t free_mib,
               int32_t n_jobs)
{
    if (!(s->allowed >> card & 1) || ((d->whole || s->alone) && n_jobs > 0))
        return false;
    return fit_has_room(free_mib, s->vram_mib, margin_of(d, s));
}

int64_t
node_free_after(const struct shape *s, int64_t free_mib)
{
    return s->alone ? -1 : free_mib - s->vram_mib;
}

static bool
is_plain(const struct node *d, const struct shape *s)
{
    return !d->whole && !s->alone && (s->allowed & d->all) == d->all;
}

static bool
does(const struct node *d, const struct shape *s, int card)
{
    return node_card_does(d, s, card, d->free_mib[card], d->n_jobs[card]);
}

bool
node_fits(const struct node *d, const struct shape *s)
{
    if (s->n > d->n)
        return false;
    if (is_plain(d, s))
        return fit_has_room(d->free_mib[d->order[d->n - s->n]], s->vram_mib, d->margin_mib);
    int n = 0;
    for (int i = 0; i < d->n; i++)
        n += does(d, s, i);
    return n >= s->n;
}

bool
node_fits_empty(const struct node *d, const struct shape *s)
{
    int n = 0;
    for (int i = 0; i < d->n; i++)
        n += node_card_does(d, s, i, d->total_mib[i], 0);
    return n >= s->n;
}

/* The first n cards with room, in sorted order. */
static uint64_t
place_packed(const struct node *d, const struct shape *s)
{
    uint64_t cards = 0;
    int left = s->n;
    for (int i = 0; i < d->n && left > 0; i++) {
        if (!does(d, s, d->order[i]))
            continue;
        cards |= UINT64_C(1) << d->order[i];
        left--;
    }
    return left ? 0 : cards;
}

static uint64_t
place_sorted(const struct node *d, const struct shape *s, enum fit_rule rule)
{
    uint8_t chosen[GPU_MAX];
    int n = 0;
    uint64_t cards = 0;
    for (int i = 0; i < d->n; i++) {
        if (!does(d, s, i))
            continue;
        int at = n++;
        for (; at > 0 && fit_precedes(rule, d->free_mib[i], i, d->free_mib[chosen[at - 1]],
                                      chosen[at - 1]);
             at--)
            chosen[at] = chosen[at - 1];
        chosen[at] = (uint8_t)i;
    }
    if (n < s->n)
        return 0;
    for (int i = 0; i < s->n; i++)
        cards |= UINT64_C(1) << chosen[i];
    return cards;
}

bool
node_packs(const struct node *d, const struct shape *s)
{
    /* Whole cards are all alike: assigned by number, as in place.c. */
    return d->rule == FIT_BEST && !(s->alone && s->vram_mib == 0);
}

int
node_candidates(const struct node *d, const struct shape *s, uint8_t *out)
{
    int n = 0;
    for (int i = 0; i < d->n; i++) {
        int card = d->order[i];
        if ((s->allowed >> card & 1) && !((d->whole || s->alone) && d->n_jobs[card] > 0))
            out[n++] = (uint8_t)card;
    }
    return n;
}

int64_t
node_room(const struct node *d, const struct shape *s, int64_t free_mib)
{
    return free_mib - margin_of(d, s);
}

uint64_t
node_place(const struct node *d, const struct shape *s)
{
    if (node_packs(d, s))
        return place_packed(d, s);
    return place_sorted(d, s, d->rule == FIT_BEST ? FIT_FIRST : d->rule);
}

/* Moves a card to its sorted place after its free VRAM changed. */
static void
settle(struct node *d, int card)
{
    int at = 0;
    while (d->order[at] != card)
        at++;
    int64_t room = d->free_mib[card];
    for (; at > 0; at--) {
        int other = d->order[at - 1];
        if (!fit_precedes(FIT_BEST, room, card, d->free_mib[other], other))
            break;
        d->order[at] = (uint8_t)other;
    }
    for (; at + 1 < d->n; at++) {
        int other = d->order[at + 1];
        if (!fit_precedes(FIT_BEST, d->free_mib[other], other, room, card))
            break;
        d->order[at] = (uint8_t)other;
    }
    d->order[at] = (uint8_t)card;
}

void
node_take(struct node *d, const struct shape *s, uint64_t cards)
{
    for (; cards; cards &= cards - 1) {
        int card = __builtin_ctzll(cards);
        d->free_mib[card] = node_free_after(s, d->free_mib[card]);
        d->n_jobs[card]++;
        settle(d, card);
    }
}

void
node_give(struct node *d, const struct shape *s, uint64_t cards)
{
    for (; cards; cards &= cards - 1) {
        int card = __builtin_ctzll(cards);
        d->free_mib[card] = s->alone ? d->total_mib[card] : d->free_mib[card] + s->vram_mib;
        d->n_jobs[card]--;
        settle(d, card);
    }
}
