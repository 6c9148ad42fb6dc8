/* MPS: on which cards it is, which user one of them serves, and what a client may have.
 * place.c asks whether a user may come to a card, the daemon's job_mps.c what an attempt gets.
 *
 * A server of MPS serves one user. Two servers on one card would take turns, and in time no
 * longer share it; so a card has one user's jobs at a time, those without MPS among them. */
#include <stdio.h>

#include "core/ledger/ledger_priv.h"

void
ledger_set_mps(struct ledger *l, uint64_t cards)
{
    l->mps = cards;
    l->generation++;
}

/* Why the card cannot have it; NULL: it can. */
static const char *
why_never(const struct card *c)
{
    if (c->info.vendor != GPU_VENDOR_NVIDIA && c->info.vendor != GPU_VENDOR_NONE)
        return "MPS is for NVIDIA's GPUs";
    if (c->info.mig_gpu[0])
        return "MPS is not used on MIG instances";
    if (c->info.compute == GPU_COMPUTE_EXCLUSIVE)
        return "its compute mode lets one process in; 'nvidia-smi -c DEFAULT' lets jobs share "
               "it";
    return NULL;
}

static bool
is_wanted(const struct ledger *l, const struct card *c)
{
    return l->mps >> c->info.index & 1;
}

const char *
ledger_mps_why(const struct ledger *l, const struct card *c)
{
    if (!is_wanted(l, c))
        return "";
    const char *never = why_never(c);
    return never ? never : c->mps_refused[0] ? c->mps_refused : NULL;
}

bool
ledger_mps_lets_in(const struct ledger *l, const struct card *c, const struct demand *d)
{
    if (!is_wanted(l, c) || why_never(c))
        return true;
    for (int i = 0; i < c->n_holds; i++)
        if (c->holds[i].user != d->user)
            return false;
    return true;
}

int
ledger_mps_card(const struct ledger *l, const struct demand *d, const uint8_t *gpus, int n)
{
    if (n != 1 || d->engine == ENGINE_SLURM || demand_is_whole(d) || d->exclusive)
        return -1;
    return ledger_mps_why(l, ledger_card(l, gpus[0])) ? -1 : gpus[0];
}

int32_t
ledger_mps_mib(const struct ledger *l, const struct demand *d, int card)
{
    if (ledger_cap_mode(l, d) == VRAM_CAP_OFF)
        return 0;
    return ledger_with_tolerance(l, demand_vram_mib(d, ledger_card(l, card)->info.total_mib));
}

void
ledger_set_mps_refused(struct ledger *l, int card, const char *why, int64_t now_us)
{
    struct card *c = card_at(l, card);
    c->mps_refused_us = now_us;
    snprintf(c->mps_refused, sizeof c->mps_refused, "%s", why[0] ? why : "no reason is known");
    l->generation++;
}
