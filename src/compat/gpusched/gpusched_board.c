/* gpusched's status board, <log_dir>/status.txt, replaced each round for `watch cat`. Best
 * effort: write errors are ignored. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "compat/engine/line_records.h"
#include "compat/gpusched/gpusched.h"
#include "compat/py/pytext.h"

#define BOARD_REST 20 /* a drawing takes at most 1/20 of the time */

static int
by_no(const void *a, const void *b)
{
    int64_t x = (*(struct gs_job *const *)a)->no, y = (*(struct gs_job *const *)b)->no;

    return x < y ? -1 : x > y;
}

static int
result_by_no(const void *a, const void *b)
{
    int64_t x = ((const struct gs_result *)a)->job->no;
    int64_t y = ((const struct gs_result *)b)->job->no;

    return x < y ? -1 : x > y;
}

static void
add_running(struct buf *out, const struct gs_job *job)
{
    const struct gs_run *run = job->run;
    double elapsed = (double)(clock_boot_us() - run->started_boot_us) / 1e6;

    buf_addf(out, "▶ job %-3lld gpu[", (long long)job->no);
    for (int i = 0; i < run->n_gpus; i++)
        buf_addf(out, i ? ",%d" : "%d", run->gpus[i]);
    buf_addf(out, "] %5.0fs  ", elapsed);
    for (int i = 0; i < run->n_gpus; i++)
        buf_addf(out, i ? ", gpu%d:%lld" : "gpu%d:%lld", run->gpus[i],
                 (long long)(run->last_mib[i] > 0 ? run->last_mib[i] : 0));
    buf_addf(out, " MiB (peak %lld)%s — %s\n", (long long)gs_run_peak(run, NULL),
             run->cancelled   ? " (cancelling…)"
             : run->timed_out ? " (timing out…)"
                              : "",
             job->command);
}

static void
add_all_running(const struct gpusched *g, struct buf *out)
{
    auto_free struct gs_job **all = xcalloc(g->n_running + 1, sizeof(struct gs_job *));

    for (size_t i = 0; i < g->n_running; i++)
        all[i] = g->running[i];
    qsort(all, g->n_running, sizeof *all, by_no);
    for (size_t i = 0; i < g->n_running; i++)
        add_running(out, all[i]);
}

static void
add_pending(const struct gpusched *g, struct buf *out)
{
    for (size_t i = 0; i < g->specs.n; i++) {
        const struct gs_spec *spec = &g->specs.at[i];
        const struct gs_job *job = spec->job;
        double vram = job->next_vram ? (double)job->next_vram : spec->vram_mib;

        if (!job->waits)
            continue;
        buf_addf(out, "%s job %-3lld pending", job->attempts > 0 ? "↻" : "·",
                 (long long)job->no);
        if (vram > 0)
            buf_addf(out, " vram %.0f", vram);
        if (job->attempts > 0 && job->next_vram)
            buf_addf(out, " retry %lld, vram→%lld", (long long)job->attempts,
                     (long long)job->next_vram);
        else if (job->attempts > 0)
            buf_addf(out, " retry %lld, vram→None", (long long)job->attempts);
        buf_addf(out, " — %s\n", spec->command);
    }
}

static void
add_results(const struct gpusched *g, struct buf *out)
{
    auto_free struct gs_result *all = xcalloc(g->n_results + 1, sizeof *all);

    if (g->n_results)
        memcpy(all, g->results, g->n_results * sizeof *all);
    qsort(all, g->n_results, sizeof *all, result_by_no);
    for (size_t i = 0; i < g->n_results; i++) {
        const struct gs_result *r = &all[i];

        buf_addf(out, "%s job %-3lld %s (exit %lld, peak %lld MiB) — %s\n",
                 strcmp(r->verdict, "cancelled") == 0 ? "⊘"
                 : gs_has_failed(r)                   ? "✗"
                                                      : "✓",
                 (long long)r->job->no, r->verdict, (long long)r->code, (long long)r->peak_mib,
                 r->job->command);
    }
}

void
gs_draw_board(struct gpusched *g)
{
    auto_buf struct buf out = BUF_INIT;
    int64_t begun = clock_boot_us();
    struct err e = {0};

    buf_adds(&out, "gpusched status @ ");
    py_add_time(&out, PY_CLOCK, clock_wall_us());
    buf_addf(&out, " — %zu running, %zu pending, %zu done\n", g->n_running, g->n_pending,
             g->n_results);
    if (g->left)
        buf_adds(&out, "stopped: the jobs go on, but nobody keeps this up until gpusched "
                       "is started again\n");
    add_all_running(g, &out);
    add_pending(g, &out);
    add_results(g, &out);
    (void)records_replace(g->board_path, out.data, out.len, false, &e);
    g->board_due_us = 0;
    g->board_rest_us = clock_boot_us() + (clock_boot_us() - begun) * BOARD_REST;
}
