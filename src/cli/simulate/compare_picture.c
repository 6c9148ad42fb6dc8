/* `berth simulate --compare --svg`: the figures of the table that pull in opposite directions,
 * as points for sim/svg_compare.h. */
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/simulate/compare.h"
#include "sim/svg_compare.h"

static struct compared
point_of(const struct comparison *c, int file, int policy)
{
    int trial = BASES + policy;
    return (struct compared){.policy = c->sim->policies[policy].name,
                             .wait = compare_spread(c, file, trial, FIGURE_WAIT).median,
                             .multi = compare_spread(c, file, trial, FIGURE_MULTI).p90};
}

void
compare_draw(const struct comparison *c, struct buf *out)
{
    int n = c->sim->n_policies;
    size_t n_points = (size_t)c->n_files * (size_t)n;
    auto_free struct compared *points = xmalloc(n_points * sizeof *points);
    auto_free const char **names = xmalloc((size_t)c->n_files * sizeof *names);
    for (int file = 0; file < c->n_files; file++) {
        names[file] = compare_file_name(c, file);
        for (int i = 0; i < n; i++)
            points[file * n + i] = point_of(c, file, i);
    }
    auto_free char *title =
        c->sim->draws
            ? xasprintf("Policies on %s, %d workloads like each file", c->sim->gpus, c->n_draws)
            : xasprintf("Policies on %s", c->sim->gpus);
    svg_compare(points, names, (size_t)c->n_files, (size_t)n, title, out);
}
