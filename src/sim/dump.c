/* The schedule as text that can be compared with other simulators'. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "sim/schedule_output.h"

struct place {
    int64_t id;
    uint32_t at; /* index in the workload */
};

static int
compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return x->id == y->id ? 0 : x->id < y->id ? -1 : 1;
}

void
dump_schedule(const struct workload *w, const struct schedule *s, struct buf *out)
{
    auto_free struct place *order = xmalloc((w->n + 1) * sizeof *order);
    for (size_t i = 0; i < w->n; i++)
        order[i] = (struct place){w->jobs[i].id, (uint32_t)i};
    qsort(order, w->n, sizeof *order, compare_places);
    for (size_t i = 0; i < w->n; i++) {
        const struct sim_job *job = &w->jobs[order[i].at];
        const struct sim_run *run = &s->runs[order[i].at];
        char divider = ',';
        if (run->start < 0)
            continue;
        buf_addf(out, "%" PRId64 ",%" PRId64 ",%" PRId64, job->id, run->start,
                 run->start + job->duration);
        for (uint64_t cards = run->cards; cards; cards &= cards - 1) {
            buf_addf(out, "%c%d", divider, __builtin_ctzll(cards));
            divider = ';';
        }
        buf_addc(out, '\n');
    }
}
