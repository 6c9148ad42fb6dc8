/* Whose turn it is: the fronts of lines in a heap, by priority (which grows with waiting, so
 * that a stream of a higher one starves no job), then by how much their users have used, then
 * by the order of the settings, then as they were submitted. Called by plan.c. While a pass
 * lasts a user's use only grows, and a front that has become too small is put in its place
 * when it comes to the top; so a start costs its user's other lines nothing. */
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
compare_lengths(const struct turn *a, const struct turn *b)
{
    if (a->span_ms != b->span_ms)
        return a->span_ms > b->span_ms ? -1 : 1;
    if (a->gpus != b->gpus)
        return a->gpus > b->gpus ? -1 : 1;
    if (a->whole != b->whole)
        return a->whole ? -1 : 1;
    return a->vram_mib == b->vram_mib ? 0 : a->vram_mib > b->vram_mib ? -1 : 1;
}

int
turn_compare(enum plan_order order, const struct turn *a, const struct turn *b)
{
    switch (order) {
    case PLAN_QUEUE:
        break;
    case PLAN_SHORT:
        return a->ratio == b->ratio ? 0 : a->ratio > b->ratio ? -1 : 1;
    case PLAN_LONGEST:
        return compare_lengths(a, b);
    case PLAN_BALANCED:
        break; /* compare_balanced */
    }
    return 0;
}

/* Under `balanced` use counts in two ways: users who have used less than a quarter of the
 * average are first; beyond that, a job's cost to the others grows with its user's use,
 * measured in averages. If use came first for all, it would defeat the purpose of the order:
 * users who seldom submit would have short waits, and wide jobs of the others would have no
 * bound. A job that is due is due no matter which user it belongs to. */
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
    return a->turn.priority == b->turn.priority  ? 0
           : a->turn.priority > b->turn.priority ? -1
                                                 : 1;
}

int32_t
plan_top_priority(const struct queue *q)
{
    int32_t top = INT32_MIN;
    for (size_t i = 0; i < queue_n_users(q); i++) {
        const struct job *first = kind_user_first(queue_user(q, i))->head;
        if (first->req.priority > top)
            top = first->req.priority;
    }
    return top;
}

/* Counts for as long as it has been passed over at the head of its line: a long line of one
 * user's is not ahead of another's first job because it is old, and one that was held, waited
 * for others or has been stopped begins anew. It rises to what others were given and no
 * further: among equals the order and fair share decide, and keep what they promise.
 * Preemption goes by what was asked: no job is stopped because another has waited. */
static int64_t
aged_priority(const struct planning *pl, const struct job *job)
{
    int64_t from_us = job->blocked_since_us > 0 ? job->blocked_since_us : pl->now_us;
    int64_t waited_ms = (pl->now_us - from_us) / 1000, step_ms = pl->planner->rules.aging_ms;
    int64_t asked = job->req.priority,
            top = pl->top_priority > asked ? pl->top_priority : asked;
    int64_t aged = asked + (step_ms > 0 && waited_ms > 0 ? waited_ms / step_ms : 0);
    return aged < top ? aged : top;
}

struct turn
turn_of(const struct planning *pl, const struct job *job)
{
    const struct demand *d = &job->req.demand;
    struct turn turn = {.priority = aged_priority(pl, job)};
    if (pl->planner->rules.order == PLAN_SHORT)
        turn.ratio = response_ratio(job, pl->now_us);
    if (pl->planner->rules.order != PLAN_LONGEST)
        return turn;
    turn.span_ms = job->span_ms > 0 ? job->span_ms : NEVER;
    turn.gpus = demand_n_gpus(d);
    turn.whole = demand_is_whole(d);
    turn.vram_mib = d->vram_mib;
    return turn;
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
    return turn_compare(pl->planner->rules.order, &a->turn, &b->turn);
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
    struct front *front = pl->fronts[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= pl->n_fronts)
            break;
        if (child + 1 < pl->n_fronts && is_before(pl, pl->fronts[child + 1], pl->fronts[child]))
            child++;
        if (!is_before(pl, pl->fronts[child], front))
            break;
        pl->fronts[at] = pl->fronts[child];
        at = child;
    }
    pl->fronts[at] = front;
}

static void
set_front(struct planning *pl, struct front *f, struct job *job)
{
    f->job = job;
    f->order = job->order;
    f->id = job->id;
    f->turn = turn_of(pl, job);
    f->used = user_used(f->user);
    f->range = 0;
    f->task = -1;
    if (job->tasks)
        f->task = job->tasks->pending.ranges[0].first;
    if (pl->planner->rules.order == PLAN_BALANCED)
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
    pl->top_priority = plan_top_priority(pl->q);
    pl->n_fronts = pl->n_lines;
    pl->front_list = xcalloc(pl->n_fronts + 1, sizeof *pl->front_list);
    pl->fronts = xmalloc((pl->n_fronts + 1) * sizeof(struct front *));
    if (pl->planner->rules.order == PLAN_BALANCED)
        begin_balance(pl);
    for (size_t i = 0; i < pl->n_fronts; i++) {
        const struct kind *k = pl->lines[i];
        pl->fronts[i] = &pl->front_list[i];
        pl->fronts[i]->user = plan_users_get(pl, k->uid);
        set_front(pl, pl->fronts[i], k->head);
    }
    pl->mean_used = mean_used(&pl->users);
    for (size_t i = pl->n_fronts / 2; i-- > 0;)
        sink(pl, i);
}

void
fronts_free(struct planning *pl)
{
    free(pl->front_list);
    free(pl->fronts);
}

struct front *
fronts_first(struct planning *pl)
{
    while (pl->n_fronts > 0 && pl->fronts[0]->used != user_used(pl->fronts[0]->user)) {
        pl->fronts[0]->used = user_used(pl->fronts[0]->user);
        sink(pl, 0);
    }
    return pl->n_fronts > 0 ? pl->fronts[0] : NULL;
}

void
fronts_next(struct planning *pl, struct job *job)
{
    if (job)
        set_front(pl, pl->fronts[0], job);
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

bool
fronts_are_lasting(const struct planning *pl, const struct front *f)
{
    switch (pl->planner->rules.order) {
    case PLAN_QUEUE:
    case PLAN_LONGEST:
        return true;
    case PLAN_SHORT:
        return false;
    case PLAN_BALANCED:
        break;
    }
    return f->balance.due;
}
