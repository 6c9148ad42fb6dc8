/* The daemon's own turn (src/daemon/turn), with one part that replaces the rest of the daemon:
 * it launches processes, loses its disk and dies, and checks invariants. Each decision is
 * checked when it is made, against a copy of the ledger from before the plan. */
#include "daemon/turn/turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../daemon/full_disk.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/place/place.h"
#include "core/queue/array.h"
#include "daemon/state/job_facts.h"
#include "store/store.h"
#include "world.h"

/* --- invariants of a decision --- */

static void
check_limits(struct world *w, const struct ledger *l, uint32_t uid)
{
    struct limit has = {0}, all = {0};
    const struct limit *most = limits_of(&w->limits, uid);
    for (struct job *job = queue_active(w->q); job; job = queue_active_next(job)) {
        int n = job->run->n_gpus;
        all.running++;
        all.gpus += n;
        if (job->uid != uid)
            continue;
        has.running++;
        has.gpus += n;
        for (int i = 0; i < n; i++) {
            int64_t total = ledger_card(l, job->run->gpus[i])->info.total_mib;
            has.vram_mib += job->req.demand.vram_mib ? job->req.demand.vram_mib
                            : job->req.demand.share_permille
                                ? total * job->req.demand.share_permille / 1000
                                : total;
        }
    }
    CHECK(w, !most->running || has.running <= most->running);
    CHECK(w, !most->gpus || has.gpus <= most->gpus);
    CHECK(w, !most->vram_mib || has.vram_mib <= most->vram_mib);
    CHECK(w, !w->limits.all.running || all.running <= w->limits.all.running);
}

static void
check_card_choice(struct world *w, const struct ledger *l, const struct demand *d, int card)
{
    int64_t external = cards_true_external(w, l, card), budgets = 0;
    const struct card *c = ledger_card(l, card);
    bool is_whole = demand_is_whole(d);
    int32_t shares = d->share_permille;
    CHECK(w, w->state[card] == GPU_UP);
    CHECK(w, d->n_ids || !d->devices || (d->devices >> card & 1));
    CHECK(w, c->info.total_mib >= (int64_t)d->min_vram_mib * 98 / 100);
    CHECK(w, CC_OF(card) >= d->min_cc);
    CHECK(w, !d->max_used_permille ||
                 w->used[card] * 1000 < (int64_t)d->max_used_permille * w->total_mib[card]);
    for (int i = 0; i < c->n_holds; i++) {
        CHECK(w, !c->holds[i].exclusive);
        shares += c->holds[i].share_permille;
        budgets += cards_true_budget(w, &c->holds[i], card);
    }
    CHECK(w, shares <= 1000);
    CHECK(w, !(is_whole || d->exclusive) || c->n_holds == 0);
    if (is_whole)
        CHECK(w, external < IDLE);
    else if (d->vram_mib > 0)
        CHECK(w, budgets + d->vram_mib + MARGIN + external <= w->total_mib[card]);
    else
        CHECK(w, budgets + w->total_mib[card] * d->share_permille / 1000 <= w->total_mib[card]);
}

static void
check_start(struct world *w, const struct ledger *l, const struct job *job,
            const struct placement *p)
{
    const struct demand *d = &job->req.demand;
    uint64_t mask = 0;
    CHECK(w, job->state == JOB_PENDING && !job->parked);
    CHECK(w, job->begin_us <= w->now_us && !world_process(w, job->id));
    CHECK(w, p->n == (d->n_ids ? d->n_ids : d->gpus));
    for (int i = 0; i < p->n; i++) {
        CHECK(w, !d->n_ids || p->gpus[i] == d->ids[i]);
        CHECK(w, !(mask >> p->gpus[i] & 1));
        mask |= UINT64_C(1) << p->gpus[i];
        check_card_choice(w, l, d, p->gpus[i]);
    }
    CHECK(w, ledger_cpus_held(l) + demand_cpus(d) <= CPUS);
    CHECK(w, ledger_mem_held(l) + d->mem_mib <= MEM_MIB);
}

static void
check_promise(struct world *w, const struct job *job)
{
    struct known *p = past_of(w, job->array ? job->array : job->id);
    if (!w->calm || !p->promised_us)
        return;
    CHECK(w, w->now_us <= p->promised_us);
    p->promised_us = 0; /* the array's next task gets a promise of its own */
    w->n_promised++;
}

/* A job without --cpu-bind=node is bound to a node only where the node has free cores. */
static void
check_nodes(struct world *w, const struct ledger *replay, uint32_t id, const struct demand *d)
{
    uint64_t nodes = ledger_bound(replay, id);
    CHECK(w, !nodes || d->cpu_bind == CPU_BIND_NODE || d->cpus > 0);
    for (; nodes && d->cpu_bind != CPU_BIND_NODE; nodes &= nodes - 1)
        CHECK(w, ledger_node_held(replay, __builtin_ctzll(nodes)) <= CPUS / NODES);
}

/* The decision's task must be the array's next one, after those that leave in the same
 * plan. */
static void
check_task(struct world *w, const struct plan *p, size_t at)
{
    const struct decision *d = &p->decisions[at];
    const struct job *array = queue_get(w->q, d->job);
    int32_t active = array->tasks->active;
    const struct decision *before = NULL;
    for (size_t i = 0; i < at; i++) {
        if (p->decisions[i].job == d->job && p->decisions[i].task >= 0) {
            before = &p->decisions[i];
            active++;
        }
    }
    CHECK(w, task_set_has(&array->tasks->pending, d->task));
    CHECK(w, before ? before->task < d->task : array_next(array) == d->task);
    CHECK(w, !array->req.array_max || active < array->req.array_max);
    CHECK(w, d->as >= w->next_id);
    *past_of(w, d->as) = (struct known){0};
    w->next_id = d->as + 1;
    w->n_accepted++;
}

static void
check_preempt(struct world *w, const struct job *job, const struct decision *d)
{
    const struct job *by = queue_get(w->q, d->by);
    CHECK(w, job->req.preemptible && job_state_is_active(job->state));
    CHECK(w, by && by->req.priority > job->req.priority && !job->requeue_asked);
    world_say(w, "    job %u gives way to job %u", job->id, d->by);
}

static void
check_decision(struct world *w, const struct plan *p, size_t at)
{
    const struct decision *d = &p->decisions[at];
    const struct job *job = queue_get(w->q, d->job);
    uint32_t id = d->task >= 0 ? d->as : d->job;
    CHECK(w, job != NULL);
    switch (d->type) {
    case PLAN_START:
        check_start(w, w->replay, job, &d->where);
        check_promise(w, job);
        ledger_hold(w->replay, id, &job->req.demand, d->where.gpus, d->where.n);
        check_nodes(w, w->replay, id, &job->req.demand);
        if (d->task >= 0)
            check_task(w, p, at);
        break;
    case PLAN_INFEASIBLE:
        break;
    case PLAN_PREEMPT:
        check_preempt(w, job, d);
        break;
    }
}

/* The first job of a line that would fit must be pending for a reason other than resources. */
static void
check_nothing_was_missed(struct world *w)
{
    if (w->some_infeasible)
        return; /* jobs that depended on it may be new in a line */
    for (size_t i = 0; i < queue_n_kinds(w->q); i++) {
        const struct kind *k = queue_kind(w->q, i);
        struct placement unused;
        if (!place_job(&k->demand, w->l, &unused, NULL))
            continue;
        enum reason r = k->blocked.reason;
        CHECK(w, r == REASON_RESERVATION || r == REASON_USER_LIMIT || r == REASON_QUEUE_LIMIT ||
                     r == REASON_ARRAY_LIMIT);
    }
}

/* In a calm world no job of higher rank can arrive, so a promise may only move earlier. */
static void
note_promise(struct world *w)
{
    const struct reservation *r = planner_reservation(w->planner);
    if (!r->job || r->at_us == INT64_MAX || !w->calm)
        return;
    struct known *p = past_of(w, r->job);
    world_say(w, "    job %u is promised a start in %lld ms, on cards %llx", r->job,
              (long long)((r->at_us - w->now_us) / 1000), (unsigned long long)r->cards);
    CHECK(w, !p->promised_us || r->at_us <= p->promised_us);
    CHECK(w, r->at_us > w->now_us);
    p->promised_us = r->at_us;
}

/* --- the part --- */

static bool
before_plan(void *arg)
{
    struct world *w = arg;
    if (w->plans_not)
        return false;
    w->replay = ledger_clone(w->l);
    return true;
}

static void
planned(void *arg, const struct plan *p, int64_t took_us)
{
    struct world *w = arg;
    (void)took_us;
    world_say(w, "  plan: %zu decisions", p->n);
    for (size_t i = 0; i < p->n; i++)
        check_decision(w, p, i);
    w->has_planned = true;
    w->some_infeasible = false;
    for (size_t i = 0; i < p->n; i++)
        w->some_infeasible |= p->decisions[i].type == PLAN_INFEASIBLE;
}

/* The attempt's folder, whose creation may fail. */
static bool
prepare_start(void *arg, struct job *job)
{
    struct world *w = arg;
    CHECK(w, job->state == JOB_STARTING);
    CHECK(w, (uint64_t)job->run->nodes == ledger_bound(w->l, job->id));
    if (w->calm || !chance(w, 1))
        return true;
    world_say(w, "    job %u finds no folder", job->id);
    w->some_unprepared = true;
    return false;
}

/* The changes announced must match what is written. */
static void
sum_up(void *arg, struct job *const *jobs, size_t n)
{
    struct world *w = arg;
    const struct changes *c = &w->s.changes;
    size_t started = 0, ended = 0;
    for (size_t i = 0; i < c->n; i++) {
        started += c->list[i].type == CHANGE_STARTED;
        ended += c->list[i].type == CHANGE_ENDED;
    }
    for (size_t i = 0; i < n; i++) {
        started -= (jobs[i]->unsaved & SAVE_ATTEMPT_NEW) != 0;
        ended -= (jobs[i]->unsaved & SAVE_ENDED) != 0;
    }
    CHECK(w, c->n == c->n_read && started == 0 && ended == 0);
    if (w->dies)
        longjmp(w->died, 1);
}

static void
read_change(void *arg, struct change *x)
{
    (void)arg;
    snprintf(x->kind, sizeof x->kind, "%d", (int)x->type); /* so that it is kept */
    buf_clear(&x->json);
    buf_adds(&x->json, "{}");
}

static void
job_gone(void *arg, const struct job *job)
{
    struct world *w = arg;
    w->n_accepted--;
    *past_of(w, job->id) = (struct known){0};
}

static void
must_be_durable(struct world *w)
{
    CHECK(w, !store_has_changes(w->store));
}

static void
saved(void *arg)
{
    must_be_durable(arg);
}

static void
answer(void *arg, const struct err *failed)
{
    struct world *w = arg;
    w->n_answers++;
    if (!failed)
        must_be_durable(w);
}

static void
launch(void *arg, struct job *job)
{
    struct world *w = arg;
    const struct attempt *run = job->run;
    CHECK(w, job->state == JOB_STARTING && !world_process(w, job->id));
    must_be_durable(w);
    struct process p = {
        .job = job->id, .n = run->n_gpus, .started_us = w->now_us, .ends_us = INT64_MAX};
    for (int i = 0; i < run->n_gpus; i++) {
        p.gpus[i] = run->gpus[i];
        p.sampled[i] = -1;
    }
    if (job->req.limit_ms)
        p.ends_us = w->now_us + job->req.limit_ms * 1000;
    if (w->calm)
        p.ends_us -= (int64_t)draw(w, (uint64_t)(job->req.limit_ms / 1000)) * SECOND_US;
    world_say(w, "    job %u starts on %d cards, the first is %d", job->id, run->n_gpus,
              run->n_gpus ? run->gpus[0] : -1);
    if (w->n_procs == w->cap_procs) {
        w->cap_procs = w->cap_procs * 2 + 16;
        w->procs = xrealloc(w->procs, w->cap_procs * sizeof *w->procs);
    }
    w->procs[w->n_procs++] = p;
}

/* The attempt's end is durable. */
static void
act(void *arg, const struct job *job, unsigned what)
{
    struct world *w = arg;
    if (!(what & SAVE_ENDED))
        return;
    CHECK(w, past_of(w, job->id)->ended++ == 0);
    w->n_ended++;
    world_say(w, "    job %u ended %s", job->id, job_state_name(job->state));
}

void
turns_make(struct world *w)
{
    const struct turn_part part = {.name = "world",
                                   .arg = w,
                                   .read = read_change,
                                   .before_plan = before_plan,
                                   .planned = planned,
                                   .prepare_start = prepare_start,
                                   .sum_up = sum_up,
                                   .job_gone = job_gone,
                                   .saved = saved,
                                   .answer = answer,
                                   .launch = launch,
                                   .act = act};
    const struct turn_host host = virtual_host_of(&w->host);
    w->host = (struct virtual_host){.now_us = &w->now_us};
    w->turn = turn_new(&w->s, w->store, &host, &part, 1);
}

/* --- turns --- */

static void
check_all_limits(struct world *w)
{
    for (uint32_t uid = 0; uid < USERS; uid++)
        check_limits(w, w->l, uid);
}

static void
drop_replay(struct world *w)
{
    if (w->replay)
        ledger_free(w->replay);
    w->replay = NULL;
}

static void
run(struct world *w, bool disk_is_full)
{
    size_t n_answers = w->n_answers;
    w->has_planned = w->some_unprepared = false;
    virtual_fire(&w->host, w->turn);
    turn_is_due(w->turn);
    disk_set_full(disk_is_full);
    int rc = turn_run(w->turn);
    disk_set_full(false);
    drop_replay(w);
    CHECK(w, w->n_answers == n_answers + 1);
    CHECK(w, rc == 0 || (disk_is_full && turn_trouble(w->turn)));
    check_all_limits(w);
    /* A start postponed for lack of a row or a folder leaves room that other jobs could
     * use. */
    if (rc == 0 && w->has_planned && !w->some_unprepared && !virtual_is_due(&w->host)) {
        note_promise(w);
        check_nothing_was_missed(w);
    }
}

void
turns_commit(struct world *w)
{
    w->plans_not = true;
    run(w, false);
    w->plans_not = false;
}

/* Supervisors of launched jobs report that they run: most do so at once. */
static void
hear_launched(struct world *w)
{
    for (size_t i = 0; i < w->n_procs; i++) {
        struct job *job = queue_get(w->q, w->procs[i].job);
        if (job->state == JOB_STARTING && w->procs[i].started_us == w->now_us &&
            (w->calm || chance(w, 80)))
            jobs_attempt_started(&w->s, job, w->now_us);
    }
}

static void
die(struct world *w)
{
    world_say(w, "the daemon dies before it commits");
    drop_replay(w);
    restart_daemon(w, false);
}

void
turns_plan(struct world *w, bool crash)
{
    uint32_t next_id = w->next_id;
    size_t n_accepted = w->n_accepted;
    w->dies = crash;
    if (setjmp(w->died) == 0) {
        run(w, !w->calm && !crash && chance(w, 2));
    } else {
        w->dies = false;
        w->n_accepted = n_accepted;
        w->next_id = next_id;
        die(w);
        return;
    }
    hear_launched(w);
    turns_commit(w);
}
