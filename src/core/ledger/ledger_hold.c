/* What each job holds: booked when its start is decided, released at its end. Called for the
 * plan's decisions, for jobs found running after a restart, and in look aheads.
 *
 * A job's holding (its cards, cores and host memory) is found by its id; each of its cards has
 * a hold for it. ledger_check compares the two. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/ledger/ledger_priv.h"

static struct holding **
holding_slot(const struct ledger *l, uint32_t job)
{
    struct holding **p = &l->buckets[job & (l->n_buckets - 1)];
    while (*p && (*p)->job != job)
        p = &(*p)->next;
    return p;
}

static void
holdings_grow(struct ledger *l)
{
    size_t n = l->n_buckets;
    struct holding **old = l->buckets;
    l->n_buckets = n * 2;
    l->buckets = xcalloc(l->n_buckets, sizeof *l->buckets);
    for (size_t b = 0; b < n; b++) {
        for (struct holding *h = old[b], *next; h; h = next) {
            next = h->next;
            struct holding **to = &l->buckets[h->job & (l->n_buckets - 1)];
            h->next = *to;
            *to = h;
        }
    }
    ledger_free_part(l, old);
}

int32_t
demand_cpus(const struct demand *d)
{
    return d->cpus == 0 && d->gpus == 0 ? 1 : d->cpus;
}

int32_t
demand_vram_mib(const struct demand *d, int64_t total_mib)
{
    if (d->vram_mib > 0 || d->share_permille == 0)
        return d->vram_mib;
    return (int32_t)(total_mib * d->share_permille / 1000);
}

static void
card_add_hold(struct ledger *l, struct card *c, uint32_t job, const struct demand *d)
{
    c->holds = ledger_grow(l, c->holds, c->n_holds, &c->cap_holds, sizeof *c->holds);
    c->holds[c->n_holds++] = (struct hold){
        .job = job,
        .demand_mib = demand_vram_mib(d, c->info.total_mib),
        .share_permille = d->share_permille,
        .by_share = d->vram_mib == 0 && d->share_permille > 0,
        .exclusive = d->exclusive || demand_is_whole(d),
        .user = d->user,
        .now_mib = -1,
        .peak_mib = -1,
        .rest_mib = card_rest(c),
        .used_mib = c->used_mib,
    };
    card_derive(l, c);
}

static void
card_drop_hold(struct ledger *l, struct card *c, uint32_t job)
{
    for (int i = 0; i < c->n_holds; i++) {
        if (c->holds[i].job == job) {
            c->n_holds--;
            memmove(&c->holds[i], &c->holds[i + 1],
                    (size_t)(c->n_holds - i) * sizeof *c->holds);
            break;
        }
    }
    card_derive(l, c);
}

void
ledger_hold(struct ledger *l, uint32_t job, const struct demand *d, const uint8_t *gpus, int n)
{
    if (job == 0 || n > GPU_MAX || *holding_slot(l, job))
        err_abort("job %u books %d cards, and holds some already", job, n);
    if (l->n_holdings >= l->n_buckets)
        holdings_grow(l);
    struct holding *h = xcalloc(1, sizeof *h);
    h->job = job;
    h->n = (uint8_t)n;
    if (d->engine == ENGINE_SLURM) {
        l->slurm_room--;
    } else {
        h->cpus = demand_cpus(d);
        h->mem_mib = d->mem_mib;
    }
    uint64_t nodes;
    (void)ledger_bind(l, d, gpus, n, &nodes);
    nodes_hold(l, h, nodes);
    *holding_slot(l, job) = h;
    l->n_holdings++;
    l->cpus_held += h->cpus;
    l->mem_held_mib += h->mem_mib;
    for (int i = 0; i < n; i++) {
        h->gpus[i] = gpus[i];
        card_add_hold(l, card_at(l, gpus[i]), job, d);
    }
}

void
ledger_release(struct ledger *l, uint32_t job)
{
    struct holding **slot = holding_slot(l, job);
    struct holding *h = *slot;
    if (!h)
        return;
    *slot = h->next;
    l->n_holdings--;
    nodes_release(l, h);
    l->cpus_held -= h->cpus;
    l->mem_held_mib -= h->mem_mib;
    for (int i = 0; i < h->n; i++)
        card_drop_hold(l, card_at(l, h->gpus[i]), job);
    ledger_free_part(l, h);
}

/* How much of the card's used memory leaves with the hold: its measured use, and as much of
 * the unreported memory as can be its own. */
static int64_t
hold_used_mib(const struct ledger *l, const struct card *c, const struct hold *h)
{
    int64_t known = h->now_mib > 0 ? h->now_mib : 0, silent = 0;
    if (c->listed && h->unreported)
        silent = card_rest(c);
    else if (c->listed && card_hides(c, h))
        silent = card_grown(c);
    else if (!c->listed && h->now_mib < 0 && h->used_mib >= 0)
        silent = c->used_mib - h->used_mib;
    int64_t room = card_budget(l, c, h) - known;
    silent = silent < room ? silent : room;
    return silent > 0 ? known + silent : known;
}

static void
card_take_back(const struct ledger *l, struct card *c, const struct hold *h)
{
    int64_t known = h->now_mib > 0 ? h->now_mib : 0;
    int64_t mine = hold_used_mib(l, c, h);
    if (c->used_mib >= 0)
        c->used_mib = c->used_mib > mine ? c->used_mib - mine : 0;
    c->listed_mib = c->listed_mib > known ? c->listed_mib - known : 0;
    c->util = -1;
}

void
ledger_release_ahead(struct ledger *l, uint32_t job)
{
    const struct holding *h = *holding_slot(l, job);
    for (int i = 0; h && i < h->n; i++) {
        struct card *c = card_at(l, h->gpus[i]);
        card_take_back(l, c, card_hold(c, job));
    }
    ledger_release(l, job);
}

bool
ledger_holds(const struct ledger *l, uint32_t job)
{
    return *holding_slot(l, job) != NULL;
}

const struct hold *
ledger_find_hold(const struct ledger *l, int card, uint32_t job)
{
    return card_hold(ledger_card(l, card), job);
}

uint64_t
ledger_bound(const struct ledger *l, uint32_t job)
{
    const struct holding *h = *holding_slot(l, job);
    return h ? h->nodes : 0;
}

void
ledger_rebind(struct ledger *l, uint32_t job, uint64_t nodes)
{
    struct holding *h = *holding_slot(l, job);
    if (!h)
        return;
    nodes_release(l, h);
    nodes_hold(l, h, nodes);
}

int
ledger_cards_of(const struct ledger *l, uint32_t job, uint8_t *out)
{
    const struct holding *h = *holding_slot(l, job);
    if (!h)
        return 0;
    memcpy(out, h->gpus, h->n);
    return h->n;
}

void
ledger_restore_peak(struct ledger *l, int card, uint32_t job, int32_t peak_mib)
{
    struct card *c = card_at(l, card);
    struct hold *h = card_hold(c, job);
    if (!h || peak_mib <= h->peak_mib)
        return;
    h->peak_mib = peak_mib;
    card_derive(l, c);
}
