/* Whose turn it is: the fronts of lines in a heap, by priority (which grows with waiting,
 * so that a stream of a higher one keeps nobody waiting for ever), then by how much their users
 * have used, then by the order of the settings, then as they were submitted. Called by
 * plan.c. While a pass lasts a user's use only grows, and a front that has become too small is
 * put in its place when it comes to the top; so a start costs its user's other lines nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/plan/plan_priv.h"

/* For the response ratio. Run times below a minute count as equal; a job about which nothing
 * is known counts as an hour, so that it is neither first nor starved. */
#define SHORT_LEAST_MS   60000
#define SHORT_UNKNOWN_MS 3600000

#define SMALL_USE 4 /* under `balanced`: below the average by so much */

static double
response_ratio(const struct job *job, int64_t now_us)
{
    int64_t span_ms = job->span_ms > 0 ? job->span_ms : SHORT_UNKNOWN_MS;
    if (span_ms < SHORT_LEAST_MS)
        span_ms = SHORT_LEAST_MS;
    double run = (double)span_ms / 1000, waited = (double)(now_us - job->submitted_us) / 1e6;
    return (waited + run) / run;
}

/* A job about which nothing is known may be the longest. Then the one that takes most. */
static int
compare_lengths(const struct job *a, const struct job *b)
{
    int64_t x = a->span_ms > 0 ? a->span_ms : NEVER, y = b->span_ms > 0 ? b->span_ms : NEVER;
    if (x != y)
        return x > y ? -1 : 1;
    if (demand_n_gpus(&a->req.demand) != demand_n_gpus(&b->req.demand))
        return demand_n_gpus(&a->req.demand) > demand_n_gpus(&b->req.demand) ? -1 : 1;
    bool whole_a = demand_is_whole(&a->req.demand), whole_b = demand_is_whole(&b->req.demand);
    if (whole_a != whole_b)
        return whole_a ? -1 : 1;
    int32_t mib_a = a->req.demand.vram_mib, mib_b = b->req.demand.vram_mib;
    return mib_a == mib_b ? 0 : mib_a > mib_b ? -1 : 1;
}

static int
compare_by_order(enum plan_order order, const struct front *a, const struct front *b)
{
    switch (order) {
    case PLAN_QUEUE:
        break;
    case PLAN_SHORT:
        return a->ratio == b->ratio ? 0 : a->ratio > b->ratio ? -1 : 1;
    case PLAN_LONGEST:
        return compare_lengths(a->job, b->job);
    case PLAN_BALANCED:
        break; /* compare_balanced */
    }
    return 0;
}

/* Under `balanced` use counts in two ways: users who have used less than a quarter of the
 * average are first; beyond that, a job's cost to the others grows with its user's use,
 * measured in averages. If use came first for everybody, it would defeat the purpose of the
 * order: users who seldom submit would have short waits, and wide jobs of the others would
 * have no bound. A job that is due is due no matter which user it belongs to. */
static int
compare_balanced(const struct planning *pl, const struct front *a, const struct front *b)
{
    if (a->used == b->used || a->balance.due || b->balance.due)
        return balance_compare(&a->balance, &b->balance);
    bool is_small_a = (double)a->used < pl->mean_used / SMALL_USE;
    bool is_small_b = (double)b->used < pl->mean_used / SMALL_USE;
    if (is_small_a != is_small_b)
        return is_small_a ? -1 : 1;
    double x = (double)a->balance.waited_ms * (double)b->balance.charge;
    double y = (double)b->balance.waited_ms * (double)a->balance.charge;
    x *= pl->mean_used + (double)b->used;
    y *= pl->mean_used + (double)a->used;
    if (x != y)
        return x > y ? -1 : 1;
    return a->used < b->used ? -1 : 1;
}

static int
compare_priorities(const struct front *a, const struct front *b)
{
    return a->priority == b->priority ? 0 : a->priority > b->priority ? -1 : 1;
}

/* Counts for as long as it has been passed over at the head of its line: a long line of one
 * user's is not ahead of another's first job because it is old, and one that was held, waited
 * for others or has been stopped begins anew. Preemption goes by what was asked: nobody is
 * stopped because another has waited. */
static int64_t
aged_priority(const struct planning *pl, const struct job *job)
{
    int64_t from_us = job->blocked_since_us > 0 ? job->blocked_since_us : pl->now_us;
    int64_t waited_ms = (pl->now_us - from_us) / 1000, step_ms = pl->planner->rules.aging_ms;
    return job->req.priority + (step_ms > 0 && waited_ms > 0 ? waited_ms / step_ms : 0);
}

static int
compare_fronts(const struct planning *pl, const struct front *a, const struct front *b)
{
    int c = compare_priorities(a, b);
    if (c != 0)
        return c;
    if (pl->planner->rules.order == PLAN_BALANCED)
        return compare_balanced(pl, a, b);
    if (a->used != b->used)
        return a->used < b->used ? -1 : 1;
    return compare_by_order(pl->planner->rules.order, a, b);
}

static int
compare_submitted(const struct front *a, const struct front *b)
{
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static bool
is_before(const struct planning *pl, const struct front *a, const struct front *b)
{
    int c = compare_fronts(pl, a, b);
    return c != 0 ? c < 0 : compare_submitted(a, b) < 0;
}

static void
sink(struct planning *pl, size_t at)
{
    struct front front = pl->fronts[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= pl->n_fronts)
            break;
        if (child + 1 < pl->n_fronts &&
            is_before(pl, &pl->fronts[child + 1], &pl->fronts[child]))
            child++;
        if (!is_before(pl, &pl->fronts[child], &front))
            break;
        pl->fronts[at] = pl->fronts[child];
        at = child;
    }
    pl->fronts[at] = front;
}

static void
set_job(const struct planning *pl, struct front *f, struct job *job)
{
    f->job = job;
    f->order = job->order;
    f->id = job->id;
    f->priority = aged_priority(pl, job);
}

static void
set_front(struct planning *pl, struct front *f, struct job *job)
{
    set_job(pl, f, job);
    f->used = user_used(f->user);
    f->range = 0;
    f->task = -1;
    if (job->tasks)
        f->task = job->tasks->pending.ranges[0].first;
    if (pl->planner->rules.order == PLAN_SHORT)
        f->ratio = response_ratio(job, pl->now_us);
    else if (pl->planner->rules.order == PLAN_BALANCED)
        balance_key(pl->planner->balance, job->kind, job, &f->balance);
}

static double
mean_used(const struct users *u)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < u->n_slots; i++) {
        sum += u->slots[i].taken ? (double)user_used(&u->slots[i]) : 0;
        n += u->slots[i].taken;
    }
    return n ? sum / (double)n : 0;
}

static void
begin_balance(struct planning *pl)
{
    for (size_t i = 0; i < pl->n_lines; i++)
        balance_weigh(pl->planner->balance, pl->q, pl->lines[i]);
    balance_begin(pl->planner->balance, pl->q, pl->l, pl->now_us);
}

void
fronts_fill(struct planning *pl)
{
    pl->n_fronts = pl->n_lines;
    pl->fronts = xcalloc(pl->n_fronts + 1, sizeof *pl->fronts);
    if (pl->planner->rules.order == PLAN_BALANCED)
        begin_balance(pl);
    for (size_t i = 0; i < pl->n_fronts; i++) {
        const struct kind *k = pl->lines[i];
        pl->fronts[i].user = users_get(pl, k->uid);
        set_front(pl, &pl->fronts[i], k->head);
    }
    pl->mean_used = mean_used(&pl->users);
    for (size_t i = pl->n_fronts / 2; i-- > 0;)
        sink(pl, i);
}

void
fronts_free(struct planning *pl)
{
    free(pl->fronts);
}

struct front *
fronts_first(struct planning *pl)
{
    struct front *f = pl->fronts;
    while (pl->n_fronts > 0 && f->used != user_used(f->user)) {
        f->used = user_used(f->user);
        sink(pl, 0);
    }
    return pl->n_fronts > 0 ? f : NULL;
}

void
fronts_next(struct planning *pl, struct job *job)
{
    if (job)
        set_front(pl, pl->fronts, job);
    else
        pl->fronts[0] = pl->fronts[--pl->n_fronts];
    if (pl->n_fronts > 0)
        sink(pl, 0);
}

bool
fronts_reserves(const struct planning *pl, const struct front *f)
{
    return pl->planner->rules.order != PLAN_BALANCED || f->balance.reserves;
}

/* --- for a person who asks --- */

static int
compare_turns(const void *a, const void *b, void *arg)
{
    const struct planning *pl = arg;
    int c = pl->planner->rules.order == PLAN_BALANCED ? compare_priorities(a, b)
                                                      : compare_fronts(pl, a, b);
    return c != 0 ? c : compare_submitted(a, b);
}

/* What a job costs its user once it has started, wherever it does. */
static void
charge_turn(struct planning *pl, const struct front *f)
{
    struct placement where = {.n = 0};
    while (where.n < demand_n_gpus(&f->job->req.demand) && where.n < ledger_n_cards(pl->l)) {
        where.gpus[where.n] = where.n;
        where.n++;
    }
    users_charge(pl, f->user, &f->job->req.demand, &where);
}

/* Twice: each user's jobs among themselves, then all, each as if those before had started. */
static void
sort_turns(struct planning *pl, struct front *fronts, size_t n)
{
    if (n > 0)
        qsort_r(fronts, n, sizeof *fronts, compare_turns, pl);
    for (size_t i = 0; i < n; i++) {
        fronts[i].used = user_used(fronts[i].user);
        charge_turn(pl, &fronts[i]);
    }
    if (n > 0)
        qsort_r(fronts, n, sizeof *fronts, compare_turns, pl);
}

struct job **
plan_list_in_turn(struct planner *planner, struct queue *q, struct ledger *l, int64_t now_us,
                  size_t *n)
{
    struct planning pl = {.planner = planner, .q = q, .l = l, .now_us = now_us};
    struct job **jobs = queue_list_in_order(q, 1u << JOB_PENDING, n);
    struct front *fronts = xcalloc(*n + 1, sizeof *fronts);
    size_t in_line = 0, others = 0;
    users_begin(&pl);
    for (size_t i = 0; i < *n; i++) {
        if (!jobs[i]->kind) {
            jobs[others++] = jobs[i];
            continue;
        }
        struct front *f = &fronts[in_line++];
        *f = (struct front){.user = users_get(&pl, jobs[i]->uid)};
        set_job(&pl, f, jobs[i]);
        f->used = user_used(f->user);
        f->ratio = response_ratio(f->job, now_us);
    }
    sort_turns(&pl, fronts, in_line);
    if (others > 0)
        memmove(jobs + in_line, jobs, others * sizeof(struct job *));
    for (size_t i = 0; i < in_line; i++)
        jobs[i] = fronts[i].job;
    free(fronts);
    users_free(&pl);
    return jobs;
}
