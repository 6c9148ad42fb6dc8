/* The output of `berth simulate`: one row, or one JSON object, per policy. */
#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "cli/common/cli.h"
#include "cli/simulate/simulate_verb.h"
#include "cli/table/table.h"

static double
ratio_to_bound(const struct simulation *sim, const struct metrics *m)
{
    return sim->bound ? (double)m->makespan / (double)sim->bound : 1;
}

static void
cell_time(struct table *t, double seconds)
{
    char text[24] = "0s";
    if (seconds > 0)
        format_duration((int64_t)(seconds * 1000 + 0.5), text);
    table_cell(t, STYLE_NONE, text);
}

static void
cell_number(struct table *t, int decimals, double v, const char *unit)
{
    char text[32];
    snprintf(text, sizeof text, "%.*f%s", decimals, v, unit);
    table_cell(t, STYLE_NONE, text);
}

static size_t
count_multi(const struct workload *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++)
        n += w->shapes[w->jobs[i].shape].n > 1;
    return n;
}

void
simulate_add_never_ran(struct buf *out, const char *who, size_t never_ran, size_t jobs)
{
    if (never_ran)
        buf_addf(out, "%s: %zu of %zu job%s never ran and %s not in the figures\n", who,
                 never_ran, jobs, jobs == 1 ? "" : "s", never_ran == 1 ? "is" : "are");
}

static const struct column columns[] = {
    {"POLICY", false, false},   {"WAIT", true, false},     {"P95", true, false},
    {"P99", true, false},       {"MAX", true, false},      {"MULTI", true, false},
    {"MULTI MAX", true, false}, {"SLOWDOWN", true, false}, {"MAKESPAN", true, false},
    {"/BOUND", true, false},    {"VRAM", true, false},
};

int
simulate_print_table(const struct simulation *sim, const struct trial *trials)
{
    auto_table struct table *t = table_new(columns, sizeof columns / sizeof *columns);
    auto_buf struct buf out = BUF_INIT;
    struct term term = term_of_stdout();
    char bound[24] = "0s";
    for (int i = 0; i < sim->n_policies; i++) {
        const struct metrics *m = &trials[i].metrics;
        table_cell(t, STYLE_BOLD, trials[i].policy->name);
        cell_time(t, m->wait_mean);
        cell_time(t, (double)m->wait_p95);
        cell_time(t, (double)m->wait_p99);
        cell_time(t, (double)m->wait_max);
        cell_time(t, m->multi_mean);
        cell_time(t, (double)m->multi_max);
        cell_number(t, 2, m->bsld, "");
        cell_time(t, (double)m->makespan);
        cell_number(t, 3, ratio_to_bound(sim, m), "");
        cell_number(t, 1, m->mem_util * 100, "%");
    }
    if (sim->bound)
        format_duration(sim->bound * 1000, bound);
    buf_addf(&out, "%zu job%s (%zu on several GPUs) on %s; no makespan is below %s\n",
             sim->workload.n, sim->workload.n == 1 ? "" : "s", count_multi(&sim->workload),
             sim->gpus, bound);
    table_print(t, &term, &out);
    for (int i = 0; i < sim->n_policies; i++)
        simulate_add_never_ran(&out, trials[i].policy->name, trials[i].metrics.never_ran,
                               sim->workload.n);
    return cli_put(&out);
}

static void
json_number(struct jsonw *w, const char *key, double v)
{
    jsonw_knum(w, key, v);
}

static void
json_trial(const struct simulation *sim, const struct trial *trial, struct jsonw *w)
{
    const struct metrics *m = &trial->metrics;
    jsonw_object(w);
    jsonw_kstr(w, "policy", trial->policy->name);
    jsonw_kint(w, "never_ran", (int64_t)m->never_ran);
    json_number(w, "wait_mean", m->wait_mean);
    jsonw_kint(w, "wait_p95", m->wait_p95);
    jsonw_kint(w, "wait_p99", m->wait_p99);
    jsonw_kint(w, "wait_max", m->wait_max);
    json_number(w, "multi_mean", m->multi_mean);
    jsonw_kint(w, "multi_max", m->multi_max);
    jsonw_kint(w, "all_gpu_max", m->all_gpu_max);
    json_number(w, "bsld", m->bsld);
    json_number(w, "jct_mean", m->jct_mean);
    jsonw_kint(w, "jct_p99", m->jct_p99);
    jsonw_kint(w, "makespan", m->makespan);
    json_number(w, "makespan_ratio", ratio_to_bound(sim, m));
    json_number(w, "mem_util", m->mem_util);
    jsonw_kint(w, "events", (int64_t)trial->events);
    json_number(w, "elapsed_s", (double)trial->elapsed_us / 1e6);
    jsonw_end_object(w);
}

int
simulate_print_json(const struct simulation *sim, const struct trial *trials)
{
    auto_buf struct buf out = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &out);
    jsonw_object(&w);
    jsonw_kint(&w, "version", 1);
    jsonw_kstr(&w, "file", sim->file);
    jsonw_kint(&w, "jobs", (int64_t)sim->workload.n);
    jsonw_kint(&w, "multi_jobs", (int64_t)count_multi(&sim->workload));
    jsonw_kbool(&w, "batch", sim->batch);
    json_number(&w, "scale", sim->scale);
    jsonw_kint(&w, "margin_mib", sim->machine.margin_mib);
    jsonw_karray(&w, "gpus_mib");
    for (int i = 0; i < sim->machine.n; i++)
        jsonw_int(&w, sim->machine.total_mib[i]);
    jsonw_end_array(&w);
    jsonw_kint(&w, "lower_bound", sim->bound);
    jsonw_karray(&w, "policies");
    for (int i = 0; i < sim->n_policies; i++)
        json_trial(sim, &trials[i], &w);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    buf_addc(&out, '\n');
    return cli_put(&out);
}
