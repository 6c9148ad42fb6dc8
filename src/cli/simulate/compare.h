/* `berth simulate --compare`: policies over many workloads. compare.c runs them, on all cores;
 * compare_report.c says what came out. */
#ifndef CLI_SIMULATE_COMPARE_H
#define CLI_SIMULATE_COMPARE_H

#include <stddef.h>

#include "cli/simulate/simulate_verb.h"

struct buf;
struct cli;

/* What everything is compared with, and stands in front of the trials of each draw: mean waits
 * and slowdowns with greedy's, the longest multi-GPU wait with that of EASY by estimates. */
enum { BASE_GREEDY, BASE_EASY, BASES };

struct comparison {
    const struct simulation *sim;
    char **files; /* borrowed; the workload of each in the same place */
    struct workload *workloads;
    int n_files;
    int n_draws;            /* of each file, at least 1 */
    int n_trials;           /* of each draw: the bases and the policies */
    struct metrics *trials; /* owned; by file, draw, trial */
};

static inline const struct metrics *
comparison_at(const struct comparison *c, int file, int draw, int trial)
{
    return &c->trials[((size_t)file * (size_t)c->n_draws + (size_t)draw) * (size_t)c->n_trials +
                      (size_t)trial];
}

/* The trade between mean waits and those of wide jobs, appended as SVG. */
void compare_draw(const struct comparison *c, struct buf *out);

/* Runs it all and prints it; the exit status. The simulation's machine is set. */
int simulate_compare(const struct cli *cli, struct simulation *sim, char **files, int n);

/* To standard output; the exit status. */
int compare_print_table(const struct comparison *c);
int compare_print_json(const struct comparison *c);

#endif
