/* Converts settings into the planner's rules. Called by berthd.c before the first plan and when
 * users named in the settings have been found, and by reload.c when settings have changed. */
#include "daemon/rules.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "core/ledger/ledger.h"
#include "core/plan/fair.h"
#include "core/plan/plan.h"
#include "core/queue/queue.h"
#include "daemon/common/instance.h"
#include "daemon/common/turn_due.h"
#include "daemon/common/user_names.h"
#include "daemon/gpu/model_file.h"
#include "daemon/view/expected_starts.h"
#include "spec/value.h"

/* Added to vram_wait_ms: time from KILL until the end is known on a busy machine. */
#define SETTLE_MS 5000

/* The default keeps one user from filling the whole queue. */
static int64_t
pending_each(const struct rules *r)
{
    const struct config *c = &r->inst->config;
    if (c->user_max_pending >= 0)
        return c->user_max_pending;
    return r->inst->places.system ? (c->pending_max + 9) / 10 : 0;
}

static struct limit
limit_each(const struct rules *r)
{
    const struct config *c = &r->inst->config;
    return (struct limit){.running = (int32_t)c->user_max_running,
                          .gpus = (int32_t)c->user_max_gpus,
                          .vram_mib = c->user_max_vram_mib,
                          .pending = pending_each(r)};
}

static struct limit
limit_all(const struct config *c)
{
    return (struct limit){.running = (int32_t)c->max_running,
                          .gpus = (int32_t)c->max_gpus,
                          .vram_mib = c->max_vram_mib,
                          .pending = c->pending_max};
}

static int64_t
instead(int64_t own, int64_t each)
{
    return own >= 0 ? own : each;
}

static int
compare_uids(const void *a, const void *b)
{
    const struct user_limit *x = a, *y = b;
    return (x->uid > y->uid) - (x->uid < y->uid);
}

/* The users named in the settings, sorted by uid. Unknown users are skipped: the name may come
 * from a directory service that is unavailable, which must not prevent the start. They are
 * looked up again (settings_names.c). */
static void
make_users(struct rules *r)
{
    const struct config *c = &r->inst->config;
    struct limits *l = &r->limits;
    l->users = xcalloc(c->n_users + 1, sizeof *l->users);
    for (size_t i = 0; i < c->n_users; i++) {
        const struct config_user *u = &c->users[i];
        uid_t uid;
        int known = users_uid(u->name, &uid);
        if (known < 0)
            continue; /* rules_take is called once the answer arrives */
        if (!known) {
            log_warn("setting=users user=%s unknown user; skipped until it is found", u->name);
            continue;
        }
        l->users[l->n_users++] = (struct user_limit){
            .uid = uid,
            .limit = {.running = (int32_t)instead(u->max_running, c->user_max_running),
                      .gpus = (int32_t)instead(u->max_gpus, c->user_max_gpus),
                      .vram_mib = instead(u->max_vram_mib, c->user_max_vram_mib),
                      .pending = instead(u->max_pending, pending_each(r))}};
        fair_set_weight(r->fair, uid, u->weight);
    }
    qsort(l->users, l->n_users, sizeof *l->users, compare_uids);
}

/* Users no longer named get the default weight. */
static void
free_users(struct rules *r)
{
    for (size_t i = 0; i < r->limits.n_users; i++)
        fair_set_weight(r->fair, r->limits.users[i].uid, 1);
    free(r->limits.users);
    r->limits.users = NULL;
    r->limits.n_users = 0;
}

/* Makes the limits, and the rules that refer to them. */
static struct plan_rules
make_rules(struct rules *r)
{
    static const enum plan_order orders[] = {
        [ORDER_BY_QUEUE] = PLAN_QUEUE,
        [ORDER_BY_SHORT] = PLAN_SHORT,
        [ORDER_BY_LONGEST] = PLAN_LONGEST,
        [ORDER_BY_BALANCED] = PLAN_BALANCED,
    };
    const struct config *c = &r->inst->config;
    r->limits.all = limit_all(c);
    r->limits.each = limit_each(r);
    make_users(r);
    return (struct plan_rules){
        .order = orders[c->order],
        .patience_ms = c->patience_s * 1000,
        .settle_ms = c->vram_wait_ms + SETTLE_MS,
        .reservations = c->reservations < 0 ? plan_reservations(orders[c->order])
                                            : (int32_t)c->reservations,
        .horizon_ms = c->reservation_horizon_s < 0 ? plan_horizon_ms(orders[c->order])
                                                   : c->reservation_horizon_s * 1000,
        .aging_ms = c->aging_s * 1000,
        .fair_share = c->fair_share != 0,
        .depth = PLAN_DEPTH,
        .limits = &r->limits};
}

static void
set_caps(struct rules *r)
{
    static const enum vram_cap modes[] = {[CONFIG_CAP_AUTO] = VRAM_CAP_AUTO,
                                          [CONFIG_CAP_REQUIRE] = VRAM_CAP_REQUIRE,
                                          [CONFIG_CAP_OFF] = VRAM_CAP_OFF};
    ledger_set_caps(r->inst->ledger, modes[r->inst->config.vram_cap],
                    (int32_t)(r->inst->config.tolerance * 1000 + 0.5));
}

static void
set_bind(struct rules *r)
{
    static const enum cpu_bind modes[] = {[CONFIG_BIND_AUTO] = CPU_BIND_AUTO,
                                          [CONFIG_BIND_NODE] = CPU_BIND_NODE,
                                          [CONFIG_BIND_OFF] = CPU_BIND_OFF};
    ledger_set_bind(r->inst->ledger, modes[r->inst->config.cpu_bind]);
}

/* Not on reload: which jobs count as alike depends on it (queue.h). */
static void
set_mps(struct rules *r)
{
    uint64_t cards = 0;
    (void)value_mps(r->inst->config.mps, &cards, NULL); /* already validated */
    ledger_set_mps(r->inst->ledger, cards);
    if (cards)
        queue_tell_users_apart(r->inst->queue);
}

void
rules_make(struct rules *r)
{
    set_caps(r);
    set_bind(r);
    set_mps(r);
    r->fair = fair_new(r->inst->config.fair_half_life_s * 1000);
    struct plan_rules rules = make_rules(r);
    r->inst->planner = planner_new(&rules, r->fair);
    r->models = modelfile_new();
    /* Logs at start-up what is wrong with the file. */
    (void)modelfile_current(r->models, &r->inst->config);
}

void
rules_take(struct rules *r)
{
    forecast_forget(r->views);
    free_users(r);
    set_caps(r);
    set_bind(r);
    struct plan_rules rules = make_rules(r);
    planner_set_rules(r->inst->planner, &rules);
    turn_touch(r->inst);
}

void
rules_free(struct rules *r)
{
    planner_free(r->inst->planner);
    fair_free(r->fair);
    modelfile_free(r->models);
    free(r->limits.users);
}
