/* From settings to the planner. Called by berthd.c before anything is planned, and by reload.c
 * when settings have changed. */
#include "daemon/rules.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "core/ledger/ledger.h"
#include "core/plan/fair.h"
#include "core/plan/plan.h"
#include "core/queue/queue.h"
#include "daemon/common/daemon.h"
#include "daemon/common/turn_due.h"
#include "daemon/common/user_names.h"
#include "daemon/gpu/model_file.h"
#include "daemon/view/expected_starts.h"
#include "spec/value.h"

/* Beside vram_wait_ms: from the KILL until the end is known, on a machine that is busy. */
#define SETTLE_MS 5000

/* So that no user takes the whole queue without having been given it. */
static int64_t
pending_each(const struct daemon *d)
{
    const struct config *c = &d->inst.config;
    if (c->user_max_pending >= 0)
        return c->user_max_pending;
    return d->inst.places.system ? (c->pending_max + 9) / 10 : 0;
}

static struct limit
limit_each(const struct daemon *d)
{
    const struct config *c = &d->inst.config;
    return (struct limit){.running = (int32_t)c->user_max_running,
                          .gpus = (int32_t)c->user_max_gpus,
                          .vram_mib = c->user_max_vram_mib,
                          .pending = pending_each(d)};
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

/* The settings' users by uid. A user that the machine does not know is skipped: the name may
 * come from a directory service that is away, and that must not prevent a start. */
static void
make_users(struct daemon *d)
{
    const struct config *c = &d->inst.config;
    struct limits *l = &d->limits;
    l->users = xcalloc(c->n_users + 1, sizeof *l->users);
    for (size_t i = 0; i < c->n_users; i++) {
        const struct config_user *u = &c->users[i];
        uid_t uid;
        int known = users_uid(u->name, &uid);
        if (known < 0)
            continue; /* rules_take is called when it is answered */
        if (!known) {
            log_warn("setting=users user=%s unknown user; skipped", u->name);
            continue;
        }
        l->users[l->n_users++] = (struct user_limit){
            .uid = uid,
            .limit = {.running = (int32_t)instead(u->max_running, c->user_max_running),
                      .gpus = (int32_t)instead(u->max_gpus, c->user_max_gpus),
                      .vram_mib = instead(u->max_vram_mib, c->user_max_vram_mib),
                      .pending = instead(u->max_pending, pending_each(d))}};
        fair_set_weight(d->fair, uid, u->weight);
    }
    qsort(l->users, l->n_users, sizeof *l->users, compare_uids);
}

/* A user who is no longer named counts as the others do. */
static void
free_users(struct daemon *d)
{
    for (size_t i = 0; i < d->limits.n_users; i++)
        fair_set_weight(d->fair, d->limits.users[i].uid, 1);
    free(d->limits.users);
    d->limits.users = NULL;
    d->limits.n_users = 0;
}

/* d->limits, and the rules that point to it. */
static struct plan_rules
make_rules(struct daemon *d)
{
    static const enum plan_order orders[] = {
        [ORDER_BY_QUEUE] = PLAN_QUEUE,
        [ORDER_BY_SHORT] = PLAN_SHORT,
        [ORDER_BY_LONGEST] = PLAN_LONGEST,
        [ORDER_BY_BALANCED] = PLAN_BALANCED,
    };
    const struct config *c = &d->inst.config;
    d->limits.all = limit_all(c);
    d->limits.each = limit_each(d);
    make_users(d);
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
        .limits = &d->limits};
}

static void
set_caps(struct daemon *d)
{
    static const enum vram_cap modes[] = {[CONFIG_CAP_AUTO] = VRAM_CAP_AUTO,
                                          [CONFIG_CAP_REQUIRE] = VRAM_CAP_REQUIRE,
                                          [CONFIG_CAP_OFF] = VRAM_CAP_OFF};
    ledger_set_caps(d->inst.ledger, modes[d->inst.config.vram_cap],
                    (int32_t)(d->inst.config.tolerance * 1000 + 0.5));
}

static void
set_bind(struct daemon *d)
{
    static const enum cpu_bind modes[] = {[CONFIG_BIND_AUTO] = CPU_BIND_AUTO,
                                          [CONFIG_BIND_NODE] = CPU_BIND_NODE,
                                          [CONFIG_BIND_OFF] = CPU_BIND_OFF};
    ledger_set_bind(d->inst.ledger, modes[d->inst.config.cpu_bind]);
}

/* Not when settings are read again: which jobs are alike depends on it (queue.h). */
static void
set_mps(struct daemon *d)
{
    uint64_t cards = 0;
    (void)value_mps(d->inst.config.mps, &cards, NULL); /* it has been checked */
    ledger_set_mps(d->inst.ledger, cards);
    if (cards)
        queue_tell_users_apart(d->inst.queue);
}

void
rules_make(struct daemon *d)
{
    for (size_t i = 0; i < d->inst.config.n_users; i++)
        users_find_uid(d->inst.config.users[i].name);
    set_caps(d);
    set_bind(d);
    set_mps(d);
    d->fair = fair_new(d->inst.config.fair_half_life_s * 1000);
    struct plan_rules rules = make_rules(d);
    d->inst.planner = planner_new(&rules, d->fair);
    d->modelfile = modelfile_new();
    (void)modelfile_current(d->modelfile,
                            &d->inst.config); /* says at the start what is wrong with it */
}

void
rules_read(struct daemon *d)
{
    for (size_t i = 0; i < d->inst.config.n_users; i++)
        users_ask_uid(d->inst.config.users[i].name);
    rules_take(d);
}

void
rules_take(struct daemon *d)
{
    forecast_forget(d->views);
    free_users(d);
    set_caps(d);
    set_bind(d);
    struct plan_rules rules = make_rules(d);
    planner_set_rules(d->inst.planner, &rules);
    turn_touch(&d->inst);
}

void
rules_free(struct daemon *d)
{
    planner_free(d->inst.planner);
    fair_free(d->fair);
    modelfile_free(d->modelfile);
    free(d->limits.users);
}
