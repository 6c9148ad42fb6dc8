/* Virtual time over the daemon's own scheduler: its queue, its ledger, its planner, fed with
 * a workload instead of clients, samples and shepherds. What it gives is what berthd would do
 * with these jobs on this machine, if each ran as long as the workload says. The policies of
 * sim/textbook/policy.h, which are the reference's, run in textbook_sim.c. */
#ifndef SIM_LIVE_SIM_H
#define SIM_LIVE_SIM_H

#include "core/plan/plan.h"
#include "sim/textbook/textbook_sim.h"

struct live_rules {
    struct plan_rules plan;
    int64_t half_life_ms; /* of the fair share */
};

/* The default settings in this order, but without aging. */
void live_rules_init(struct live_rules *r, enum plan_order order);

/* As sim_schedule. A job that never runs has start -1: it does not fit on this machine, or what
 * it waits for ends otherwise, or never. */
void live_schedule(const struct workload *w, const struct machine *m,
                   const struct live_rules *r, struct schedule *out);

/* One step of the same, for callers that look in between. */
struct live;

struct live *live_new(const struct workload *w, const struct machine *m,
                      const struct live_rules *r);
void live_free(struct live *live);
bool live_step(struct live *live); /* false: nothing is left */
int64_t live_now(const struct live *live);
const struct queue *
live_queue(const struct live *live); /* job i + 1 is w->jobs[i], unless it is a task */
const struct ledger *live_ledger(const struct live *live);
const struct planner *live_planner(const struct live *live);
const struct sim_run *live_runs(const struct live *live); /* start -1: has not */

#endif
