/* What place.c, place_set.c and place_why.c share; no other file includes this. */
#ifndef CORE_PLACE_PLACE_PRIV_H
#define CORE_PLACE_PLACE_PRIV_H

#include "core/ledger/ledger.h"
#include "core/place/place.h"

/* Why a card will not do. */
struct refusal {
    enum reason reason; /* REASON_NONE: it would */
    uint8_t guard;      /* GpuBusy: 'u' used memory, 'l' load; 0: no guard */
};

/* One demand on one ledger, with what is asked of every card worked out once: place.c is called
 * for each kind of job in each pass. */
struct placing {
    const struct demand *d;
    const struct ledger *l;
    const struct card *cards; /* all of the ledger's */
    int n, want;
    bool whole;   /* wants each card whole */
    bool capped;  /* only cards that can hold it to its VRAM */
    bool by_part; /* a share without VRAM: a part of each card's */
    /* Kept free on top. A part of a card is as whole as the card of a job that wants it alone:
     * nothing on top unless it says so. */
    int64_t margin_mib;
    int64_t idle_mib;
    uint64_t usable;                  /* cards that are what it asks for */
    struct refusal refusals[GPU_MAX]; /* of the usable ones */
};

void place_begin(struct placing *p, const struct demand *d, const struct ledger *l);

/* What others on the card use and did not declare: strangers, and, for a job that says itself
 * what it calls idle, jobs beside it that use more than their part. */
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

/* Free memory as this demand counts it: for a part of a card what is not declared and below the
 * idle threshold is not there, as it is not for a job that wants the whole card. */
static inline int64_t
place_room_mib(const struct placing *p, const struct card *c)
{
    int64_t others = p->by_part ? place_undeclared_mib(p, c) : 0;
    return others < p->idle_mib ? c->headroom_mib + others : c->headroom_mib;
}

/* MiB; INT64_MAX where it is not known. */
int64_t place_card_size(const struct ledger *l, int card);

/* place_set.c: the best of these cards, as many as it wants, ascending, as a mask. */
uint64_t place_choose(const struct placing *p, uint64_t cards);

/* place_why.c: *why when n_room cards would do, from the refusals of the others. */
void place_explain(const struct placing *p, int n_room, struct blocked *why);

#endif
