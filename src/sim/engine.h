/* The policies that can be named in virtual time, whichever engine runs them: the daemon's own
 * orders (live_sim.c), then those of sim/textbook/policy.h (textbook_sim.c). */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "core/plan/plan.h"
#include "sim/textbook/textbook_sim.h"

struct engine {
    const char *name;
    const char *help;            /* one line */
    const struct policy *policy; /* textbook_sim.c's; NULL: the daemon's planner, */
    enum plan_order order;       /* in this order, */
    int64_t aging_ms;            /* with this aging; 0: none, as the engines are listed; */
    int32_t reservations;        /* and with so many promised starts at a time, */
    int64_t horizon_ms;          /* each once it is so near; 0: however far it is */
};

bool engine_at(size_t i, struct engine *out); /* false behind the last */
bool engine_find(const char *name, struct engine *out);

/* As sim_schedule. */
void engine_run(const struct engine *e, const struct workload *w, const struct machine *m,
                struct schedule *out);

#endif
