/* Makes the plan of a turn and sets the timers for the next one; starts.c carries it out. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/plan/plan.h"
#include "core/queue/queue.h"
#include "daemon/state/starts.h"
#include "daemon/state/state.h"
#include "daemon/turn/promises_kept.h"
#include "daemon/turn/turn_priv.h"
#include "store/store.h"

static bool
may_plan(const struct turn *t)
{
    if (t->trouble.code)
        return false;
    for (size_t i = 0; i < t->n_parts; i++)
        if (t->parts[i].before_plan && !t->parts[i].before_plan(t->parts[i].arg))
            return false;
    return true;
}

static void
carry_out(struct turn *t, const struct plan *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct decision *x = &p->decisions[i];
        if (starts_carry_out(t->state, x))
            continue;
        promises_regain(t, x->task >= 0 ? x->as : x->job);
        t->again = true;
    }
}

/* Timers for plans without a new cause. Before the next plan examines more lines, other work
 * gets as much time as this plan took. */
static void
set_timers(const struct turn *t, const struct plan *p, int64_t now_us, int64_t took_us)
{
    if (p->more)
        turn_set_timer(t, TURN_REST, took_us / 1000 + 1);
    if (p->wake_us != INT64_MAX) {
        int64_t ms = (p->wake_us - now_us) / 1000 + 1;
        turn_set_timer(t, TURN_WAKE, ms > 0 ? ms : 1);
    }
}

bool
turn_plan(struct turn *t)
{
    const struct state *s = t->state;
    turn_stop_timer(t, TURN_WAKE);
    if (!may_plan(t))
        return false;
    auto_plan struct plan p = PLAN_INIT;
    uint32_t next_id = store_peek_job_id(t->store);
    int64_t now_us = state_wall_us(s), began_us = turn_now_us(t);
    if (t->plan_due)
        planner_look_anew(s->planner);
    t->more_due = false;
    turn_stop_timer(t, TURN_REST);
    plan_make(s->planner, s->queue, s->ledger, now_us, &next_id, &p);
    int64_t took_us = turn_now_us(t) - began_us;
    PARTS(t, planned, &p, took_us);
    promises_tell(t, &p);
    free(t->waits);
    t->waits = TAKE(p.waits);
    t->n_waits = p.n_waits;
    store_advance_job_id(t->store, next_id);
    t->n_kept = p.n_kept;
    memcpy(t->kept, p.kept, sizeof p.kept);
    carry_out(t, &p);
    set_timers(t, &p, now_us, took_us);
    return true;
}
