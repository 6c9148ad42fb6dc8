/* The pass over the queue. It tries the front of each line in scheduling order. If a front
 * does not start, the pass is done with its line: room only shrinks while a plan is made, and
 * all jobs behind the front have the same demand. So the cost depends on the lines examined
 * (plan_depth.c), the starts and the running jobs, not on the number of pending jobs.
 *
 * A job that does not fit may preempt others (preempt.c). The first job that can be helped by
 * preemption or by waiting (reserve.c) gets a reservation; after that, only jobs that do not
 * delay it may start. A job that is over a limit is skipped and delays no other. */
#include "core/plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/plan/plan_priv.h"

/* The planner. */

struct planner *
planner_new(const struct plan_rules *r, struct fair *f)
{
    struct planner *planner = xcalloc(1, sizeof *planner);
    planner->rules = *r;
    planner->has_new_rules = true;
    planner->fair = f;
    planner->balance = balance_new();
    planner->reserved.at_us = planner->wake_us = NEVER;
    planner->anew = true;
    return planner;
}

void
planner_free(struct planner *p)
{
    if (!p)
        return;
    balance_free(p->balance);
    free(p->watched.ids);
    free(p);
}

void
planner_set_rules(struct planner *p, const struct plan_rules *r)
{
    p->rules = *r;
    p->has_new_rules = true;
}

const struct plan_rules *
planner_rules(const struct planner *p)
{
    return &p->rules;
}

const struct reservation *
planner_reservation(const struct planner *p)
{
    return &p->reserved;
}

void
planner_submitted(struct planner *p, const struct demand *d, int64_t n, int64_t now_us)
{
    balance_submitted(p->balance, d, n, now_us);
}

void
planner_ended(struct planner *p, int64_t span_ms, int64_t run_ms)
{
    balance_ended(p->balance, span_ms, run_ms);
    p->has_ended = true;
}

void
planner_stopped(struct planner *p, const struct job *job, int64_t run_ms)
{
    balance_stopped(p->balance, job, run_ms);
}

/* The plan. */

void
plan_free(struct plan *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->decisions[i].text);
    free(p->decisions);
    free(p->waits);
    free(p->broken);
    *p = (struct plan)PLAN_INIT;
}

/* The pass. */

/* Refuses all jobs of a line that can never start here, with the reason in words; at most as
 * many per pass as the pass may examine lines. */
static bool
refuse_infeasible(struct planning *pl, struct kind *k)
{
    auto_buf struct buf why = BUF_INIT;
    struct planner *planner = pl->planner;
    if (k->checked == ledger_generation(pl->l))
        return false;
    if (place_feasible(&k->demand, pl->l, &why)) {
        k->checked = ledger_generation(pl->l);
        return false;
    }
    for (struct job *job = k->head; job; job = kind_next(job)) {
        if (planner->rules.depth && pl->n_refused == planner->rules.depth) {
            planner->anew = planner->has_unseen = true;
            break;
        }
        plan_add(pl->p, PLAN_INFEASIBLE, job->id)->text = xstrdup(buf_str(&why));
        pl->n_refused++;
    }
    return true;
}

bool
plan_is_about_cards(enum reason reason)
{
    return reason == REASON_RESOURCES || reason == REASON_GPU_BUSY ||
           reason == REASON_GPU_SHARE || reason == REASON_GPU_MEMORY;
}

static struct refused_line *
refused_slot(struct planning *pl, const struct kind *k)
{
    return &pl->refused[k->demand_hash % REFUSED_LINES];
}

static void
remember_refusal(const struct planning *pl, struct kind *k)
{
    k->refused = ledger_changes(pl->l);
    k->refused_on = pl->l;
}

static void
note_refusal(struct planning *pl, struct kind *k)
{
    k->refused = 0;
    if (!plan_is_about_cards(k->blocked.reason))
        return;
    *refused_slot(pl, k) = (struct refused_line){k, pl->n_booked};
    remember_refusal(pl, k);
}

/* Whether k->blocked is still why the line finds no GPUs in the unchanged ledger. */
static bool
is_refused_still(const struct planning *pl, const struct kind *k)
{
    return k->refused && k->refused == ledger_changes(pl->l) && k->refused_on == pl->l &&
           plan_is_about_cards(k->blocked.reason) && !k->blocked.told_needs;
}

/* The line with the same demand that was refused GPUs since the last start, perhaps k itself;
 * NULL: none. */
static const struct kind *
refused_like(struct planning *pl, const struct kind *k)
{
    const struct refused_line *r = refused_slot(pl, k);
    bool is_alike =
        r->kind && r->n_booked == pl->n_booked &&
        (r->kind == k || (r->kind->demand_hash == k->demand_hash &&
                          memcmp(&r->kind->demand, &k->demand, sizeof k->demand) == 0));
    return is_alike ? r->kind : NULL;
}

/* If the reason is a reservation, names the job that holds it. */
static void
name_the_kept(const struct planning *pl, struct blocked *why)
{
    if (why->reason != REASON_RESERVATION || why->waits_for.id)
        return;
    why->waits_for.id = pl->keep.job ? pl->keep.job->id : pl->closed_for;
    why->until_us = pl->keep.job ? pl->keep.at_us : 0;
}

/* Places the front's job, or its next task, within the limits and beside what is kept. */
static bool
find_place(struct planning *pl, const struct front *f, uint32_t id, struct placement *where)
{
    struct kind *k = f->job->kind;
    const struct demand *d = &f->job->req.demand;
    struct blocked limit, *why = &k->blocked;
    uint64_t cards;
    if (is_refused_still(pl, k) && plan_users_allow(pl, f->user, d, &cards, &limit)) {
        note_refusal(pl, k);
        return false;
    }
    if (!plan_users_allow(pl, f->user, d, &cards, why))
        return false;
    const struct kind *like = refused_like(pl, k);
    if (like) {
        *why = like->blocked;
        remember_refusal(pl, k);
        return false;
    }
    if (reserve_place(pl, f->job, id, pl->l, cards, where, why))
        return true;
    note_refusal(pl, k);
    /* There was room, but only on GPUs too large for the rest of a VRAM limit. */
    if (why->reason == REASON_RESERVATION && cards != UINT64_MAX &&
        reserve_place(pl, f->job, 0, pl->l, UINT64_MAX, where, &limit)) {
        *why = (struct blocked){.reason = REASON_USER_LIMIT,
                                .gpu = -1,
                                .limit = f->user->limit->vram_mib,
                                .limit_of = 'v'};
        if (why->limit == 0) {
            why->reason = REASON_QUEUE_LIMIT;
            why->limit = pl->planner->rules.limits->all.vram_mib;
        }
    }
    name_the_kept(pl, why);
    return false;
}

static bool
start(struct planning *pl, struct front *f)
{
    struct job *job = f->job;
    struct placement where;
    uint32_t id = f->task >= 0 ? *pl->next_id : job->id;
    if (!find_place(pl, f, id, &where))
        return false;
    promises_started(pl, job, id, &where);
    ledger_hold(pl->l, id, &job->req.demand, where.gpus, where.n);
    pl->n_booked++;
    balance_booked(pl->planner->balance);
    plan_users_charge(pl, f->user, &job->req.demand, &where);
    struct decision *d = plan_add(pl->p, PLAN_START, job->id);
    d->where = where;
    if (f->task >= 0) {
        d->task = f->task;
        d->as = id;
        ++*pl->next_id;
    }
    runs_started(pl, id, job);
    plan_array_starts(pl, job);
    job->blocked_since_us = job->limited_since_us = 0;
    return true;
}

/* After a start, the line continues with the array's next task or with the next job. */
static void
go_on(struct planning *pl)
{
    struct front *f = pl->fronts[0];
    struct job *job = f->job;
    if (f->task >= 0) {
        const struct tasks *t = job->tasks;
        if (++f->task > t->pending.ranges[f->range].last && ++f->range < t->pending.n)
            f->task = t->pending.ranges[f->range].first;
        if (f->range < t->pending.n)
            return; /* fronts_first moves it to its new place */
    }
    fronts_next(pl, kind_next(job));
}

static void
stays(struct plan *p, const struct job *job)
{
    p->waits = xgrow(p->waits, p->n_waits, &p->cap_waits, sizeof *p->waits);
    p->waits[p->n_waits++] = job->id;
}

static bool
is_over_limit(const struct blocked *why)
{
    return why->reason == REASON_USER_LIMIT || why->reason == REASON_QUEUE_LIMIT;
}

/* Whether keeping room on this machine would not help. */
static bool
is_elsewhere(const struct blocked *why)
{
    return why->reason == REASON_MACHINE || why->reason == REASON_SLURM;
}

static void
note_limited(struct planning *pl, const struct job *job)
{
    if (job->req.priority > pl->limited_priority)
        pl->limited_priority = job->req.priority;
}

/* The front's job does not start in this pass. */
static void
pass_over(struct planning *pl, const struct front *f)
{
    struct job *job = f->job;
    if (is_elsewhere(&job->kind->blocked)) {
        job->blocked_since_us = job->limited_since_us = 0;
        return;
    }
    if (is_over_limit(&job->kind->blocked)) {
        job->blocked_since_us = 0;
        note_limited(pl, job);
        plan_users_keep(pl, f->user, job, &job->kind->blocked);
        return;
    }
    if (job->blocked_since_us == 0)
        job->blocked_since_us = pl->now_us;
    bool was_kept = pl->keep.job != NULL;
    if (job->req.priority > pl->users.lowest_preemptible)
        preempt_for(pl, f->user, job);
    plan_users_keep_on(pl, f->user, job);
    /* A job that only a promise to another job holds back starts after that one. Room kept for
     * it would be idle and make the promised job wait. */
    if (!pl->keep.job && fronts_reserves(pl, f) && !job->kind->blocked.until_firm)
        reserve_for(pl, job);
    if (pl->keep.job && !was_kept) {
        pl->keep.lasting = fronts_are_lasting(pl, f);
        promises_give_way(pl);
    }
    if (fronts_are_lasting(pl, f) || pl->planner->rules.order == PLAN_SHORT)
        promise_to(pl, job);
}

/* Jobs passed over early in the pass may have reasons naming room that later starts took. */
static void
refresh_reasons(struct planning *pl)
{
    for (size_t i = 0; i < pl->n_lines; i++) {
        struct kind *k = pl->lines[i];
        struct placement unused;
        struct blocked now;
        if (k->blocked.reason == REASON_NONE || k->blocked.reason == REASON_RESERVATION ||
            is_elsewhere(&k->blocked) || is_over_limit(&k->blocked))
            continue;
        const struct kind *like = refused_like(pl, k);
        if (like) {
            k->blocked = like->blocked;
        } else if (!place_job(&k->demand, pl->l, &unused, &now)) {
            k->blocked = now;
            note_refusal(pl, k);
        }
    }
}

static void
remember(struct planning *pl)
{
    const struct keep *k = &pl->keep;
    struct reservation *r = &pl->planner->reserved;
    *r = (struct reservation){.at_us = NEVER};
    if (k->job)
        *r = (struct reservation){.job = k->job->id,
                                  .at_us = k->at_us,
                                  .cards = k->cards,
                                  .pinned = k->pinned,
                                  .lasting = k->lasting};
}

/* Promised jobs that are not the first of their line. */

/* Whether the job, or the array's first task, has started in this pass ahead of its line. */
static bool
has_started(const struct planning *pl, const struct job *job)
{
    for (size_t i = 0; i < pl->n_out_of_turn; i++) {
        if (pl->out_of_turn[i] == job->id)
            return true;
    }
    return false;
}

static bool
start_out_of_turn(struct planning *pl, struct job *job)
{
    struct front f = {.job = job,
                      .user = plan_users_get(pl, job->uid),
                      .task = job->tasks ? array_next(job) : -1};
    if (has_started(pl, job) || plan_array_is_full(pl, job) || !start(pl, &f))
        return false;
    pl->out_of_turn[pl->n_out_of_turn++] = job->id;
    return true;
}

static void
start_those_due(struct planning *pl)
{
    uint32_t due[PROMISES_MAX];
    size_t n_promises, n = 0;
    const struct promise *list = planner_promises(pl->planner, &n_promises);
    for (size_t i = 0; i < n_promises && list[i].at_us <= pl->now_us; i++)
        due[n++] = list[i].job;
    for (size_t i = 0; i < n; i++) {
        struct job *job = queue_get(pl->q, due[i]);
        if (job->kind->head != job && planner_promise_of(pl->planner, job->id))
            start_out_of_turn(pl, job);
    }
}

/* The front may not start because of a promise. If the promised job is behind it in the same
 * line, that job starts at once: the room would otherwise be idle until the promise is due. */
static bool
start_behind(struct planning *pl, const struct front *f)
{
    struct kind *k = f->job->kind;
    struct blocked why = k->blocked;
    size_t n;
    const struct promise *list = planner_promises(pl->planner, &n);
    for (size_t i = 0; i < n && why.until_firm; i++) {
        struct job *job = queue_get(pl->q, list[i].job);
        if (job->kind == k && job != f->job && start_out_of_turn(pl, job))
            return true;
    }
    k->blocked = why;
    return false;
}

static void
run_pass(struct planning *pl)
{
    struct front *f;
    plan_users_begin(pl);
    lines_choose(pl);
    promises_begin(pl);
    fronts_fill(pl);
    start_those_due(pl);
    while ((f = fronts_first(pl)) != NULL) {
        if (has_started(pl, f->job) && (f->task < 0 || f->task == array_next(f->job))) {
            go_on(pl);
        } else if (refuse_infeasible(pl, f->job->kind)) {
            fronts_next(pl, NULL);
        } else if (plan_array_is_full(pl, f->job)) {
            f->job->kind->blocked = (struct blocked){
                .reason = REASON_ARRAY_LIMIT, .gpu = -1, .limit = f->job->req.array_max};
            note_limited(pl, f->job);
            stays(pl->p, f->job);
            fronts_next(pl, kind_next(f->job));
        } else if (start(pl, f)) {
            go_on(pl);
        } else if (!start_behind(pl, f)) {
            pass_over(pl, f);
            stays(pl->p, f->job);
            fronts_next(pl, NULL);
        }
    }
    if (pl->p->n > 0)
        refresh_reasons(pl);
}

void
plan_make(struct planner *planner, struct queue *q, struct ledger *l, int64_t now_us,
          uint32_t *next_id, struct plan *p)
{
    struct planning pl = {
        .planner = planner, .q = q, .l = l, .now_us = now_us, .next_id = next_id, .p = p};
    pl.limited_priority = INT32_MIN;
    plan_free(p);
    if (queue_wake(q, now_us) || planner->wake_us <= now_us)
        planner_look_anew(planner);
    queue_mark_lines(q, now_us, NULL, NULL);
    p->wake_us = queue_next_begin_us(q);
    run_pass(&pl);
    remember(&pl);
    promises_end(&pl);
    queue_forget_dropped(q);
    wake_at(&pl, planner->wake_us);
    planner->wake_us = p->wake_us;
    p->more = planner->has_unseen;
    free(pl.lines);
    free(pl.watched.ids);
    free(pl.started);
    reserve_free(&pl);
    runs_free(&pl);
    fronts_free(&pl);
    plan_users_free(&pl);
}
