/* `berth simulate --compare`: policies on many workloads. compare.c runs them on all cores;
 * compare_report.c prints the results. */
#ifndef CLI_SIMULATE_COMPARE_H
#define CLI_SIMULATE_COMPARE_H

#include <stddef.h>

#include "cli/simulate/simulate_verb.h"

struct buf;
struct cli;

/* Baselines, the first trials of each draw: mean waits and slowdowns are compared with greedy,
 * the longest multi-GPU wait with EASY by estimates. */
enum { BASE_GREEDY, BASE_EASY, BASES };

struct comparison {
    const struct simulation *sim;
    char **files; /* borrowed; in the order of workloads */
    struct workload *workloads;
    int n_files;
    int n_draws;            /* per file, at least 1 */
    int n_trials;           /* per draw: baselines and policies */
    struct metrics *trials; /* owned; indexed by file, draw, trial */
};

static inline const struct metrics *
comparison_at(const struct comparison *c, int file, int draw, int trial)
{
    return &c->trials[((size_t)file * (size_t)c->n_draws + (size_t)draw) * (size_t)c->n_trials +
                      (size_t)trial];
}

/* Appends the trade-off between mean waits and those of wide jobs, as SVG. */
void compare_draw(const struct comparison *c, struct buf *out);

/* Runs all trials and prints the results; returns the exit status. The simulation's machine
 * must be set. */
int simulate_compare(const struct cli *cli, struct simulation *sim, char **files, int n);

/* Print to standard output; return the exit status. */
int compare_print_table(const struct comparison *c);
int compare_print_json(const struct comparison *c);

#endif
