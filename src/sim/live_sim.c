/* The event loop over the daemon's scheduler. At each instant: all ends, all arrivals, one
 * plan, whose decisions are applied as src/daemon/turn/turn.c applies them. live_sim_jobs.c
 * handles the jobs and their ends. */
#include "sim/live_sim.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/ledger/ledger.h"
#include "core/plan/fair.h"
#include "core/queue/queue.h"
#include "sim/live_sim_priv.h"

#define HALF_LIFE_MS  (INT64_C(24) * 3600 * 1000)
#define PATIENCE_MS   (INT64_C(4) * 3600 * 1000) /* default of patience_s */
#define REPLANS_MAX   100 /* plans at one instant, each of which preempted a job */
#define NEVER_STARTED (-1)

void
live_rules_init(struct live_rules *r, enum plan_order order)
{
    *r = (struct live_rules){.plan = {.order = order,
                                      .patience_ms = PATIENCE_MS,
                                      .reservations = plan_reservations(order),
                                      .horizon_ms = plan_horizon_ms(order),
                                      .fair_share = true},
                             .half_life_ms = HALF_LIFE_MS};
}

static struct ledger *
make_ledger(const struct machine *m)
{
    struct ledger_policy policy;
    ledger_policy_init(&policy);
    policy.margin_mib = m->margin_mib;
    struct ledger *l = ledger_new(&policy);
    for (int i = 0; i < m->n; i++) {
        struct gpu_info info = {
            .index = i, .minor = i, .numa = -1, .total_mib = m->total_mib[i]};
        struct gpu_sample idle = {.used_mib = 0, .util = 0, .temperature_c = -1};
        ledger_add_card(l, &info);
        ledger_sample(l, i, &idle, live_wall(0), NULL, NULL);
    }
    ledger_set_known(l);
    return l;
}

struct live *
live_new(const struct workload *w, const struct machine *m, const struct live_rules *r)
{
    struct live *live = xcalloc(1, sizeof *live);
    live->w = w;
    live->q = queue_new();
    live->l = make_ledger(m);
    live->fair = fair_new(r->half_life_ms);
    live->planner = planner_new(&r->plan, live->fair);
    live->wake = INT64_MAX;
    live_jobs_init(live);
    live->out.runs = xmalloc((w->n + 1) * sizeof *live->out.runs);
    live->out.n = w->n;
    for (size_t i = 0; i < w->n; i++)
        live->out.runs[i] = (struct sim_run){.start = NEVER_STARTED};
    return live;
}

void
live_free(struct live *live)
{
    if (!live)
        return;
    planner_free(live->planner);
    fair_free(live->fair);
    ledger_free(live->l);
    queue_free(live->q);
    live_jobs_free(live);
    ends_free(&live->ends);
    schedule_free(&live->out);
    free(live);
}

/* Starts and ends. */

static void
start(struct live *live, struct job *job, const struct placement *where)
{
    struct attempt *run = xcalloc(1, sizeof *run);
    uint32_t row = live_row(live, job);
    struct sim_run *shown = &live->out.runs[row];
    *shown = (struct sim_run){.start = live->now};
    run->n_gpus = where->n;
    memcpy(run->gpus, where->gpus, where->n);
    for (int i = 0; i < GPU_MAX; i++)
        run->peak_mib[i] = run->now_mib[i] = -1;
    for (int i = 0; i < where->n; i++)
        shown->cards |= UINT64_C(1) << where->gpus[i];
    run->vram_mib = job->req.demand.vram_mib;
    live_apply(live, job, &(struct job_event){.type = JOB_EV_START, .run = run});
    live_apply(live, job, &(struct job_event){.type = JOB_EV_STARTED});
    ends_push(&live->ends, (struct end){live->now + live->w->jobs[row].duration, job->id,
                                        (uint32_t)job->attempts});
}

static void
end(struct live *live, struct job *job, enum outcome outcome)
{
    const struct attempt *run = job->run;
    struct ending ending = {.outcome = outcome,
                            .ended_us = live_wall(live->now),
                            .run_ms = (live_wall(live->now) - run->started_us) / 1000,
                            .cpu_ms = -1,
                            .max_rss_kib = -1};
    fair_charge(live->fair, job->uid,
                fair_part(live->l, &job->req.demand, run->gpus, run->n_gpus), run->started_us,
                live_wall(live->now));
    ledger_release(live->l, job->id);
    planner_ended(live->planner, job->span_ms, ending.run_ms);
    live_apply(live, job, &(struct job_event){.type = JOB_EV_ENDED, .ending = &ending});
    live_apply(live, job, &(struct job_event){.type = JOB_EV_VRAM_BACK});
}

static void
end_due(struct live *live)
{
    while (ends_next(&live->ends) == live->now) {
        struct end due = ends_pop(&live->ends);
        struct job *job = queue_get(live->q, due.who);
        if (!job || !job_state_is_active(job->state) || (uint32_t)job->attempts != due.attempt)
            continue; /* it was preempted */
        end(live, job, OUTCOME_EXITED);
        live->out.events++;
    }
}

/* Promises: a promised time may only get earlier. */

static void
check_promise(struct live *live, const struct decision *d)
{
    int64_t *promised_us = &live->promised_us[live_row(live, queue_get(live->q, d->job))];
    live->out.broken += *promised_us && live_wall(live->now) > *promised_us;
    *promised_us = 0;
}

static void
note_broken(struct live *live, const struct plan *p)
{
    for (size_t i = 0; i < p->n_broken; i++) {
        const struct broken *x = &p->broken[i];
        live->promised_us[live_row(live, queue_get(live->q, x->job))] = 0;
        if (x->why == BROKEN_PRIORITY)
            live->out.overtaken++;
        else
            live->out.broken++;
    }
}

static void
note_promises(struct live *live)
{
    size_t n;
    const struct promise *list = planner_promises(live->planner, &n);
    for (size_t i = 0; i < n; i++) {
        int64_t *promised_us =
            &live->promised_us[live_row(live, queue_get(live->q, list[i].job))];
        live->out.promised += *promised_us == 0;
        if (*promised_us == 0 || list[i].at_us < *promised_us)
            *promised_us = list[i].at_us;
    }
}

/* Planning. */

/* Returns whether a job was preempted, so that there is more to plan. */
static bool
decide(struct live *live)
{
    auto_plan struct plan p = PLAN_INIT;
    bool gave_way = false;
    plan_make(live->planner, live->q, live->l, live_wall(live->now), &live->next_id, &p);
    for (size_t i = 0; i < p.n; i++) {
        const struct decision *d = &p.decisions[i];
        struct job *job = queue_get(live->q, d->job);
        switch (d->type) {
        case PLAN_START:
            check_promise(live, d);
            if (d->task >= 0)
                job = live_split(live, job, d->task, d->as);
            start(live, job, &d->where);
            break;
        case PLAN_INFEASIBLE:
            live_apply(live, job,
                       &(struct job_event){.type = JOB_EV_INFEASIBLE, .text = d->text});
            break;
        case PLAN_PREEMPT:
            live_apply(live, job, &(struct job_event){.type = JOB_EV_PREEMPT});
            end(live, job, OUTCOME_PREEMPTED);
            gave_way = true;
            break;
        }
    }
    note_broken(live, &p);
    note_promises(live);
    live->wake = INT64_MAX;
    if (p.wake_us != INT64_MAX)
        live->wake = (p.wake_us + SECOND_US - 1) / SECOND_US - LIVE_EPOCH_S;
    return gave_way;
}

static int64_t
next_instant(const struct live *live)
{
    int64_t at = ends_next(&live->ends);
    if (live->arrived < live->w->n && live->w->jobs[live->arrived].arrival < at)
        at = live->w->jobs[live->arrived].arrival;
    if (live->wake < at)
        at = live->wake > live->now ? live->wake : live->now + 1;
    return at;
}

bool
live_step(struct live *live)
{
    const struct workload *w = live->w;
    int64_t next = next_instant(live);
    if (next == INT64_MAX || (live->arrived == w->n && queue_n(live->q) == 0))
        return false;
    live->now = next;
    end_due(live);
    while (live->arrived < w->n && w->jobs[live->arrived].arrival == live->now)
        live_arrive(live);
    if (queue_count(live->q, JOB_PENDING) > live->out.most_waiting)
        live->out.most_waiting = queue_count(live->q, JOB_PENDING);
    for (int i = 0; queue_count(live->q, JOB_PENDING) && decide(live); i++) {
        if (i == REPLANS_MAX)
            err_abort("at second %lld jobs do not cease to give way", (long long)live->now);
    }
    return true;
}

int64_t
live_now(const struct live *live)
{
    return live->now;
}

const struct queue *
live_queue(const struct live *live)
{
    return live->q;
}

const struct ledger *
live_ledger(const struct live *live)
{
    return live->l;
}

const struct planner *
live_planner(const struct live *live)
{
    return live->planner;
}

const struct sim_run *
live_runs(const struct live *live)
{
    return live->out.runs;
}

void
live_schedule(const struct workload *w, const struct machine *m, const struct live_rules *r,
              struct schedule *out)
{
    struct live *live = live_new(w, m, r);
    while (live_step(live))
        ;
    *out = live->out;
    live->out.runs = NULL;
    live_free(live);
}
