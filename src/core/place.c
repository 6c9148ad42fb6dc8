/* Chooses cards for one job. A card either would do or refuses with a reason; among those
 * that would do the set is chosen (place_set.c), else the nearest refusal is explained
 * (place_why.c). At most 64 cards, so everything is plain loops. What has room and what comes
 * first is fit.h's to say, which the simulator asks too.
 *
 * What is not reported fails nothing: a card that does not tell its size passes min_vram_mib,
 * one that does not tell its use or load passes the guards. A guard looks at what was measured,
 * not at what is booked: it is about neighbours that use more than anybody said. */
#include "core/place.h"

#include <string.h>

#include "core/fit.h"
#include "core/gpu.h"
#include "core/ledger.h"
#include "core/place_priv.h"

/* A card reports a little less than its name says: an H100 of 80 GiB 81,559 MiB. */
#define SIZE_TOLERANCE_PERMILLE 20

static bool
is_of_kind(const struct demand *d, const struct card *c)
{
    int64_t least = (int64_t)d->min_vram_mib * (1000 - SIZE_TOLERANCE_PERMILLE) / 1000;
    if (d->min_vram_mib > 0 && c->info.total_mib > 0 && c->info.total_mib < least)
        return false;
    return !d->gpu_type[0] || strstr(c->type, d->gpu_type) != NULL;
}

bool
place_may_use(const struct demand *d, const struct ledger *l, int card)
{
    if (d->n_ids && !memchr(d->ids, card, d->n_ids))
        return false;
    if (!d->n_ids && d->devices && !(d->devices >> card & 1))
        return false;
    return is_of_kind(d, ledger_card(l, card));
}

uint64_t
place_cards_of(const struct demand *d, const struct ledger *l)
{
    uint64_t cards = 0;
    for (int i = 0; i < ledger_n_cards(l); i++) {
        const struct card *c = ledger_card(l, i);
        if (place_may_use(d, l, i) && c->info.compute != GPU_COMPUTE_PROHIBITED)
            cards |= UINT64_C(1) << i;
    }
    return cards;
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

/* A card whose memory is not known is shared by count only: by those who named their part of
 * its compute and nothing else. */
static bool
may_share_uncounted(const struct demand *d, const struct card *c)
{
    bool parts = d->share_permille > 0 && d->vram_mib == 0;
    for (int i = 0; i < c->n_holds; i++)
        parts = parts && c->holds[i].by_share;
    return parts;
}

/* Nobody may be beside it there. */
static bool
wants_alone(const struct demand *d, const struct card *c)
{
    if (demand_is_whole(d) || d->exclusive || c->info.compute == GPU_COMPUTE_EXCLUSIVE)
        return true;
    return !c->countable && !may_share_uncounted(d, c);
}

static bool
is_in_use(const struct demand *d, const struct ledger *l, const struct card *c)
{
    bool one_process = c->info.compute == GPU_COMPUTE_EXCLUSIVE;
    bool by_count = demand_is_whole(d) || !c->countable;
    if (c->taken || (wants_alone(d, c) && c->n_holds > 0))
        return true;
    if (one_process && c->n_strangers > 0)
        return true;
    return by_count && c->external_mib >= ledger_policy(l)->idle_mib;
}

static bool
has_memory(const struct demand *d, const struct ledger *l, const struct card *c)
{
    int64_t total = c->info.total_mib;
    if (demand_is_whole(d) || total <= 0)
        return true;
    return fit_has_room(place_room_mib(d, l, c), demand_vram_mib(d, total),
                        place_margin_mib(d, l));
}

static bool
has_share(const struct demand *d, const struct card *c)
{
    return c->share_held + d->share_permille <= 1000;
}

/* What the job is to hold there fits; states and guards aside. */
static enum reason
room_refuses(const struct demand *d, const struct ledger *l, const struct card *c)
{
    if (is_in_use(d, l, c))
        return REASON_GPU_BUSY;
    if (!has_share(d, c))
        return REASON_GPU_SHARE;
    return has_memory(d, l, c) ? REASON_NONE : REASON_GPU_MEMORY;
}

bool
place_card_has_room(const struct demand *d, const struct ledger *l, const struct card *c)
{
    return room_refuses(d, l, c) == REASON_NONE;
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

struct refusal
place_refusal(const struct demand *d, const struct ledger *l, const struct card *c)
{
    struct refusal r = {.reason = state_refuses(c)};
    if (r.reason == REASON_NONE)
        r.reason = room_refuses(d, l, c);
    if (r.reason == REASON_NONE && (r.guard = guard_refuses(d, c)) != 0)
        r.reason = REASON_GPU_BUSY;
    return r;
}

/* Cards of the set on which it would also fit in beside. Of the time to come only room can be
 * told: guards and states are today's. */
static uint64_t
cards_beside(const struct demand *d, const struct ledger *beside, uint64_t cards)
{
    uint64_t fit = 0;
    for (; cards; cards &= cards - 1) {
        int card = __builtin_ctzll(cards);
        if (room_refuses(d, beside, ledger_card(beside, card)) == REASON_NONE)
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

static uint64_t
cards_with_room(const struct demand *d, const struct ledger *l)
{
    uint64_t room = 0;
    for (int i = 0; i < ledger_n_cards(l); i++) {
        if (place_may_use(d, l, i) &&
            place_refusal(d, l, ledger_card(l, i)).reason == REASON_NONE)
            room |= UINT64_C(1) << i;
    }
    return room;
}

static bool
place_cards(const struct demand *d, const struct ledger *l, uint64_t within,
            const struct ledger *beside, struct placement *out, struct blocked *why)
{
    int want = place_wanted(d);
    uint64_t room = cards_with_room(d, l);
    int n = __builtin_popcountll(room);
    if (n < want) {
        place_explain(d, l, n, why);
        return false;
    }
    room &= within;
    if (beside)
        room = cards_beside(d, beside, room);
    n = __builtin_popcountll(room);
    if (n < want) {
        why->reason = REASON_RESERVATION;
        why->n_room = (int16_t)n;
        return false;
    }
    fill_placement(d, d->n_ids ? 0 : place_choose(d, l, room, want), out);
    return true;
}

/* Cores and host memory: what is not known is not checked. */
static bool
host_has_room(const struct demand *d, const struct ledger *l, struct blocked *why)
{
    int64_t cpus = ledger_cpus(l) - ledger_cpus_held(l);
    int64_t mem = ledger_mem_mib(l) - ledger_mem_held(l);
    if (ledger_cpus(l) > 0 && demand_cpus(d) > 0 && demand_cpus(d) > cpus) {
        why->reason = REASON_CPUS;
        why->have = cpus > 0 ? cpus : 0;
        return false;
    }
    if (ledger_mem_mib(l) > 0 && d->mem_mib > 0 && d->mem_mib > mem) {
        why->reason = REASON_MEMORY;
        why->have = mem > 0 ? mem : 0;
        return false;
    }
    return true;
}

bool
place_job_within(const struct demand *d, const struct ledger *l, uint64_t cards,
                 const struct ledger *beside, struct placement *out, struct blocked *why)
{
    struct blocked unused;
    if (!why)
        why = &unused;
    *why = (struct blocked){.gpu = -1};
    out->n = 0;
    if (place_wanted(d) > 0 && !place_cards(d, l, cards, beside, out, why))
        return false;
    if (!host_has_room(d, l, why))
        return false;
    if (beside && !host_has_room(d, beside, why)) {
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
