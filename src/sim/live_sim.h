/* Virtual time over the daemon's own scheduler: its queue, ledger and planner, fed with a
 * workload instead of clients, samples and supervisors. The result is what berthd would do
 * with these jobs on this machine, if each ran as long as the workload says. The policies of
 * sim/textbook/policy.h, which are the reference simulator's, run in textbook_sim.c. */
#ifndef SIM_LIVE_SIM_H
#define SIM_LIVE_SIM_H

#include "core/plan/plan.h"
#include "sim/textbook/textbook_sim.h"

struct live_rules {
    struct plan_rules plan;
    int64_t half_life_ms; /* of fair share */
};

/* The default settings with this order, but without aging. */
void live_rules_init(struct live_rules *r, enum plan_order order);

/* Result as of sim_schedule. A job that never runs has start -1: it does not fit on this
 * machine, or a dependency is not met, or never ends. */
void live_schedule(const struct workload *w, const struct machine *m,
                   const struct live_rules *r, struct schedule *out);

/* The same in steps, for callers that inspect it in between. */
struct live;

struct live *live_new(const struct workload *w, const struct machine *m,
                      const struct live_rules *r);
void live_free(struct live *live);
bool live_step(struct live *live); /* false: finished */
int64_t live_now(const struct live *live);
const struct queue *
live_queue(const struct live *live); /* job i + 1 is w->jobs[i], except split-off tasks */
const struct ledger *live_ledger(const struct live *live);
const struct planner *live_planner(const struct live *live);
const struct sim_run *live_runs(const struct live *live); /* start -1: not started */

#endif
