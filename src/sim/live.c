/* The event loop over the daemon's scheduler. At each instant: every end, every arrival, one
 * plan, whose decisions are applied as src/daemon/turn.c applies them. Job i + 1 of the queue
 * is row i of the workload; one that has ended is forgotten. */
#include "sim/live.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/ledger.h"
#include "core/queue.h"
#include "sim/ends.h"

/* Virtual second 0 on the wall clock: far from 0, which means "not yet" in many places. */
#define EPOCH_S       INT64_C(1000000000)
#define SECOND_US     INT64_C(1000000)
#define HALF_LIFE_MS  (INT64_C(24) * 3600 * 1000)
#define PATIENCE_MS   (INT64_C(15) * 60 * 1000)
#define REPLANS_MAX   100 /* plans at one instant, each of which made somebody give way */
#define NEVER_STARTED (-1)

struct live {
    const struct workload *w;
    struct queue *q;
    struct ledger *l;
    struct planner *planner;
    struct schedule out;
    struct ends ends;
    int64_t now;
    int64_t wake; /* the planner wants to look again then; INT64_MAX */
    size_t arrived;
    uint32_t next_id;
};

static int64_t
wall_of(int64_t second)
{
    return (EPOCH_S + second) * SECOND_US;
}

void
live_rules_init(struct live_rules *r, enum plan_order order)
{
    *r = (struct live_rules){
        .plan = {.order = order, .patience_ms = PATIENCE_MS, .fair_share = true},
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
        ledger_sample(l, i, &idle, wall_of(0), NULL, NULL);
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
    live->planner = planner_new(&r->plan, NULL);
    live->wake = INT64_MAX;
    live->next_id = (uint32_t)w->n + 1;
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
    ledger_free(live->l);
    queue_free(live->q);
    ends_free(&live->ends);
    schedule_free(&live->out);
    free(live);
}

static void
apply(struct live *live, struct job *job, struct job_event *ev)
{
    const char *why = NULL;
    ev->wall_us = wall_of(live->now);
    if (job_apply(job, ev, &why) != JOB_NEXT)
        err_abort("job %u: event %d is refused: %s", job->id, (int)ev->type, why ? why : "?");
    if (job_state_is_final(job->state))
        job_free(queue_remove(live->q, job->id));
    else
        queue_refile(live->q, job);
}

/* Arrivals. */

/* What a row without a request of its own asks for. A declared 0 would mean "the whole card".
 */
static void
demand_of_shape(const struct shape *s, struct demand *d)
{
    d->gpus = s->n;
    d->vram_mib = s->vram_mib > 0 || s->alone ? s->vram_mib : 1;
    d->exclusive = s->alone && s->vram_mib > 0;
    d->devices = s->allowed == UINT64_MAX ? 0 : s->allowed;
}

/* An estimate that the job will exceed cannot be its limit: it is a guess. */
static void
set_span(struct job *job, const struct sim_job *row)
{
    job->span_ms = row->estimate * 1000;
    if (row->estimate >= row->duration)
        job->req.limit_ms = job->span_ms;
    else
        job->estimate_ms = job->span_ms;
}

/* What of a request decides when and where it runs, and owns nothing. */
static void
copy_request(const struct request *r, struct job *job)
{
    job->req.demand = r->demand;
    job->req.preemptible = r->preemptible;
    job->req.limit_ms = r->limit_ms;
}

static void
arrive(struct live *live)
{
    const struct sim_job *row = &live->w->jobs[live->arrived++];
    struct job *job = job_new();
    job->id = (uint32_t)live->arrived;
    job->uid = row->user;
    job->order = job->id;
    job->submitted_us = wall_of(live->now);
    job->req.priority = row->priority;
    if (row->request)
        copy_request(&live->w->requests[row->request - 1], job);
    else
        demand_of_shape(&live->w->shapes[row->shape], &job->req.demand);
    job->declared_mib = job->req.demand.vram_mib;
    set_span(job, row);
    queue_add(live->q, job);
    live->out.events++;
}

/* Starts and ends. */

static void
start(struct live *live, struct job *job, const struct placement *where)
{
    struct attempt *run = xcalloc(1, sizeof *run);
    struct sim_run *shown = &live->out.runs[job->id - 1];
    *shown = (struct sim_run){.start = live->now};
    run->n_gpus = where->n;
    memcpy(run->gpus, where->gpus, where->n);
    for (int i = 0; i < GPU_MAX; i++)
        run->peak_mib[i] = run->now_mib[i] = -1;
    for (int i = 0; i < where->n; i++)
        shown->cards |= UINT64_C(1) << where->gpus[i];
    run->vram_mib = job->req.demand.vram_mib;
    apply(live, job, &(struct job_event){.type = JOB_EV_START, .run = run});
    apply(live, job, &(struct job_event){.type = JOB_EV_STARTED});
    ends_push(&live->ends, (struct end){live->now + live->w->jobs[job->id - 1].duration,
                                        job->id, (uint32_t)job->attempts});
}

static void
end(struct live *live, struct job *job, enum outcome outcome)
{
    const struct attempt *run = job->run;
    struct ending ending = {.outcome = outcome,
                            .ended_us = wall_of(live->now),
                            .run_ms = (wall_of(live->now) - run->started_us) / 1000,
                            .cpu_ms = -1,
                            .max_rss_kib = -1};
    ledger_release(live->l, job->id);
    apply(live, job, &(struct job_event){.type = JOB_EV_ENDED, .ending = &ending});
    apply(live, job, &(struct job_event){.type = JOB_EV_VRAM_BACK});
}

static void
end_due(struct live *live)
{
    while (live->ends.n && live->ends.heap[0].at == live->now) {
        struct end due = ends_pop(&live->ends);
        struct job *job = queue_get(live->q, due.who);
        if (!job || !job_state_is_active(job->state) || (uint32_t)job->attempts != due.attempt)
            continue; /* it had to give way */
        end(live, job, OUTCOME_EXITED);
        live->out.events++;
    }
}

/* Planning. */

/* Whether somebody gave way, so that there is more to plan. */
static bool
decide(struct live *live)
{
    auto_plan struct plan p = PLAN_INIT;
    bool gave_way = false;
    plan_make(live->planner, live->q, live->l, wall_of(live->now), &live->next_id, &p);
    for (size_t i = 0; i < p.n; i++) {
        const struct decision *d = &p.decisions[i];
        struct job *job = queue_get(live->q, d->job);
        switch (d->type) {
        case PLAN_START:
            start(live, job, &d->where);
            break;
        case PLAN_INFEASIBLE:
            apply(live, job, &(struct job_event){.type = JOB_EV_INFEASIBLE, .text = d->text});
            break;
        case PLAN_PREEMPT:
            apply(live, job, &(struct job_event){.type = JOB_EV_PREEMPT});
            end(live, job, OUTCOME_PREEMPTED);
            gave_way = true;
            break;
        }
    }
    live->wake = INT64_MAX;
    if (p.wake_us != INT64_MAX)
        live->wake = (p.wake_us + SECOND_US - 1) / SECOND_US - EPOCH_S;
    return gave_way;
}

static int64_t
next_instant(const struct live *live)
{
    int64_t at = live->ends.n ? live->ends.heap[0].at : INT64_MAX;
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
    if (live->ends.n == 0 && live->arrived == w->n && queue_n(live->q) == 0)
        return false;
    int64_t next = next_instant(live);
    if (next == INT64_MAX)
        err_abort("%zu jobs wait for nothing", queue_n(live->q));
    live->now = next;
    end_due(live);
    while (live->arrived < w->n && w->jobs[live->arrived].arrival == live->now)
        arrive(live);
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
