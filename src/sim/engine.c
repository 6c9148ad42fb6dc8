/* Joins the two tables of policies into one list. */
#include "sim/engine.h"

#include <string.h>

#include "sim/live_sim.h"

static const struct engine live_engines[] = {
    {.name = "queue",
     .help = "the daemon: in order of submission, with a reservation for the first blocked job",
     .order = PLAN_QUEUE},
    {.name = "short",
     .help = "the daemon with `order: short`: by response ratio",
     .order = PLAN_SHORT},
    {.name = "longest",
     .help = "the daemon with `order: longest`: longest first",
     .order = PLAN_LONGEST},
    {.name = "balanced",
     .help = "the daemon with `order: balanced`: by waiting time over cost to others; the wait "
             "of wide jobs is bounded",
     .order = PLAN_BALANCED},
};

#define LIVE_ENGINES (sizeof live_engines / sizeof *live_engines)

bool
engine_at(size_t i, struct engine *out)
{
    if (i < LIVE_ENGINES) {
        *out = live_engines[i];
        out->reservations = plan_reservations(out->order);
        out->horizon_ms = plan_horizon_ms(out->order);
        return true;
    }
    const struct policy *p = &policies[i - LIVE_ENGINES];
    *out = (struct engine){.name = p->name, .help = p->help, .policy = p};
    return p->name != NULL;
}

bool
engine_find(const char *name, struct engine *out)
{
    for (size_t i = 0; engine_at(i, out); i++) {
        if (strcmp(out->name, name) == 0)
            return true;
    }
    return false;
}

void
engine_run(const struct engine *e, const struct workload *w, const struct machine *m,
           struct schedule *out)
{
    if (e->policy) {
        sim_schedule(w, m, e->policy, out);
        return;
    }
    struct live_rules rules;
    live_rules_init(&rules, e->order);
    rules.plan.aging_ms = e->aging_ms;
    rules.plan.reservations = e->reservations;
    rules.plan.horizon_ms = e->horizon_ms;
    live_schedule(w, m, &rules, out);
}
