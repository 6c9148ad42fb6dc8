/* MPS: on which cards it is used, which user a card serves, and what a client may allocate.
 * place.c asks whether a user may use a card, the daemon's job_mps.c what an attempt gets.
 *
 * An MPS server serves one user. Two servers on one card would take turns instead of sharing
 * it, so a card has jobs of one user at a time, including jobs without MPS. Where no user can
 * have MPS, the card is shared as any other. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "core/ledger/ledger_priv.h"

#define AGAIN_US (600 * INT64_C(1000000)) /* when a refusal expires */

void
ledger_set_mps(struct ledger *l, uint64_t cards)
{
    l->mps = cards;
    l->generation++;
}

uint64_t
ledger_mps(const struct ledger *l)
{
    return l->mps;
}

void
ledger_set_mps_missing(struct ledger *l, const char *why)
{
    if (strcmp(l->mps_missing, why) == 0)
        return;
    snprintf(l->mps_missing, sizeof l->mps_missing, "%s", why);
    l->generation++;
}

/* Why no user can have MPS on that card; NULL: it is possible. */
static const char *
why_never(const struct ledger *l, const struct card *c)
{
    if (c->info.vendor != GPU_VENDOR_NVIDIA && c->info.vendor != GPU_VENDOR_NONE)
        return "MPS is for NVIDIA's GPUs";
    if (c->info.mig_gpu[0])
        return "MPS is not used on MIG instances";
    if (c->info.compute == GPU_COMPUTE_EXCLUSIVE)
        return "its compute mode lets one process in; 'nvidia-smi -c DEFAULT' lets jobs share "
               "it";
    return l->mps_missing[0] ? l->mps_missing : NULL;
}

static bool
is_wanted(const struct ledger *l, const struct card *c)
{
    return l->mps >> c->info.index & 1;
}

/* The user's refusal; for user 0, the newest of any user. */
static const struct mps_refusal *
find_refusal(const struct card *c, uint64_t user)
{
    const struct mps_refusal *found = NULL;
    for (int i = 0; c->mps_refusals && i < MPS_REFUSALS; i++) {
        const struct mps_refusal *r = &c->mps_refusals[i];
        if (r->user && (!user || r->user == user) && (!found || r->at_us > found->at_us))
            found = r;
    }
    return found;
}

const char *
ledger_mps_why(const struct ledger *l, const struct card *c, uint64_t user)
{
    if (!is_wanted(l, c))
        return "";
    const char *never = why_never(l, c);
    const struct mps_refusal *refusal = find_refusal(c, user);
    return never ? never : refusal ? refusal->why : NULL;
}

bool
ledger_mps_lets_in(const struct ledger *l, const struct card *c, const struct demand *d)
{
    if (!is_wanted(l, c) || why_never(l, c))
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
    return ledger_mps_why(l, ledger_card(l, gpus[0]), d->user) ? -1 : gpus[0];
}

int32_t
ledger_mps_mib(const struct ledger *l, const struct demand *d, int card)
{
    if (ledger_cap_mode(l, d) == VRAM_CAP_OFF)
        return 0;
    return ledger_with_tolerance(l, demand_vram_mib(d, ledger_card(l, card)->info.total_mib));
}

/* The user's own slot, else a free one, else the oldest. */
static struct mps_refusal *
place_of(struct card *c, uint64_t user)
{
    if (!c->mps_refusals)
        c->mps_refusals = xcalloc(MPS_REFUSALS, sizeof *c->mps_refusals);
    struct mps_refusal *oldest = &c->mps_refusals[0];
    for (int i = 0; i < MPS_REFUSALS; i++) {
        struct mps_refusal *r = &c->mps_refusals[i];
        if (r->user == user)
            return r;
        if (!r->user ? oldest->user != 0 : oldest->user && r->at_us < oldest->at_us)
            oldest = r;
    }
    return oldest;
}

void
ledger_set_mps_refused(struct ledger *l, int card, uint64_t user, const char *why,
                       int64_t now_us)
{
    if (!user)
        err_abort("MPS was refused to nobody");
    struct mps_refusal *r = place_of(card_at(l, card), user);
    r->user = user;
    r->at_us = now_us;
    snprintf(r->why, sizeof r->why, "%s", why[0] ? why : "no reason is known");
    l->generation++;
}

void
mps_forget_old(struct ledger *l, struct card *c, int64_t now_us)
{
    for (int i = 0; c->mps_refusals && i < MPS_REFUSALS; i++) {
        struct mps_refusal *r = &c->mps_refusals[i];
        if (!r->user || now_us - r->at_us <= AGAIN_US)
            continue;
        *r = (struct mps_refusal){0};
        l->generation++;
    }
}
