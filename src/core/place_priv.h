/* What place.c, place_set.c and place_why.c share; nobody else includes this. */
#ifndef CORE_PLACE_PRIV_H
#define CORE_PLACE_PRIV_H

#include "core/ledger.h"
#include "core/place.h"

/* How many cards it wants. */
static inline int
place_wanted(const struct demand *d)
{
    return d->n_ids ? d->n_ids : d->gpus;
}

/* What the demand wants kept free on top. A share without VRAM is a part of the whole card, as
 * whole as the card of a job that wants it alone: nothing on top unless it says so. */
static inline int64_t
place_margin_mib(const struct demand *d, const struct ledger *l)
{
    if (d->margin_mib >= 0)
        return d->margin_mib;
    return d->vram_mib > 0 ? ledger_policy(l)->margin_mib : 0;
}

/* Free memory as this demand counts it: for a share without VRAM strangers below the idle
 * threshold are not there, as they are not for a job that wants the whole card. */
static inline int64_t
place_room_mib(const struct demand *d, const struct ledger *l, const struct card *c)
{
    bool by_part = d->vram_mib == 0 && d->share_permille > 0;
    bool idle = c->external_mib < ledger_policy(l)->idle_mib;
    return by_part && idle ? c->headroom_mib + c->external_mib : c->headroom_mib;
}

/* Why a card will not do. */
struct refusal {
    enum reason reason; /* REASON_NONE: it would */
    uint8_t guard;      /* GpuBusy: 'u' used memory, 'l' load; 0: no guard */
};

bool place_may_use(const struct demand *d, const struct ledger *l, int card);
struct refusal place_refusal(const struct demand *d, const struct ledger *l,
                             const struct card *c);

/* place_set.c: the want best of these cards, ascending, as a mask. */
uint64_t place_choose(const struct demand *d, const struct ledger *l, uint64_t cards, int want);

/* place_why.c: *why for a demand for which n_room cards would do. */
void place_explain(const struct demand *d, const struct ledger *l, int n_room,
                   struct blocked *why);

#endif
