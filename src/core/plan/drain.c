/* When each job leaves its GPUs. A demand for n GPUs fits once n single GPUs would each do, so
 * its time is the n-th smallest of the GPUs' times: no walk over all ends together. */
#include "core/plan/drain.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/ledger/ledger.h"
#include "core/place/place.h"

struct leaver {
    int64_t at;
    int32_t card;
    int32_t share_permille;
    int64_t mib;
};

struct drain {
    const struct ledger *l;
    struct leaver *leavers; /* owned; by (card, time) once sorted */
    size_t n, cap;
    size_t first[GPU_MAX + 1]; /* index of each card's first leaver */
};

struct drain *
drain_new(void)
{
    return xcalloc(1, sizeof(struct drain));
}

void
drain_free(struct drain *d)
{
    if (!d)
        return;
    free(d->leavers);
    free(d);
}

void
drain_begin(struct drain *d, const struct ledger *l)
{
    d->l = l;
    d->n = 0;
}

void
drain_expect(struct drain *d, uint32_t job, int64_t leaves_s)
{
    uint8_t gpus[GPU_MAX];
    int n = ledger_cards_of(d->l, job, gpus);
    for (int i = 0; i < n; i++) {
        const struct card *c = ledger_card(d->l, gpus[i]);
        const struct hold *h = ledger_find_hold(d->l, gpus[i], job);
        d->leavers = xgrow(d->leavers, d->n, &d->cap, sizeof *d->leavers);
        d->leavers[d->n++] = (struct leaver){.at = leaves_s > 0 ? leaves_s : 1,
                                             .card = gpus[i],
                                             .share_permille = h->share_permille,
                                             .mib = card_budget(d->l, c, h)};
    }
}

static int
compare_leavers(const void *a, const void *b)
{
    const struct leaver *x = a, *y = b;
    if (x->card != y->card)
        return x->card < y->card ? -1 : 1;
    return x->at == y->at ? 0 : x->at < y->at ? -1 : 1;
}

void
drain_sort(struct drain *d)
{
    if (d->n)
        qsort(d->leavers, d->n, sizeof *d->leavers, compare_leavers);
    size_t at = 0;
    for (int card = 0; card < GPU_MAX; card++) {
        d->first[card] = at;
        while (at < d->n && d->leavers[at].card == card)
            at++;
    }
    d->first[GPU_MAX] = at;
}

static int64_t
time_of_card(const struct drain *d, const struct demand *want, int card)
{
    struct card c = *ledger_card(d->l, card); /* a copy, as after some jobs have left */
    if (place_card_has_room(want, d->l, &c))
        return 0;
    for (size_t i = d->first[card]; i < d->first[card + 1]; i++) {
        const struct leaver *leaver = &d->leavers[i];
        c.headroom_mib += leaver->mib;
        c.share_held -= leaver->share_permille;
        c.n_holds--;
        c.taken = c.taken && c.n_holds > 0;
        if (place_card_has_room(want, d->l, &c))
            return leaver->at;
    }
    return DRAIN_NEVER;
}

int64_t
drain_time(const struct drain *d, const struct demand *want)
{
    int64_t times[GPU_MAX];
    int n = 0, wanted = demand_n_gpus(want);
    uint64_t cards = place_cards_of(want, d->l);
    if (wanted == 0)
        return 0;
    for (; cards; cards &= cards - 1) {
        int card = __builtin_ctzll(cards), at = n++;
        const struct card *c = ledger_card(d->l, card);
        if (card_state(c) != GPU_UP || c->info.compute == GPU_COMPUTE_PROHIBITED) {
            n--;
            continue;
        }
        int64_t t = time_of_card(d, want, card);
        for (; at > 0 && t < times[at - 1]; at--)
            times[at] = times[at - 1];
        times[at] = t;
    }
    return wanted > n ? DRAIN_NEVER : times[wanted - 1];
}
