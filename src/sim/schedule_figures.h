/* Quality of a schedule, in the figures that the reference simulator reports, by the
 * reference's definitions. Times in seconds. */
#ifndef SIM_SCHEDULE_FIGURES_H
#define SIM_SCHEDULE_FIGURES_H

#include <stddef.h>
#include <stdint.h>

#include "sim/textbook/textbook_sim.h"

struct metrics {
    size_t jobs, multi_jobs; /* that ran: the figures are about these */
    size_t never_ran;        /* the other jobs of the workload */
    int64_t makespan;        /* first arrival to last end */
    double wait_mean;
    int64_t wait_p95, wait_p99, wait_max; /* the ceil(q n)-th smallest */
    double multi_mean;                    /* waits of jobs with several GPUs; 0: none */
    int64_t multi_max;
    int64_t all_gpu_max; /* of jobs that use all GPUs */
    double bsld;         /* mean of max(1, (wait + run) / max(run, 10 s)) */
    double jct_mean;     /* arrival to end */
    int64_t jct_p99;
    size_t promised, broken, overtaken; /* as in struct schedule */
    double mem_util; /* declared VRAM x time, over all VRAM until the makespan */
};

/* The workload must have at least one job. */
void metrics_compute(const struct workload *w, const struct machine *m,
                     const struct schedule *s, struct metrics *out);

/* A lower bound of the makespan of any schedule of this workload on this machine: work that
 * arrives from some time on takes at least what all cards together need for it, and no job
 * ends before its own run time. Work is weighed by dual feasible functions of VRAM (for any
 * set that fits on one card they add up to at most 1), so that two jobs of just over half a
 * card count as two cards. */
int64_t bound_makespan(const struct workload *w, const struct machine *m);

#endif
