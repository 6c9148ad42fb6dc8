/* Whether a request could ever start on this machine, idle, and if not, the nearest thing
 * that would. Called at submission, and by plan.c when the machine has changed. A card that
 * is lost, sick or paused counts as there: it may come back. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/parse.h"
#include "core/gpu.h"
#include "core/ledger.h"
#include "core/place.h"

#define SAY(why, ...)                                                                          \
    do {                                                                                       \
        if (why)                                                                               \
            buf_addf(why, __VA_ARGS__);                                                        \
    } while (0)

static bool
ids_exist(const struct demand *d, const struct ledger *l, struct buf *why)
{
    uint64_t seen = 0;
    int n = ledger_n_cards(l);
    for (int i = 0; i < d->n_ids; i++) {
        int id = d->ids[i];
        if (id >= n) {
            SAY(why, "gpu %d does not exist here; there %s 0", id, n == 1 ? "is only" : "are");
            if (n > 1)
                SAY(why, "-%d", n - 1);
            return false;
        }
        if (seen >> id & 1) {
            SAY(why, "gpu %d is named twice", id);
            return false;
        }
        if (ledger_card(l, id)->info.compute == GPU_COMPUTE_PROHIBITED) {
            SAY(why, "gpu %d lets no process in (its compute mode is prohibited)", id);
            return false;
        }
        seen |= UINT64_C(1) << id;
    }
    return true;
}

static int
compare_descending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* Totals of the cards it may use, largest first; one that is not known counts as boundless. */
static int
usable_totals(const struct demand *d, const struct ledger *l, int64_t *totals)
{
    uint64_t ids = 0;
    for (int i = 0; i < d->n_ids; i++)
        ids |= UINT64_C(1) << d->ids[i];
    uint64_t allowed = d->n_ids ? ids : d->devices ? d->devices : UINT64_MAX;
    int n = 0;
    for (int i = 0; i < ledger_n_cards(l); i++) {
        const struct card *c = ledger_card(l, i);
        if ((allowed >> i & 1) && c->info.compute != GPU_COMPUTE_PROHIBITED)
            totals[n++] = c->info.total_mib > 0 ? c->info.total_mib : INT64_MAX;
    }
    qsort(totals, (size_t)n, sizeof *totals, compare_descending);
    return n;
}

static bool
count_fits(const struct demand *d, int want, int usable, struct buf *why)
{
    if (want <= usable)
        return true;
    SAY(why, "needs %d GPU%s, but ", want, want == 1 ? "" : "s");
    if (usable == 0 && d->devices)
        SAY(why, "none of the devices it names exists here");
    else if (usable == 0)
        SAY(why, "this machine has none that can be used; gpus=0 asks for none");
    else
        SAY(why, "only %d %s usable%s; ask for at most %d", usable, usable == 1 ? "is" : "are",
            d->devices ? " among the devices it names" : "", usable);
    return false;
}

static bool
memory_fits(const struct demand *d, const struct ledger *l, int want, const int64_t *totals,
            struct buf *why)
{
    char need[24], margin[24], has[24];
    int64_t margin_mib = ledger_policy(l)->margin_mib;
    int64_t total = totals[want - 1];
    if (d->vram_mib == 0 || total >= d->vram_mib + margin_mib)
        return true;
    SAY(why, "needs %s + %s margin on ", format_mib(d->vram_mib, need),
        format_mib(margin_mib, margin));
    if (want == 1)
        SAY(why, "one GPU, but the largest has %s", format_mib(total, has));
    else
        SAY(why, "each of %d GPUs, but the %d largest have %s or less", want, want,
            format_mib(total, has));
    if (total > margin_mib)
        SAY(why, "; ask for at most %lld MiB", (long long)(total - margin_mib));
    return false;
}

static bool
host_fits(const struct demand *d, const struct ledger *l, struct buf *why)
{
    char need[24], has[24];
    if (ledger_cpus(l) > 0 && demand_cpus(d) > ledger_cpus(l)) {
        SAY(why, "needs %d cores, but this machine has %d", demand_cpus(d), ledger_cpus(l));
        return false;
    }
    if (ledger_mem_mib(l) > 0 && d->mem_mib > ledger_mem_mib(l)) {
        SAY(why, "needs %s of host memory, but this machine has %s",
            format_mib(d->mem_mib, need), format_mib(ledger_mem_mib(l), has));
        return false;
    }
    return true;
}

bool
place_feasible(const struct demand *d, const struct ledger *l, struct buf *why)
{
    int64_t totals[GPU_MAX];
    int want = d->n_ids ? d->n_ids : d->gpus;
    if (!host_fits(d, l, why))
        return false;
    if (want <= 0 || !ledger_is_known(l))
        return true;
    if (!ids_exist(d, l, why))
        return false;
    int usable = usable_totals(d, l, totals);
    return count_fits(d, want, usable, why) && memory_fits(d, l, want, totals, why);
}
