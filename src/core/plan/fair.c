/* Recent use per user. Each account is a sum as of some moment and is decayed when it is read,
 * so its cost does not depend on its age. The daemon charges each ended attempt; the planner
 * reads the accounts and adds running jobs. */
#include "core/plan/fair.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/search.h"
#include "core/ledger/ledger.h"

#define US_PER_S 1e6

struct account {
    uint32_t uid;
    double weight;
    double gpu_seconds; /* as of at_us */
    int64_t at_us;
};

struct fair {
    int64_t half_life_ms;
    struct account *accounts; /* sorted by uid */
    size_t n, cap;
};

struct fair *
fair_new(int64_t half_life_ms)
{
    struct fair *f = xcalloc(1, sizeof *f);
    f->half_life_ms = half_life_ms;
    return f;
}

struct fair *
fair_clone(const struct fair *f)
{
    struct fair *to = fair_new(f->half_life_ms);
    to->n = to->cap = f->n;
    if (f->n) {
        to->accounts = xmalloc(f->n * sizeof *to->accounts);
        memcpy(to->accounts, f->accounts, f->n * sizeof *to->accounts);
    }
    return to;
}

void
fair_free(struct fair *f)
{
    if (!f)
        return;
    free(f->accounts);
    free(f);
}

/* Index of the user's account, or where to insert it. */
static size_t
position(const struct fair *f, uint32_t uid)
{
    return search_first(at, f->n, f->accounts[at].uid < uid);
}

static const struct account *
find(const struct fair *f, uint32_t uid)
{
    size_t at = position(f, uid);
    return at < f->n && f->accounts[at].uid == uid ? &f->accounts[at] : NULL;
}

static struct account *
open_account(struct fair *f, uint32_t uid)
{
    size_t at = position(f, uid);
    if (at < f->n && f->accounts[at].uid == uid)
        return &f->accounts[at];
    f->accounts = xgrow(f->accounts, f->n, &f->cap, sizeof *f->accounts);
    memmove(&f->accounts[at + 1], &f->accounts[at], (f->n - at) * sizeof *f->accounts);
    f->n++;
    f->accounts[at] = (struct account){.uid = uid, .weight = 1};
    return &f->accounts[at];
}

void
fair_set_weight(struct fair *f, uint32_t uid, double weight)
{
    if (!(weight > 0))
        err_abort("user %u has a share of weight %g", uid, weight);
    open_account(f, uid)->weight = weight;
}

void
fair_shift(struct fair *f, int64_t by_us)
{
    for (size_t i = 0; i < f->n; i++)
        f->accounts[i].at_us += by_us;
}

double
fair_weight(const struct fair *f, uint32_t uid)
{
    const struct account *a = find(f, uid);
    return a ? a->weight : 1;
}

static double
part_of_card(const struct demand *d, const struct card *c)
{
    if (d->exclusive || demand_is_whole(d))
        return 1;
    if (d->share_permille > 0)
        return d->share_permille / 1000.0;
    return d->vram_mib < c->info.total_mib ? d->vram_mib / (double)c->info.total_mib : 1;
}

double
fair_part(const struct ledger *l, const struct demand *d, const uint8_t *gpus, int n)
{
    double part = 0;
    if (d->engine == ENGINE_SLURM)
        return 0; /* Slurm does its own fair share */
    for (int i = 0; i < n; i++)
        part += part_of_card(d, ledger_card(l, gpus[i]));
    if (n == 0 && ledger_cpus(l) > 0)
        part = demand_cpus(d) / (double)ledger_cpus(l);
    return part;
}

/* What remains of 1 after this time. */
static double
decay(const struct fair *f, int64_t us)
{
    if (f->half_life_ms <= 0 || us <= 0)
        return 1;
    return exp2(-((double)us / 1000) / (double)f->half_life_ms);
}

double
fair_integral(const struct fair *f, double part, int64_t from_us, int64_t to_us)
{
    double seconds = (double)(to_us - from_us) / US_PER_S;
    if (seconds <= 0)
        return 0;
    if (f->half_life_ms <= 0)
        return part * seconds;
    double mean_life = (double)f->half_life_ms / 1000 / M_LN2;
    return part * mean_life * -expm1(-seconds / mean_life);
}

/* Adds use as of at_us; the account is then as of the later of the two moments. */
static void
add(const struct fair *f, struct account *a, double gpu_seconds, int64_t at_us)
{
    if (at_us > a->at_us) {
        a->gpu_seconds = a->gpu_seconds * decay(f, at_us - a->at_us) + gpu_seconds;
        a->at_us = at_us;
    } else {
        a->gpu_seconds += gpu_seconds * decay(f, a->at_us - at_us);
    }
}

void
fair_charge(struct fair *f, uint32_t uid, double part, int64_t from_us, int64_t to_us)
{
    add(f, open_account(f, uid), fair_integral(f, part, from_us, to_us), to_us);
}

double
fair_usage(const struct fair *f, uint32_t uid, int64_t now_us)
{
    const struct account *a = find(f, uid);
    return a ? a->gpu_seconds * decay(f, now_us - a->at_us) : 0;
}

void
fair_restore(struct fair *f, uint32_t uid, double gpu_seconds, int64_t at_us)
{
    struct account *a = open_account(f, uid);
    a->gpu_seconds = gpu_seconds;
    a->at_us = at_us;
}
