/* Virtual time: runs a workload through the pass under one policy. Needs nothing of the
 * daemon: this folder links base, spec and core. */
#ifndef SIM_TEXTBOOK_TEXTBOOK_SIM_H
#define SIM_TEXTBOOK_TEXTBOOK_SIM_H

#include <stddef.h>
#include <stdint.h>

#include "sim/textbook/policy.h"
#include "sim/workload/workload.h"

/* The result for the job at the same index of the workload. */
struct sim_run {
    int64_t start; /* it ends `duration` later */
    uint64_t cards;
};

struct schedule {
    struct sim_run *runs; /* owned; one per job of the workload */
    size_t n;
    uint64_t events; /* number of ends and arrivals */
    size_t most_waiting;
    /* Promised starts (core/plan/firm.c), and those not kept: overtaken by a job of higher
     * priority, or broken without one. */
    size_t promised, overtaken, broken;
};

#define auto_schedule __attribute__((cleanup(schedule_free)))

void schedule_free(struct schedule *s);

/* The workload must be sorted, and checked against the machine. At each instant: all ends, all
 * arrivals, one pass. *out need not be initialised. */
void sim_schedule(const struct workload *w, const struct machine *m,
                  const struct policy *policy, struct schedule *out);

/* The same in steps, for callers that inspect it in between. */
struct sim;
struct pass;

struct sim *sim_new(const struct workload *w, const struct machine *m,
                    const struct policy *policy);
void sim_free(struct sim *sim);
/* Handles the next instant at which something happens; false: finished. */
bool sim_step(struct sim *sim);
int64_t sim_now(const struct sim *sim);
const struct pass *sim_pass(const struct sim *sim);
const struct sim_run *sim_runs(const struct sim *sim); /* start -1: not started */

#endif
