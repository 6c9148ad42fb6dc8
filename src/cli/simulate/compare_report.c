/* The output of `berth simulate --compare`: for each file and policy, the median and the 90th
 * percentile over the draws, each compared with other policies on the same draw. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "cli/common/cli.h"
#include "cli/simulate/compare.h"
#include "cli/table/table.h"
#include "sim/svg_compare.h"

/* One figure over all draws of a file. */
struct spread {
    double median, p90; /* the ceil(q n)-th smallest */
    double late;        /* fraction of the draws above COMPARE_LATE */
};

#define COMPARE_LATE 1.15 /* count longest multi-GPU waits above this multiple of EASY's */

enum figure { FIGURE_WAIT, FIGURE_SLOWDOWN, FIGURE_MULTI, FIGURE_MULTI_GREEDY, FIGURES };

/* 0/0 counts as equal; x/0 is infinite. */
static double
ratio(double a, double b)
{
    if (b > 0)
        return a / b;
    return a > 0 ? INFINITY : 1;
}

static double
figure_of(const struct comparison *c, int file, int draw, int trial, enum figure f)
{
    const struct metrics *m = comparison_at(c, file, draw, trial);
    const struct metrics *greedy = comparison_at(c, file, draw, BASE_GREEDY);
    const struct metrics *easy = comparison_at(c, file, draw, BASE_EASY);
    switch (f) {
    case FIGURE_WAIT:
        return ratio(m->wait_mean, greedy->wait_mean);
    case FIGURE_SLOWDOWN:
        return ratio(m->bsld, greedy->bsld);
    case FIGURE_MULTI:
        return ratio((double)m->multi_max, (double)easy->multi_max);
    case FIGURE_MULTI_GREEDY:
        return ratio((double)m->multi_max, (double)greedy->multi_max);
    case FIGURES:
        break;
    }
    err_abort("no figure %d", (int)f);
}

static int
compare_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return *x == *y ? 0 : *x < *y ? -1 : 1;
}

static struct spread
spread_of(const struct comparison *c, int file, int trial, enum figure f)
{
    size_t n = (size_t)c->n_draws, late = 0;
    auto_free double *v = xmalloc(n * sizeof *v);
    for (size_t i = 0; i < n; i++) {
        v[i] = figure_of(c, file, (int)i, trial, f);
        late += v[i] > COMPARE_LATE;
    }
    qsort(v, n, sizeof *v, compare_doubles);
    return (struct spread){.median = v[(n + 1) / 2 - 1],
                           .p90 = v[(n * 9 + 9) / 10 - 1],
                           .late = (double)late / (double)n};
}

static const char *
policy_name(const struct comparison *c, int trial)
{
    return c->sim->policies[trial - BASES].name;
}

static const char *
file_name(const struct comparison *c, int file)
{
    const char *slash = strrchr(c->files[file], '/');
    return slash ? slash + 1 : c->files[file];
}

static const struct column columns[] = {
    {"FILE", false, false},     {"POLICY", false, false},  {"WAIT", true, false},
    {"P90", true, false},       {"SLOWDOWN", true, false}, {"P90", true, false},
    {"MULTI MAX", true, false}, {"P90", true, false},      {">1.15", true, false},
    {"TO GREEDY", true, false},
};

/* "-54%": that much less. */
static void
cell_change(struct table *t, double v)
{
    char text[32];
    snprintf(text, sizeof text, "%+.0f%%", (v - 1) * 100);
    table_cell(t, STYLE_NONE, text);
}

static void
cell_ratio(struct table *t, double v)
{
    char text[32];
    snprintf(text, sizeof text, "%.2f", v);
    table_cell(t, STYLE_NONE, text);
}

static void
put_row(const struct comparison *c, int file, int trial, struct table *t)
{
    struct spread wait = spread_of(c, file, trial, FIGURE_WAIT);
    struct spread slowdown = spread_of(c, file, trial, FIGURE_SLOWDOWN);
    struct spread multi = spread_of(c, file, trial, FIGURE_MULTI);
    char late[32];
    table_cell(t, STYLE_NONE, file_name(c, file));
    table_cell(t, STYLE_BOLD, policy_name(c, trial));
    cell_change(t, wait.median);
    cell_change(t, wait.p90);
    cell_change(t, slowdown.median);
    cell_change(t, slowdown.p90);
    cell_ratio(t, multi.median);
    cell_ratio(t, multi.p90);
    snprintf(late, sizeof late, "%.0f%%", multi.late * 100);
    table_cell(t, STYLE_NONE, late);
    cell_ratio(t, spread_of(c, file, trial, FIGURE_MULTI_GREEDY).median);
}

/* Over all draws. */
static size_t
count_never_ran(const struct comparison *c, int file, int trial)
{
    size_t n = 0;
    for (int draw = 0; draw < c->n_draws; draw++)
        n += comparison_at(c, file, draw, trial)->never_ran;
    return n;
}

struct promises {
    size_t made, late, overtaken;
};

static struct promises
count_promises(const struct comparison *c, int file, int trial)
{
    struct promises sum = {0};
    for (int draw = 0; draw < c->n_draws; draw++) {
        const struct metrics *m = comparison_at(c, file, draw, trial);
        sum.made += m->promised;
        sum.late += m->broken;
        sum.overtaken += m->overtaken;
    }
    return sum;
}

/* "Promised starts: 1259, 0 of them late." */
static void
add_promises(const struct comparison *c, struct buf *out)
{
    struct promises sum = {0};
    for (int file = 0; file < c->n_files; file++) {
        for (int trial = BASES; trial < c->n_trials; trial++) {
            struct promises of = count_promises(c, file, trial);
            sum.made += of.made;
            sum.late += of.late;
            sum.overtaken += of.overtaken;
        }
    }
    if (!sum.made)
        return;
    buf_addf(out, "Promised starts: %zu, %zu of them late", sum.made, sum.late);
    if (sum.overtaken)
        buf_addf(out, ", %zu given up for a job of higher priority", sum.overtaken);
    buf_adds(out, ".\n");
}

/* Adds the jobs that never ran, of all draws. Each draw has as many jobs as its file. */
static void
add_never_ran(const struct comparison *c, int file, int trial, struct buf *out)
{
    auto_free char *who = xasprintf("%s, %s", file_name(c, file), policy_name(c, trial));
    simulate_add_never_ran(out, who, count_never_ran(c, file, trial),
                           c->workloads[file].n * (size_t)c->n_draws);
}

int
compare_print_table(const struct comparison *c)
{
    auto_table struct table *t = table_new(columns, sizeof columns / sizeof *columns);
    auto_buf struct buf out = BUF_INIT;
    struct term term = term_of_stdout();
    if (c->sim->draws)
        buf_addf(&out, "%d workloads like each file, seeds %lld to %lld, on %s; ", c->n_draws,
                 (long long)c->sim->seed, (long long)(c->sim->seed + c->n_draws - 1),
                 c->sim->gpus);
    else
        buf_addf(&out, "Each file as it is, on %s; ", c->sim->gpus);
    buf_addf(&out,
             "medians and 90th percentiles.\n"
             "Mean wait and slowdown against greedy's; longest multi-GPU wait to easy-e's,"
             " to greedy's.\n");
    for (int file = 0; file < c->n_files; file++) {
        for (int trial = BASES; trial < c->n_trials; trial++)
            put_row(c, file, trial, t);
    }
    table_print(t, &term, &out);
    add_promises(c, &out);
    for (int file = 0; file < c->n_files; file++) {
        for (int trial = BASES; trial < c->n_trials; trial++)
            add_never_ran(c, file, trial, &out);
    }
    return cli_put(&out);
}

static void
put_spread(const struct comparison *c, int file, int trial, enum figure f, struct jsonw *w)
{
    static const char *const keys[FIGURES] = {"wait_mean_to_greedy", "bsld_to_greedy",
                                              "multi_max_to_easy", "multi_max_to_greedy"};
    struct spread s = spread_of(c, file, trial, f);
    jsonw_kobject(w, keys[f]);
    jsonw_knum(w, "median", s.median);
    jsonw_knum(w, "p90", s.p90);
    jsonw_knum(w, "above_1_15", s.late);
    jsonw_karray(w, "draws");
    for (int draw = 0; draw < c->n_draws; draw++)
        jsonw_num(w, figure_of(c, file, draw, trial, f));
    jsonw_end_array(w);
    jsonw_end_object(w);
}

static void
put_promises(const struct comparison *c, int file, int trial, struct jsonw *w)
{
    struct promises sum = count_promises(c, file, trial);
    jsonw_kint(w, "promised", (int64_t)sum.made);
    jsonw_kint(w, "promised_late", (int64_t)sum.late);
    jsonw_kint(w, "promised_overtaken", (int64_t)sum.overtaken);
}

static void
put_file(const struct comparison *c, int file, struct jsonw *w)
{
    jsonw_object(w);
    jsonw_kstr(w, "file", c->files[file]);
    jsonw_kint(w, "jobs", (int64_t)c->workloads[file].n);
    jsonw_karray(w, "policies");
    for (int trial = BASES; trial < c->n_trials; trial++) {
        jsonw_object(w);
        jsonw_kstr(w, "policy", policy_name(c, trial));
        jsonw_kint(w, "never_ran", (int64_t)count_never_ran(c, file, trial));
        put_promises(c, file, trial, w);
        for (int f = 0; f < FIGURES; f++)
            put_spread(c, file, trial, (enum figure)f, w);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    jsonw_end_object(w);
}

int
compare_print_json(const struct comparison *c)
{
    auto_buf struct buf out = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &out);
    jsonw_object(&w);
    jsonw_kint(&w, "version", 1);
    jsonw_kint(&w, "draws", c->sim->draws);
    jsonw_kint(&w, "seed", c->sim->seed);
    jsonw_karray(&w, "files");
    for (int file = 0; file < c->n_files; file++)
        put_file(c, file, &w);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    buf_addc(&out, '\n');
    return cli_put(&out);
}

/* --- conflicting figures, as points of a plot --- */

static struct compared
point_of(const struct comparison *c, int file, int policy)
{
    int trial = BASES + policy;
    return (struct compared){.policy = c->sim->policies[policy].name,
                             .wait = spread_of(c, file, trial, FIGURE_WAIT).median,
                             .multi = spread_of(c, file, trial, FIGURE_MULTI).p90};
}

void
compare_draw(const struct comparison *c, struct buf *out)
{
    int n = c->sim->n_policies;
    size_t n_points = (size_t)c->n_files * (size_t)n;
    auto_free struct compared *points = xmalloc(n_points * sizeof *points);
    auto_free const char **names = xmalloc((size_t)c->n_files * sizeof *names);
    for (int file = 0; file < c->n_files; file++) {
        names[file] = file_name(c, file);
        for (int i = 0; i < n; i++)
            points[file * n + i] = point_of(c, file, i);
    }
    auto_free char *title =
        c->sim->draws
            ? xasprintf("Policies on %s, %d workloads like each file", c->sim->gpus, c->n_draws)
            : xasprintf("Policies on %s", c->sim->gpus);
    svg_compare(points, names, (size_t)c->n_files, (size_t)n, title, out);
}
