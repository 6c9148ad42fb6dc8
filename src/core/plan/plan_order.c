/* Whose turn it is: a heap of the lines' fronts. The order is priority (raised by waiting, so
 * that a stream of jobs of higher priority starves no job), then recent use of the user, then
 * the order chosen in the settings, then submission. `balanced` weighs all jobs against each
 * other, but keeps the lines of one jobs file in order, because people write first what they
 * want first: only the first remaining line of a file is in the heap, and the next one
 * replaces it. A due job goes ahead of the others in its file. Called by plan.c. During a pass
 * a user's use only grows, so a front with an outdated use is moved when it reaches the top of
 * the heap; a start costs nothing for the user's other lines. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/plan/plan_priv.h"

/* For the response ratio: expected runs below a minute count as a minute. A job with an
 * unknown run time counts as an hour, so that it is neither first nor starved. */
#define SHORT_LEAST_MS   60000
#define SHORT_UNKNOWN_MS 3600000

#define SMALL_USE 4 /* `balanced`: a user below 1/SMALL_USE of the mean use goes first */

static double
response_ratio(const struct job *job, int64_t now_us)
{
    int64_t span_ms = job->span_ms > 0 ? job->span_ms : SHORT_UNKNOWN_MS;
    if (span_ms < SHORT_LEAST_MS)
        span_ms = SHORT_LEAST_MS;
    double run = (double)span_ms / 1000, waited = (double)job_lined_us(job, now_us) / 1e6;
    return (waited + run) / run;
}

/* An unknown run time counts as the longest. Among equals the job that takes most is first. */
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
        break; /* turn_compare_balanced */
    }
    return 0;
}

/* Under `balanced` use counts in two ways: users who have used less than a quarter of the
 * average are first; beyond that, a job's cost to the others grows with its user's use,
 * measured in averages. If use came first for all, it would defeat the purpose of the order:
 * users who seldom submit would have short waits, and wide jobs of the others would have no
 * bound. A job that is due is due no matter which user it belongs to. */
int
turn_compare_balanced(double mean_used, int64_t used_a, const struct balance_key *a,
                      int64_t used_b, const struct balance_key *b)
{
    if (used_a == used_b || a->due || b->due)
        return balance_compare(a, b);
    bool is_small_a = (double)used_a < mean_used / SMALL_USE;
    bool is_small_b = (double)used_b < mean_used / SMALL_USE;
    if (is_small_a != is_small_b)
        return is_small_a ? -1 : 1;
    double x = (double)a->waited_ms * (double)b->charge;
    double y = (double)b->waited_ms * (double)a->charge;
    x *= mean_used + (double)used_b;
    y *= mean_used + (double)used_a;
    if (x != y)
        return x > y ? -1 : 1;
    return used_a < used_b ? -1 : 1;
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

/* The priority grows while the job is passed over at the head of its line. So the age of a
 * user's long line does not put it ahead of another user's first job, and a job that was held,
 * waited for others or was stopped begins anew. It grows at most to the highest priority
 * requested by others: among equals, the order and fair share still decide. Preemption uses
 * the requested priority: no job is stopped because another has waited. */
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
        return turn_compare_balanced(pl->mean_used, a->used, &a->balance, b->used, &b->balance);
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

typedef bool (*before_fn)(const struct planning *pl, const struct front *a,
                          const struct front *b);

static inline void
sink_in(const struct planning *pl, struct front **heap, size_t n, size_t at, before_fn before)
{
    struct front *front = heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= n)
            break;
        if (child + 1 < n && before(pl, heap[child + 1], heap[child]))
            child++;
        if (!before(pl, heap[child], front))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = front;
}

static void
sink(struct planning *pl, size_t at)
{
    sink_in(pl, pl->fronts, pl->n_fronts, at, is_before);
}

/* Jobs files, under `balanced`. */

static bool
is_before_in_file(const struct planning *pl, const struct front *a, const struct front *b)
{
    (void)pl;
    int c = compare_priorities(a, b);
    if (c == 0 && a->balance.due != b->balance.due)
        return a->balance.due;
    return c != 0 ? c < 0 : compare_submitted(a, b) < 0;
}

static void
sink_in_file(const struct planning *pl, const struct front_group *g, size_t at)
{
    sink_in(pl, g->members, g->n, at, is_before_in_file);
}

static int
compare_files(const void *va, const void *vb)
{
    const struct front *const *a = va, *const *b = vb;
    uint32_t x = (*a)->job->file, y = (*b)->job->file;
    return x != y ? (x < y ? -1 : 1) : *a < *b ? -1 : *a > *b;
}

/* Groups the fronts that belong to jobs files, by file; the first of each joins the heap. */
static void
make_groups(struct planning *pl, size_t n)
{
    size_t n_groups = 0;
    qsort(pl->members, n, sizeof *pl->members, compare_files);
    pl->groups = xcalloc(n, sizeof *pl->groups);
    for (size_t i = 0; i < n; i++) {
        uint32_t file = pl->members[i]->job->file;
        bool is_new = i == 0 || pl->members[i - 1]->job->file != file;
        struct front_group *g = &pl->groups[is_new ? n_groups++ : n_groups - 1];
        g->members = is_new ? &pl->members[i] : g->members;
        g->n++;
        pl->members[i]->group = g;
    }
    for (size_t i = 0; i < n_groups; i++) {
        struct front_group *g = &pl->groups[i];
        for (size_t at = g->n / 2; at-- > 0;)
            sink_in_file(pl, g, at);
        pl->fronts[pl->n_fronts++] = g->members[0];
    }
}

static void
set_files_apart(struct planning *pl)
{
    size_t n = 0, left = 0;
    for (size_t i = 0; i < pl->n_fronts; i++)
        n += pl->fronts[i]->job->file != 0;
    if (n == 0)
        return;
    pl->members = xmalloc(n * sizeof(struct front *));
    n = 0;
    for (size_t i = 0; i < pl->n_fronts; i++) {
        struct front *f = pl->fronts[i];
        if (f->job->file)
            pl->members[n++] = f;
        else
            pl->fronts[left++] = f;
    }
    pl->n_fronts = left;
    make_groups(pl, n);
}

/* The file's next front to try, after its first one has changed or (`left`) is finished; NULL:
 * none is left. */
static struct front *
next_of_file(struct planning *pl, struct front_group *g, bool left)
{
    if (left)
        g->members[0] = g->members[--g->n];
    if (g->n > 0)
        sink_in_file(pl, g, 0);
    return g->n > 0 ? g->members[0] : NULL;
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

double
fronts_mean_used(const struct users *u)
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
    for (size_t i = 0; i < pl->n_lines; i++) {
        const struct job *head = pl->lines[i]->head;
        balance_weigh(pl->planner->balance, pl->q, pl->lines[i]);
        if (head->req.limit_ms <= 0 && demand_n_gpus(&head->req.demand) > 0)
            pl->planner->unlimited_us = pl->now_us;
    }
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
    pl->mean_used = fronts_mean_used(&pl->users);
    if (pl->planner->rules.order == PLAN_BALANCED)
        set_files_apart(pl);
    for (size_t i = pl->n_fronts / 2; i-- > 0;)
        sink(pl, i);
}

void
fronts_free(struct planning *pl)
{
    free(pl->front_list);
    free(pl->fronts);
    free(pl->groups);
    free(pl->members);
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
    struct front *f = pl->fronts[0];
    if (job)
        set_front(pl, f, job);
    if (f->group)
        f = next_of_file(pl, f->group, !job);
    else if (!job)
        f = NULL;
    pl->fronts[0] = f ? f : pl->fronts[--pl->n_fronts];
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
