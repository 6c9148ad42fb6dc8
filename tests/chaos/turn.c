/* What the daemon's turn does: plan, commit, launch; and what must be true of each decision
 * when it is made: that is checked against a copy of the ledger from before the plan. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/place/place.h"
#include "core/queue/array.h"
#include "daemon/state/job_facts.h"
#include "daemon/state/starts.h"
#include "daemon/turn/job_rows.h"
#include "store/store.h"
#include "world.h"

/* What was said to have changed is what is written. */
static void
check_changes(struct world *w)
{
    const struct changes *c = &w->s.changes;
    size_t started = 0, ended = 0;
    for (size_t i = 0; i < c->n; i++) {
        started += c->list[i].type == CHANGE_STARTED;
        ended += c->list[i].type == CHANGE_ENDED;
    }
    for (size_t i = 0; i < c->n_unsaved; i++) {
        started -= (c->unsaved[i]->unsaved & SAVE_ATTEMPT_NEW) != 0;
        ended -= (c->unsaved[i]->unsaved & SAVE_ENDED) != 0;
    }
    CHECK(w, started == 0 && ended == 0);
}

static void
forget_changes(struct world *w)
{
    struct changes *c = &w->s.changes;
    for (size_t i = 0; i < c->n; i++)
        change_free(&c->list[i]);
    c->n = 0;
}

static void
write_rows(struct world *w)
{
    const struct changes *c = &w->s.changes;
    for (size_t i = 0; i < c->n_unsaved; i++)
        rows_write(w->store, &w->s, c->unsaved[i]);
}

/* Its end is durable. */
static void
retire(struct world *w, struct job *job)
{
    CHECK(w, past_of(w, job->id)->ended++ == 0);
    w->n_ended++;
    world_say(w, "    job %u ended %s", job->id, job_state_name(job->state));
    jobs_retire(&w->s, job);
}

void
turn_commit(struct world *w)
{
    struct changes *c = &w->s.changes;
    struct err e;
    check_changes(w);
    forget_changes(w);
    write_rows(w);
    if (store_commit(w->store, &e) < 0)
        err_abort("%s", e.text);
    size_t n = c->n_unsaved;
    c->n_unsaved = 0;
    for (size_t i = 0; i < n; i++) {
        struct job *job = c->unsaved[i];
        bool is_over = job->unsaved & SAVE_ENDED;
        if (job->unsaved & SAVE_ATTEMPT_NEW)
            starts_keep(job);
        job->unsaved = 0;
        if (is_over)
            retire(w, job);
    }
}

/* Starts. */

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
    p->promised_us = 0; /* what is next of an array gets a promise of its own */
    w->n_promised++;
}

static struct process *
next_launch(struct world *w)
{
    if (w->n_launches == w->cap_launches) {
        w->cap_launches = w->cap_launches * 2 + 16;
        w->launches = xrealloc(w->launches, w->cap_launches * sizeof *w->launches);
    }
    return &w->launches[w->n_launches++];
}

static void
take_start(struct world *w, const struct decision *d)
{
    struct job *job = queue_get(w->q, d->task >= 0 ? d->as : d->job);
    struct process *p = next_launch(w);
    CHECK(w, job && job->state == JOB_STARTING && job->run->n_gpus == d->where.n);
    CHECK(w, (uint64_t)job->run->nodes == ledger_bound(w->l, job->id));
    *p = (struct process){.job = job->id, .n = d->where.n, .ends_us = INT64_MAX};
    for (int i = 0; i < d->where.n; i++) {
        p->gpus[i] = d->where.gpus[i];
        p->sampled[i] = -1;
    }
    world_say(w, "    job %u starts on %d cards, the first is %d", job->id, d->where.n,
              d->where.n ? d->where.gpus[0] : -1);
}

/* The task that is to leave its array. */
static void
check_task(struct world *w, const struct job *array, const struct decision *d)
{
    CHECK(w, array->tasks && task_set_has(&array->tasks->pending, d->task));
    CHECK(w, !array_is_full(array) && d->as >= w->next_id && array_next(array) == d->task);
    *past_of(w, d->as) = (struct known){0};
    w->next_id = d->as + 1;
    w->n_accepted++;
}

/* Whoever does not insist is bound only where its cores are free. */
static void
check_nodes(struct world *w, const struct ledger *replay, uint32_t id, const struct demand *d)
{
    uint64_t nodes = ledger_bound(replay, id);
    CHECK(w, !nodes || d->cpu_bind == CPU_BIND_NODE || d->cpus > 0);
    for (; nodes && d->cpu_bind != CPU_BIND_NODE; nodes &= nodes - 1)
        CHECK(w, ledger_node_held(replay, __builtin_ctzll(nodes)) <= CPUS / NODES);
}

static void
take(struct world *w, struct ledger *replay, const struct decision *d)
{
    struct job *job = queue_get(w->q, d->job);
    uint32_t uid;
    CHECK(w, job != NULL);
    switch (d->type) {
    case PLAN_START:
        check_start(w, replay, job, &d->where);
        check_promise(w, job);
        ledger_hold(replay, d->task >= 0 ? d->as : d->job, &job->req.demand, d->where.gpus,
                    d->where.n);
        check_nodes(w, replay, d->task >= 0 ? d->as : d->job, &job->req.demand);
        if (d->task >= 0)
            check_task(w, job, d);
        uid = job->uid;
        CHECK(w, starts_carry_out(&w->s, d));
        take_start(w, d);
        check_limits(w, replay, uid);
        break;
    case PLAN_INFEASIBLE:
        starts_carry_out(&w->s, d);
        break;
    case PLAN_PREEMPT: {
        const struct job *by = queue_get(w->q, d->by);
        CHECK(w, job->req.preemptible && job_state_is_active(job->state));
        CHECK(w, by && by->req.priority > job->req.priority && !job->requeue_asked);
        world_say(w, "    job %u gives way to job %u", job->id, d->by);
        starts_carry_out(&w->s, d);
        break;
    }
    }
}

/* Whoever is first in a line and would fit waits for a reason that is not room. */
static void
check_nothing_was_missed(struct world *w, const struct plan *p)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->decisions[i].type == PLAN_INFEASIBLE)
            return; /* who waited for that one may be new in a line */
    }
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

/* In a calm world a promise is only ever bettered: nobody of higher rank can come. */
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

/* What was decided is durable: now it is launched. */
static void
launch(struct world *w)
{
    for (size_t i = 0; i < w->n_launches; i++) {
        struct process p = w->launches[i];
        struct job *job = queue_get(w->q, p.job);
        p.started_us = w->now_us;
        if (job->req.limit_ms)
            p.ends_us = w->now_us + job->req.limit_ms * 1000;
        if (w->calm)
            p.ends_us -= (int64_t)draw(w, (uint64_t)(job->req.limit_ms / 1000)) * SECOND_US;
        if (w->n_procs == w->cap_procs) {
            w->cap_procs = w->cap_procs * 2 + 16;
            w->procs = xrealloc(w->procs, w->cap_procs * sizeof *w->procs);
        }
        w->procs[w->n_procs++] = p;
        if (w->calm || chance(w, 80))
            jobs_attempt_started(&w->s, job, w->now_us);
    }
    w->n_launches = 0;
    turn_commit(w);
}

static void
on_gone(void *world, const struct job *job)
{
    struct world *w = world;
    w->n_accepted--;
    *past_of(w, job->id) = (struct known){0};
}

/* The disk takes nothing: nobody was told of the plan, so it was never made. What has ended in
 * it is still to be written. */
static void
refuse(struct world *w)
{
    world_say(w, "the disk is full");
    check_changes(w);
    write_rows(w);
    store_rollback(w->store);
    starts_take_back(&w->s, NULL, on_gone, w);
    struct changes *c = &w->s.changes;
    size_t keep = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (c->list[i].type == CHANGE_ENDED)
            c->list[keep++] = c->list[i];
        else
            change_free(&c->list[i]);
    }
    c->n = keep;
    w->n_launches = 0;
}

void
turn_plan(struct world *w, bool crash)
{
    auto_plan struct plan p = PLAN_INIT;
    struct ledger *replay = ledger_clone(w->l);
    uint32_t next_id_before = w->next_id, next_id = next_id_before;
    size_t n_accepted = w->n_accepted, n_ended = w->n_ended;
    plan_make(w->planner, w->q, w->l, w->now_us, &next_id, &p);
    world_say(w, "  plan: %zu decisions", p.n);
    for (size_t i = 0; i < p.n; i++)
        take(w, replay, &p.decisions[i]);
    ledger_free(replay);
    if (!crash)
        note_promise(w);
    check_nothing_was_missed(w, &p);
    if (crash) {
        world_say(w, "the daemon dies before it commits");
        w->n_launches = 0;
        w->n_accepted = n_accepted;
        w->n_ended = n_ended;
        for (uint32_t id = next_id_before; id < w->next_id; id++)
            *past_of(w, id) = (struct known){0};
        store_rollback(w->store);
        restart_daemon(w, false);
        return;
    }
    if (!w->calm && chance(w, 2)) {
        refuse(w);
        return;
    }
    turn_commit(w);
    launch(w);
}
