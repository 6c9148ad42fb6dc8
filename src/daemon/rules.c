/* From settings to the planner. Called by main.c before anything is planned. */
#include "daemon/rules.h"

#include <stdlib.h>

#include "core/fair.h"
#include "core/plan.h"
#include "daemon/daemon.h"
#include "daemon/depend.h"

static struct limit
limit_each(const struct config *c)
{
    return (struct limit){.running = (int32_t)c->user_max_running,
                          .gpus = (int32_t)c->user_max_gpus,
                          .vram_mib = c->user_max_vram_mib,
                          .pending = c->user_max_pending};
}

static struct limit
limit_all(const struct config *c)
{
    return (struct limit){.running = (int32_t)c->max_running,
                          .gpus = (int32_t)c->max_gpus,
                          .vram_mib = c->max_vram_mib,
                          .pending = c->pending_max};
}

void
rules_make(struct daemon *d)
{
    static const enum plan_order orders[] = {
        [ORDER_BY_QUEUE] = PLAN_QUEUE,
        [ORDER_BY_SHORT] = PLAN_SHORT,
        [ORDER_BY_LONGEST] = PLAN_LONGEST,
        [ORDER_BY_BALANCED] = PLAN_BALANCED,
    };
    const struct config *c = &d->config;
    d->limits.all = limit_all(c);
    d->limits.each = limit_each(c);
    struct plan_rules rules = {.order = orders[c->order],
                               .patience_ms = c->patience_s * 1000,
                               .fair_share = c->fair_share != 0,
                               .limits = &d->limits};
    d->fair = fair_new(c->fair_half_life_s * 1000);
    d->planner = planner_new(&rules, d->fair);
    d->depend = depend_new();
}

void
rules_free(struct daemon *d)
{
    planner_free(d->planner);
    fair_free(d->fair);
    depend_free(d->depend);
    free(d->limits.users);
}
