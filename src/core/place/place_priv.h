/* Shared by place.c, place_set.c and place_why.c; no other file includes this. */
#ifndef CORE_PLACE_PLACE_PRIV_H
#define CORE_PLACE_PLACE_PRIV_H

#include "core/ledger/ledger.h"
#include "core/place/place.h"

/* Why a card is refused. */
struct refusal {
    enum reason reason; /* REASON_NONE: it is not refused */
    uint8_t guard;      /* GpuBusy: 'u' used memory, 'l' load; 0: no guard */
};

/* One demand on one ledger, with the demand's requirements computed once: place.c is called
 * for each kind of job in each pass. */
struct placing {
    const struct demand *d;
    const struct ledger *l;
    const struct card *cards; /* all cards of the ledger */
    int n, want;
    bool whole;   /* needs each card whole */
    bool capped;  /* only cards that can enforce its VRAM cap */
    bool by_part; /* a share without VRAM: a part of each card's memory */
    /* Kept free on top. A job with a part of a card is treated as one that has its card alone:
     * no margin unless it requests one. */
    int64_t margin_mib;
    int64_t idle_mib;
    uint64_t usable;                  /* cards that match the request */
    struct refusal refusals[GPU_MAX]; /* of the usable cards */
};

void place_begin(struct placing *p, const struct demand *d, const struct ledger *l);

/* Undeclared use on the card: by other processes and, for a job with its own idle threshold,
 * by jobs that use more than their part. */
static inline int64_t
place_undeclared_mib(const struct placing *p, const struct card *c)
{
    int64_t mib = c->external_mib;
    for (int i = 0; i < c->n_holds && p->d->idle_mib > 0; i++) {
        const struct hold *h = &c->holds[i];
        if (h->by_share)
            mib += card_budget(p->l, c, h) - h->demand_mib;
    }
    return mib;
}

/* Free memory as this demand counts it: for a part of a card, undeclared use below the idle
 * threshold is ignored, as it is for a job that wants the whole card. */
static inline int64_t
place_room_mib(const struct placing *p, const struct card *c)
{
    int64_t others = p->by_part ? place_undeclared_mib(p, c) : 0;
    return others < p->idle_mib ? c->headroom_mib + others : c->headroom_mib;
}

/* MiB; INT64_MAX if unknown. */
int64_t place_card_size(const struct ledger *l, int card);

/* place_set.c: the best set of as many of these cards as wanted, as a mask. */
uint64_t place_choose(const struct placing *p, uint64_t cards);

/* place_why.c: sets *why, given that n_room cards have room, from the refusals of the
 * others. */
void place_explain(const struct placing *p, int n_room, struct blocked *why);

#endif
