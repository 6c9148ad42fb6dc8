/* Chooses GPUs for one job. Each card either has room or refuses with a reason. If enough have
 * room, place_set.c chooses the set, else place_why.c explains the nearest refusal. At most 64
 * cards, so plain loops suffice. fit.h has the rules for room and order, which the simulator
 * shares.
 *
 * A CUDA program that uses a MIG instance can use no other GPU beside it, so a job that wants
 * several GPUs gets no instances.
 *
 * Unreported values pass: a card of unknown size passes min_vram_mib, and one with unknown use
 * or load passes the guards. An unreported compute capability fails, because only NVIDIA's
 * GPUs have one. Guards compare measured use, not bookings: they are about neighbours that use
 * more than declared. */
#include "core/place/place.h"

#include <string.h>

#include "core/ledger/cards.h"
#include "core/ledger/ledger.h"
#include "core/place/fit.h"
#include "core/place/place_priv.h"

/* A card reports a little less than its name says: an 80 GiB H100 has 81,559 MiB. */
#define SIZE_TOLERANCE_PERMILLE 20

static bool
is_of_kind(const struct demand *d, const struct card *c)
{
    int64_t least = (int64_t)d->min_vram_mib * (1000 - SIZE_TOLERANCE_PERMILLE) / 1000;
    if (d->min_vram_mib > 0 && c->info.total_mib > 0 && c->info.total_mib < least)
        return false;
    if (c->info.cc < d->min_cc)
        return false;
    return !d->gpu_type[0] || strstr(c->type, d->gpu_type) != NULL;
}

static bool
may_use(const struct placing *p, const struct card *c, int card)
{
    const struct demand *d = p->d;
    if (c->gone || (p->want > 1 && c->info.mig_gpu[0]))
        return false;
    if (p->capped && (!ledger_can_cap(p->l, c) || ledger_lacks_size(c, d)))
        return false;
    if (d->n_ids && !memchr(d->ids, card, d->n_ids))
        return false;
    if (!d->n_ids && d->devices && !(d->devices >> card & 1))
        return false;
    return is_of_kind(d, c);
}

/* Sets everything except `usable`. */
static void
set_terms(struct placing *p, const struct demand *d, const struct ledger *l)
{
    const struct ledger_policy *policy = ledger_policy(l);
    p->d = d;
    p->l = l;
    p->cards = ledger_cards(l);
    p->n = ledger_n_cards(l);
    p->want = demand_n_gpus(d);
    p->whole = demand_is_whole(d);
    p->by_part = d->vram_mib == 0 && d->share_permille > 0;
    p->margin_mib = d->vram_mib > 0 ? policy->margin_mib : 0;
    if (d->margin_mib >= 0)
        p->margin_mib = d->margin_mib;
    p->idle_mib = d->idle_mib > 0 ? d->idle_mib : policy->idle_mib;
    p->capped = ledger_cap_mode(l, d) == VRAM_CAP_REQUIRE;
    p->usable = 0;
}

/* The cards of the set that one job may use together. A program uses GPUs of one vendor: the
 * first vendor with enough cards, else the one with most. A single card, or cards named by id,
 * may be of any vendor. */
static uint64_t
of_one_vendor(const struct placing *p, uint64_t cards)
{
    const uint64_t *vendors = ledger_sets(p->l)->vendors;
    uint64_t most = 0;
    if (p->want < 2 || p->d->n_ids)
        return cards;
    for (int v = 0; v < GPU_VENDORS; v++) {
        uint64_t of = cards & vendors[v];
        if (of == cards || __builtin_popcountll(of) >= p->want)
            return of;
        if (__builtin_popcountll(of) > __builtin_popcountll(most))
            most = of;
    }
    return most;
}

/* Whether the demand requires nothing of a card but room. */
static bool
takes_any(const struct placing *p)
{
    const struct demand *d = p->d;
    return !p->capped && !d->n_ids && !d->devices && d->min_vram_mib <= 0 && d->min_cc == 0 &&
           !d->gpu_type[0];
}

void
place_begin(struct placing *p, const struct demand *d, const struct ledger *l)
{
    const struct ledger_sets *sets = ledger_sets(l);
    set_terms(p, d, l);
    if (takes_any(p)) {
        p->usable = sets->present & ~(p->want > 1 ? sets->instances : 0);
        return;
    }
    for (int i = 0; i < p->n; i++) {
        if (may_use(p, &p->cards[i], i))
            p->usable |= UINT64_C(1) << i;
    }
}

int64_t
place_card_size(const struct ledger *l, int card)
{
    int64_t total = ledger_card(l, card)->info.total_mib;
    return total > 0 ? total : INT64_MAX;
}

/* The usable cards on which the demand would fit if they were empty. */
static uint64_t
large_enough(const struct placing *p)
{
    uint64_t large = 0;
    for (uint64_t rest = p->usable; rest; rest &= rest - 1) {
        int card = __builtin_ctzll(rest);
        if (place_card_size(p->l, card) >= p->d->vram_mib + p->margin_mib)
            large |= UINT64_C(1) << card;
    }
    return large;
}

static uint64_t
of_vendor_of(const struct placing *p, int card, uint64_t cards)
{
    uint64_t same = 0;
    for (uint64_t rest = cards; rest; rest &= rest - 1) {
        if (p->cards[__builtin_ctzll(rest)].info.vendor == p->cards[card].info.vendor)
            same |= rest & -rest;
    }
    return same;
}

uint64_t
place_cards_of(const struct demand *d, const struct ledger *l)
{
    struct placing p;
    place_begin(&p, d, l);
    uint64_t together = of_one_vendor(&p, p.usable);
    if (together == p.usable)
        return together;
    uint64_t large = of_one_vendor(&p, large_enough(&p));
    return __builtin_popcountll(large) < p.want
               ? together
               : of_vendor_of(&p, __builtin_ctzll(large), p.usable);
}

static enum reason
state_refuses(const struct card *c)
{
    switch (card_state(c)) {
    case GPU_UP:
        break;
    case GPU_PAUSED:
    case GPU_DRAINING:
        return REASON_GPU_PAUSED;
    case GPU_LOST:
    case GPU_SICK:
        return REASON_GPU_SICK;
    case GPU_UNKNOWN:
        return REASON_PROBE;
    }
    return c->info.compute == GPU_COMPUTE_PROHIBITED ? REASON_GPU_PAUSED : REASON_NONE;
}

/* A card of unknown size can be shared only among jobs that request a share of compute and no
 * VRAM. */
static bool
may_share_uncounted(const struct placing *p, const struct card *c)
{
    bool parts = p->by_part;
    for (int i = 0; i < c->n_holds; i++)
        parts = parts && c->holds[i].by_share;
    return parts;
}

/* Whether no other job may be on the card beside this one. */
static bool
wants_alone(const struct placing *p, const struct card *c)
{
    if (p->whole || p->d->exclusive || c->info.compute == GPU_COMPUTE_EXCLUSIVE)
        return true;
    return !c->countable && !may_share_uncounted(p, c);
}

/* Whether another program has the only compute context that the driver allows. A display has
 * only a graphics context. */
static bool
is_computed_on(const struct card *c)
{
    if (c->info.compute != GPU_COMPUTE_EXCLUSIVE)
        return false;
    for (int i = 0; i < c->n_strangers; i++) {
        if (!c->strangers[i].only_draws)
            return true;
    }
    return false;
}

static bool
is_in_use(const struct placing *p, const struct card *c)
{
    if (c->taken || (c->n_holds > 0 && wants_alone(p, c)) || is_computed_on(c))
        return true;
    return (p->whole || !c->countable) && c->external_mib >= p->idle_mib;
}

static bool
has_memory(const struct placing *p, const struct card *c)
{
    int64_t total = c->info.total_mib;
    if (p->whole || total <= 0)
        return true;
    int64_t need = p->by_part ? demand_vram_mib(p->d, total) : p->d->vram_mib;
    return fit_has_room(place_room_mib(p, c), need, p->margin_mib);
}

/* Whether what the job would hold there fits, regardless of states and guards. */
static enum reason
room_refuses(const struct placing *p, const struct card *c)
{
    if (is_in_use(p, c))
        return REASON_GPU_BUSY;
    if (!ledger_mps_lets_in(p->l, c, p->d))
        return REASON_GPU_MPS;
    if (c->share_held + p->d->share_permille > 1000)
        return REASON_GPU_SHARE;
    return has_memory(p, c) ? REASON_NONE : REASON_GPU_MEMORY;
}

bool
place_card_has_room(const struct demand *d, const struct ledger *l, const struct card *c)
{
    struct placing p;
    set_terms(&p, d, l);
    return room_refuses(&p, c) == REASON_NONE;
}

static uint8_t
guard_refuses(const struct demand *d, const struct card *c)
{
    int64_t total = c->info.total_mib;
    if (d->max_used_permille > 0 && total > 0 && c->used_mib >= 0 &&
        c->used_mib * 1000 >= total * d->max_used_permille)
        return 'u';
    if (d->max_load_permille > 0 && c->util >= 0 && c->util * 10 >= d->max_load_permille)
        return 'l';
    return 0;
}

static struct refusal
refusal_of(const struct placing *p, const struct card *c)
{
    struct refusal r = {.reason = state_refuses(c)};
    if (r.reason == REASON_NONE && p->capped && c->cap_refused[0])
        r.reason = REASON_GPU_CAP;
    if (r.reason == REASON_NONE)
        r.reason = room_refuses(p, c);
    if (r.reason == REASON_NONE && (r.guard = guard_refuses(p->d, c)) != 0)
        r.reason = REASON_GPU_BUSY;
    return r;
}

/* Checks every usable card; returns those with room. */
static uint64_t
cards_with_room(struct placing *p)
{
    uint64_t room = 0;
    for (uint64_t rest = p->usable; rest; rest &= rest - 1) {
        int card = __builtin_ctzll(rest);
        p->refusals[card] = refusal_of(p, &p->cards[card]);
        if (p->refusals[card].reason == REASON_NONE)
            room |= UINT64_C(1) << card;
    }
    return room;
}

uint64_t
place_cards_beside(const struct demand *d, const struct ledger *beside, uint64_t cards)
{
    struct placing p;
    uint64_t fit = 0;
    place_begin(&p, d, beside);
    for (cards &= p.usable; cards; cards &= cards - 1) {
        int card = __builtin_ctzll(cards);
        if (room_refuses(&p, &p.cards[card]) == REASON_NONE)
            fit |= UINT64_C(1) << card;
    }
    return fit;
}

static void
fill_placement(const struct demand *d, uint64_t mask, struct placement *out)
{
    out->n = 0;
    if (d->n_ids) {
        memcpy(out->gpus, d->ids, d->n_ids);
        out->n = d->n_ids;
        return;
    }
    for (; mask; mask &= mask - 1)
        out->gpus[out->n++] = (uint8_t)__builtin_ctzll(mask);
}

static bool
place_cards(struct placing *p, uint64_t within, const struct ledger *beside,
            struct placement *out, struct blocked *why)
{
    uint64_t room = cards_with_room(p);
    int n = __builtin_popcountll(of_one_vendor(p, room));
    if (n < p->want) {
        if (why)
            place_explain(p, n, why);
        return false;
    }
    room &= within;
    if (beside)
        room = place_cards_beside(p->d, beside, room);
    room = of_one_vendor(p, room);
    n = __builtin_popcountll(room);
    if (n < p->want) {
        if (why) {
            why->reason = REASON_RESERVATION;
            why->n_room = (int16_t)n;
        }
        return false;
    }
    fill_placement(p->d, p->d->n_ids ? 0 : place_choose(p, room), out);
    return true;
}

/* Cores and host memory; unknown totals are not checked. */
static bool
host_has_room(const struct demand *d, const struct ledger *l, struct blocked *why)
{
    int64_t cpus = ledger_cpus(l) - ledger_cpus_held(l);
    int64_t mem = ledger_mem_mib(l) - ledger_mem_held(l);
    bool is_cpus = ledger_cpus(l) > 0 && demand_cpus(d) > 0 && demand_cpus(d) > cpus;
    bool is_mem = ledger_mem_mib(l) > 0 && d->mem_mib > 0 && d->mem_mib > mem;
    if (!is_cpus && !is_mem)
        return true;
    if (why) {
        int64_t have = is_cpus ? cpus : mem;
        why->reason = is_cpus ? REASON_CPUS : REASON_MEMORY;
        why->have = have > 0 ? have : 0;
    }
    return false;
}

bool
place_job_within(const struct demand *d, const struct ledger *l, uint64_t cards,
                 const struct ledger *beside, struct placement *out, struct blocked *why)
{
    if (why)
        *why = (struct blocked){.gpu = -1};
    out->n = 0;
    if (d->engine == ENGINE_SLURM) {
        if (why && ledger_slurm_room(l) <= 0)
            why->reason = REASON_SLURM;
        return ledger_slurm_room(l) > 0;
    }
    if (demand_n_gpus(d) > 0) {
        struct placing p;
        place_begin(&p, d, l);
        if (!place_cards(&p, cards, beside, out, why))
            return false;
    }
    if (!host_has_room(d, l, why))
        return false;
    if (beside && !host_has_room(d, beside, why)) {
        if (why)
            *why = (struct blocked){.reason = REASON_RESERVATION, .gpu = -1};
        return false;
    }
    return true;
}

bool
place_job(const struct demand *d, const struct ledger *l, struct placement *out,
          struct blocked *why)
{
    return place_job_within(d, l, UINT64_MAX, NULL, out, why);
}
