/* The plan of a turn: when it is made, and again; starts.c carries it out. */
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "core/ledger/ledger.h"
#include "core/plan/plan.h"
#include "core/queue/queue.h"
#include "daemon/attempt/machine_trouble.h"
#include "daemon/attempt/supervisor_watch.h"
#include "daemon/common/counters.h"
#include "daemon/common/daemon.h"
#include "daemon/common/turn_due.h"
#include "daemon/common/turn_priv.h"
#include "daemon/gpu/prober.h"
#include "daemon/slurm/slurm_engine.h"
#include "daemon/state/starts.h"
#include "daemon/turn/clock_steps.h"
#include "daemon/turn/promises_kept.h"
#include "store/store.h"

static void
on_wake(uv_timer_t *timer)
{
    turn_touch(timer->data);
}

static void
on_rested(uv_timer_t *timer)
{
    struct daemon *d = timer->data;
    turn_touch_unchanged(d);
}

/* Before the next plan looks at more lines there is as much time for others as this one
 * took. */
static void
rest(struct turn *t, int64_t took_us)
{
    uv_update_time(t->rest.loop);
    uv_timer_start(&t->rest, on_rested, (uint64_t)took_us / 1000 + 1, 0);
}

bool
turn_plan(struct daemon *d)
{
    struct turn *t = d->turn;
    uv_timer_stop(&t->wake);
    /* Until the attempts from before a reboot are settled the next daemon takes all that it
     * finds for such ones. */
    if (d->stopping || !d->ready || t->trouble.code || machine_says(d) ||
        watch_has_of_before(d))
        return false;
    clockset_follow(d);
    int64_t now = clock_wall_us();
    if (!prober_is_fresh(d->prober))
        return false; /* a sample is on its way; it touches the turn */
    auto_plan struct plan p = PLAN_INIT;
    uint32_t next_id = store_peek_job_id(d->store);
    int64_t began_us = clock_boot_us();
    if (t->plan_due)
        planner_look_anew(d->planner);
    t->more_due = false;
    uv_timer_stop(&t->rest);
    ledger_set_slurm_room(d->ledger, slurm_room(d));
    plan_make(d->planner, d->queue, d->ledger, now, &next_id, &p);
    d->needs_told = 0;
    promises_tell(d, &p);
    tally_plan(d, clock_boot_us() - began_us);
    free(t->waits);
    t->waits = TAKE(p.waits);
    t->n_waits = p.n_waits;
    if (p.more)
        rest(t, clock_boot_us() - began_us);
    store_advance_job_id(d->store, next_id);
    t->n_kept = p.n_kept;
    memcpy(t->kept, p.kept, sizeof p.kept);
    for (size_t i = 0; i < p.n; i++) {
        const struct decision *x = &p.decisions[i];
        if (starts_carry_out(&d->state, x))
            continue;
        promises_regain(d, x->task >= 0 ? x->as : x->job);
        t->again = true;
    }
    if (p.wake_us != INT64_MAX) {
        int64_t ms = (p.wake_us - now) / 1000 + 1;
        uv_timer_start(&t->wake, on_wake, ms > 0 ? (uint64_t)ms : 1, 0);
    }
    return true;
}
