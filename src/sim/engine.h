/* All policies by name, whichever engine runs them in virtual time: the daemon's own orders
 * (live_sim.c), then those of sim/textbook/policy.h (textbook_sim.c). */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "core/plan/plan.h"
#include "sim/textbook/textbook_sim.h"

struct engine {
    const char *name;
    const char *help;            /* one line */
    const struct policy *policy; /* for textbook_sim.c; NULL: the daemon's planner, */
    enum plan_order order;       /* in this order, */
    int64_t aging_ms;            /* with this aging; 0: none, as in the list of engines; */
    int32_t reservations;        /* with this many promised starts at a time, */
    int64_t horizon_ms;          /* each once it is this near; 0: at any distance */
};

bool engine_at(size_t i, struct engine *out); /* false past the last */
bool engine_find(const char *name, struct engine *out);

/* Result as of sim_schedule. */
void engine_run(const struct engine *e, const struct workload *w, const struct machine *m,
                struct schedule *out);

#endif
