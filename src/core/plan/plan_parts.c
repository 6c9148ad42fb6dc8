/* Small functions that several files of the planner share: see plan_priv.h. */
#include <string.h>

#include "base/err.h"
#include "core/plan/plan_priv.h"

int32_t
plan_reservations(enum plan_order order)
{
    return order != PLAN_SHORT;
}

int64_t
plan_horizon_ms(enum plan_order order)
{
    return order == PLAN_BALANCED ? -1 : PROMISE_HORIZON_MS;
}

struct decision *
plan_add(struct plan *p, enum decision_type type, uint32_t job)
{
    p->decisions = xgrow(p->decisions, p->n, &p->cap, sizeof *p->decisions);
    struct decision *d = &p->decisions[p->n++];
    *d = (struct decision){.type = type, .job = job, .task = -1};
    return d;
}

struct demand
plan_one_card(const struct demand *d)
{
    struct demand one = *d;
    one.gpus = 1;
    one.devices = 0;
    one.n_ids = 0;
    memset(one.ids, 0, sizeof one.ids);
    one.cpus = one.mem_mib = 0;
    return one;
}

int64_t
patience_ends_us(const struct planning *pl, int64_t since_us)
{
    int64_t patience_ms = pl->planner->rules.patience_ms;
    if (patience_ms > (NEVER - since_us) / 1000)
        return NEVER;
    return since_us + patience_ms * 1000;
}

void
wake_at(struct planning *pl, int64_t at_us)
{
    if (at_us > pl->now_us && at_us < pl->p->wake_us)
        pl->p->wake_us = at_us;
}
