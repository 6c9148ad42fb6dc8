/* Chooses the refusal to report: the card that comes nearest to fitting, how much is missing
 * there, and which jobs are in the way. Called by place.c if too few cards fit. */
#include <string.h>

#include "core/ledger/cards.h"
#include "core/place/place_priv.h"

/* The jobs on the card, largest first: by budget, or by share if share is short. */
static void
name_holders(const struct ledger *l, const struct card *c, bool by_share, struct blocked *why)
{
    int64_t sizes[BLOCKED_HOLDERS] = {0};
    for (int i = 0; i < c->n_holds; i++) {
        const struct hold *h = &c->holds[i];
        int64_t size = by_share ? h->share_permille : card_budget(l, c, h);
        if (by_share && size == 0)
            continue;
        int named = why->n_holders < BLOCKED_HOLDERS ? why->n_holders : BLOCKED_HOLDERS;
        int at = named;
        while (at > 0 && size > sizes[at - 1])
            at--;
        why->n_holders++;
        if (at == BLOCKED_HOLDERS)
            continue;
        for (int j = named < BLOCKED_HOLDERS ? named : BLOCKED_HOLDERS - 1; j > at; j--) {
            sizes[j] = sizes[j - 1];
            why->holders[j] = why->holders[j - 1];
        }
        sizes[at] = size;
        why->holders[at] = (struct called){.id = h->job};
    }
}

/* The largest other process; if the driver admits only one compute program, that one. */
static void
name_stranger(const struct card *c, struct blocked *why)
{
    bool is_exclusive = c->info.compute == GPU_COMPUTE_EXCLUSIVE;
    const struct stranger *named = NULL;
    for (int i = 0; i < c->n_strangers; i++) {
        const struct stranger *s = &c->strangers[i];
        bool is_nearer = named && is_exclusive && named->only_draws != s->only_draws
                             ? named->only_draws
                             : s->peak_mib > (named          ? named->peak_mib
                                              : is_exclusive ? -2
                                                             : -1);
        if (is_nearer)
            named = s;
    }
    why->stranger_pid = named ? named->pid : 0;
    why->stranger_mib = (int32_t)c->external_mib;
}

/* Records the obstacle on this card. */
static void
blame(const struct ledger *l, const struct card *c, struct blocked *why)
{
    bool by_share = why->card_reason == REASON_GPU_SHARE;
    name_holders(l, c, by_share, why);
    name_stranger(c, why);
    const struct hold *largest =
        why->n_holders ? ledger_find_hold(l, c->info.index, why->holders[0].id) : NULL;
    if (largest && (by_share || c->taken || why->card_reason == REASON_GPU_MPS ||
                    card_budget(l, c, largest) >= c->external_mib))
        why->by = BLOCKED_BY_JOB;
    else if (c->external_mib > 0 && c->external_mib >= why->short_mib)
        why->by = BLOCKED_BY_STRANGER;
    else
        why->by = c->n_strangers > 0 ? BLOCKED_BY_STRANGER : BLOCKED_BY_NOTHING;
}

/* How far a refusal is from resolving itself, nearest first: a card with room that is busy for
 * the moment; one on which a job must end; one that needs an administrator. */
static int
distance(struct refusal r)
{
    if (r.reason == REASON_GPU_BUSY)
        return r.guard ? 0 : 3;
    if (r.reason == REASON_GPU_MPS)
        return 3;
    if (r.reason == REASON_GPU_SHARE)
        return 1;
    return r.reason == REASON_GPU_MEMORY ? 2 : 4 + (int)r.reason;
}

/* The value that the guard refused, in permille. */
static int32_t
guard_measures(const struct card *c, uint8_t guard)
{
    return guard == 'l' ? c->util * 10 : (int32_t)(c->used_mib * 1000 / c->info.total_mib);
}

/* Whether card a is nearer to having room than card b; both refuse. */
static bool
is_nearer(const struct card *a, struct refusal ra, const struct card *b, struct refusal rb)
{
    if (distance(ra) != distance(rb))
        return distance(ra) < distance(rb);
    if (ra.reason == REASON_GPU_SHARE && a->share_held != b->share_held)
        return a->share_held < b->share_held;
    if (ra.guard && ra.guard == rb.guard)
        return guard_measures(a, ra.guard) < guard_measures(b, rb.guard);
    if (ra.reason == REASON_GPU_MEMORY)
        return a->headroom_mib > b->headroom_mib;
    if (a->n_holds != b->n_holds)
        return a->n_holds < b->n_holds;
    return a->external_mib < b->external_mib;
}

static const struct card *
nearest(const struct placing *p, struct refusal *said)
{
    const struct card *near = NULL;
    for (uint64_t rest = p->usable; rest; rest &= rest - 1) {
        int card = __builtin_ctzll(rest);
        struct refusal r = p->refusals[card];
        const struct card *c = &p->cards[card];
        if (r.reason == REASON_NONE || (near && !is_nearer(c, r, near, *said)))
            continue;
        near = c;
        *said = r;
    }
    return near;
}

static void
tell_numbers(const struct placing *p, const struct card *c, struct blocked *why)
{
    int64_t room = place_room_mib(p, c);
    why->need_mib = demand_vram_mib(p->d, c->info.total_mib);
    why->free_mib = room > 0 ? room : 0;
    why->share_left = 1000 - c->share_held;
    if (why->card_reason == REASON_GPU_MEMORY)
        why->short_mib = why->need_mib + why->margin_mib - room;
    if (why->guard)
        why->guard_has = guard_measures(c, why->guard);
}

static void
tell_cap(const struct card *c, struct blocked *why)
{
    if (why->card_reason == REASON_GPU_CAP)
        memcpy(why->health_text, c->cap_refused, sizeof why->health_text);
}

static void
tell_state(const struct ledger *l, const struct card *c, struct blocked *why)
{
    why->gpu_state = (uint8_t)card_state(c);
    if (why->gpu_state == GPU_UP)
        return;
    why->since_us = ledger_state_since_wall_us(l, c);
    why->xid = c->xid;
    memcpy(why->health_text, c->health_text, sizeof why->health_text);
}

void
place_explain(const struct placing *p, int n_room, struct blocked *why)
{
    struct refusal said = {ledger_is_known(p->l) ? REASON_RESOURCES : REASON_PROBE, 0};
    const struct card *near = nearest(p, &said);
    why->margin_mib = (int32_t)p->margin_mib;
    why->n_room = (int16_t)n_room;
    why->reason = n_room > 0 && near ? REASON_RESOURCES : said.reason;
    if (!near)
        return;
    why->gpu = (int16_t)near->info.index;
    why->card_reason = said.reason;
    why->guard = said.guard;
    tell_numbers(p, near, why);
    tell_state(p->l, near, why);
    tell_cap(near, why);
    if (said.reason == REASON_GPU_MEMORY || said.reason == REASON_GPU_SHARE ||
        said.reason == REASON_GPU_MPS || (said.reason == REASON_GPU_BUSY && !said.guard))
        blame(p->l, near, why);
}
