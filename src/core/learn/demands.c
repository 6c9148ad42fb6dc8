/* A command's VRAM from its runs: see demands.h. */
#include "core/learn/demands.h"

#include <stdlib.h>
#include <string.h>

#include "base/request.h"
#include "core/queue/endings.h"

void
learn_completed(struct learned *l, int32_t peak_mib)
{
    if (l->n == LEARN_RUNS)
        memmove(l->peaks_mib, l->peaks_mib + 1, (size_t)--l->n * sizeof *l->peaks_mib);
    l->peaks_mib[l->n++] = peak_mib;
    if (peak_mib > l->oom_mib || ++l->oom_runs >= LEARN_OOM_RUNS)
        l->oom_mib = l->oom_runs = 0;
}

void
learn_oom(struct learned *l, int32_t mib)
{
    if (mib <= 0)
        return;
    l->oom_mib = mib > l->oom_mib ? mib : l->oom_mib;
    l->oom_runs = 0;
}

static int
compare(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

int32_t
learn_demand_mib(const struct learned *l)
{
    int32_t sorted[LEARN_RUNS], enough = account_oom_next_mib(l->oom_mib, 0);
    int64_t demand = 0;
    if (l->n > 0) {
        memcpy(sorted, l->peaks_mib, (size_t)l->n * sizeof *sorted);
        qsort(sorted, (size_t)l->n, sizeof *sorted, compare);
        demand = request_vram_for_peak_mib(sorted[(l->n * 95 + 99) / 100 - 1]);
        demand = demand < 1 ? 1 : demand > VRAM_MAX_MIB ? VRAM_MAX_MIB : demand;
    }
    return enough > demand ? enough : (int32_t)demand;
}
