/* Which jobs have their declared VRAM enforced, and at which cap: from the settings, the job
 * and what its cards can do. place.c asks where a job may go, starts.c which cap an attempt
 * gets. */
#include <stdio.h>

#include "core/ledger/ledger_priv.h"

void
ledger_set_caps(struct ledger *l, enum vram_cap mode, int32_t tolerance_permille)
{
    if (l->cap_mode != mode)
        l->generation++;
    ledger_changed(l);
    l->cap_mode = mode;
    l->cap_tolerance = tolerance_permille;
}

/* A job that has its cards alone has no neighbour to harm. */
static bool
shares(const struct demand *d)
{
    return demand_n_gpus(d) > 0 && !demand_is_whole(d) && !d->exclusive;
}

enum vram_cap
ledger_cap_mode(const struct ledger *l, const struct demand *d)
{
    if (!shares(d))
        return VRAM_CAP_OFF;
    if (l->cap_mode == VRAM_CAP_REQUIRE || d->vram_cap == VRAM_CAP_REQUIRE)
        return VRAM_CAP_REQUIRE;
    if (l->cap_mode == VRAM_CAP_OFF || d->vram_cap == VRAM_CAP_OFF)
        return VRAM_CAP_OFF;
    return VRAM_CAP_AUTO;
}

bool
ledger_can_cap(const struct ledger *l, const struct card *c)
{
    bool cannot = c->info.cap == GPU_CAP_NONE && c->info.cap_why[0];
    return l->cap_mode != VRAM_CAP_OFF && !cannot;
}

bool
ledger_lacks_size(const struct card *c, const struct demand *d)
{
    return c->info.cap != GPU_CAP_NONE && c->info.total_mib <= 0 && d->vram_mib == 0;
}

int32_t
ledger_with_tolerance(const struct ledger *l, int64_t mib)
{
    mib = (mib * (1000 + l->cap_tolerance) + 999) / 1000;
    return mib > VRAM_MAX_MIB ? VRAM_MAX_MIB : (int32_t)mib;
}

int32_t
ledger_cap_mib(const struct ledger *l, const struct demand *d, const uint8_t *gpus, int n)
{
    int64_t most = 0;
    if (ledger_cap_mode(l, d) == VRAM_CAP_OFF)
        return 0;
    for (int i = 0; i < n; i++) {
        const struct card *c = ledger_card(l, gpus[i]);
        if (!ledger_can_cap(l, c) || c->info.cap == GPU_CAP_NONE || ledger_lacks_size(c, d) ||
            c->cap_refused[0])
            return 0;
        int64_t mib = demand_vram_mib(d, c->info.total_mib);
        most = mib > most ? mib : most;
    }
    return ledger_with_tolerance(l, most);
}

void
ledger_set_cap_refused(struct ledger *l, int card, const char *why, int64_t now_us)
{
    struct card *c = card_at(l, card);
    c->cap_refused_us = now_us;
    snprintf(c->cap_refused, sizeof c->cap_refused, "%s", why[0] ? why : "no reason is known");
    l->generation++;
}
