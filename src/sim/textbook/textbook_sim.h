/* Virtual time: runs a workload through core's pass under one policy. Nothing of the daemon
 * is needed: this folder links base, spec and core. */
#ifndef SIM_TEXTBOOK_TEXTBOOK_SIM_H
#define SIM_TEXTBOOK_TEXTBOOK_SIM_H

#include <stddef.h>
#include <stdint.h>

#include "sim/textbook/policy.h"
#include "sim/workload/workload.h"

/* What became of the job in the same place of the workload. */
struct sim_run {
    int64_t start; /* it ends duration later */
    uint64_t cards;
};

struct schedule {
    struct sim_run *runs; /* owned; one for each job of the workload */
    size_t n;
    uint64_t events; /* ends and arrivals */
    size_t most_waiting;
    /* Starts that were promised (core/plan/firm.c); those that were not kept, and for whose
     * sake: of a job of higher priority, or of none. */
    size_t promised, overtaken, broken;
};

#define auto_schedule __attribute__((cleanup(schedule_free)))

void schedule_free(struct schedule *s);

/* The workload is sorted and checked against the machine. At each instant: every end, every
 * arrival, one pass. *out need not be initialised. */
void sim_schedule(const struct workload *w, const struct machine *m,
                  const struct policy *policy, struct schedule *out);

/* One step of the same, for callers that look in between. */
struct sim;
struct pass;

struct sim *sim_new(const struct workload *w, const struct machine *m,
                    const struct policy *policy);
void sim_free(struct sim *sim);
/* To the next instant at which something happens, and through it; false: nothing is left. */
bool sim_step(struct sim *sim);
int64_t sim_now(const struct sim *sim);
const struct pass *sim_pass(const struct sim *sim);
const struct sim_run *sim_runs(const struct sim *sim); /* start -1: has not */

#endif
