/* When pending jobs are expected to start: the planner itself, run ahead in virtual time over
 * copies of ledger, running jobs and the fronts of the lines. Jobs end when they are expected
 * to (plan_ends.c says the same to the planner); one of whom nothing is known never does.
 * Called by the daemon for explanations; changes nothing of what it is given.
 *
 * Of each line only a window is copied, which is filled up as its jobs start: a forecast costs
 * what it looks at, however many wait. Jobs that wait for a time or for others are left out. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/fair.h"
#include "core/plan_priv.h"

#define SECOND_US INT64_C(1000000)
#define WINDOW    32 /* jobs of a line */

/* A line as it really is, and how far it has been copied. */
struct source {
    struct job *next; /* the first that has not been copied */
    uint32_t n;       /* copies that wait */
};

struct end {
    int64_t at_us;
    uint32_t job;
};

struct world {
    const struct queue *from;
    struct source *sources; /* by kind's slot */
    struct planner *planner;
    struct fair *fair;
    struct queue *q;
    struct ledger *l;
    int64_t now_us;
    uint32_t next_id;
    struct end *ends; /* a heap: the first end on top */
    size_t n_ends, cap_ends;
    struct expected_start *out;
    size_t n, most;
};

/* Ends. */

static bool
is_sooner(const struct end *a, const struct end *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->job < b->job;
}

static void
ends_push(struct world *w, struct end e)
{
    if (w->n_ends == w->cap_ends) {
        w->cap_ends = w->cap_ends ? w->cap_ends * 2 : 64;
        w->ends = xrealloc(w->ends, w->cap_ends * sizeof *w->ends);
    }
    size_t at = w->n_ends++;
    for (; at > 0 && is_sooner(&e, &w->ends[(at - 1) / 2]); at = (at - 1) / 2)
        w->ends[at] = w->ends[(at - 1) / 2];
    w->ends[at] = e;
}

static struct end
ends_pop(struct world *w)
{
    struct end first = w->ends[0], last = w->ends[--w->n_ends];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= w->n_ends)
            break;
        if (child + 1 < w->n_ends && is_sooner(&w->ends[child + 1], &w->ends[child]))
            child++;
        if (!is_sooner(&w->ends[child], &last))
            break;
        w->ends[at] = w->ends[child];
        at = child;
    }
    w->ends[at] = last;
    return first;
}

/* Copies. */

/* What planning looks at. */
static struct job *
copy_job(const struct job *job)
{
    struct job *to = job_new();
    to->id = job->id;
    to->uid = job->uid;
    to->state = job->state;
    to->req.demand = job->req.demand;
    to->req.priority = job->req.priority;
    to->req.limit_ms = job->req.limit_ms;
    to->req.grace_ms = job->req.grace_ms;
    to->req.preemptible = job->req.preemptible;
    to->req.array_max = job->req.array_max;
    to->cancel_asked = job->cancel_asked;
    to->requeue_asked = job->requeue_asked;
    to->order = job->order;
    to->submitted_us = job->submitted_us;
    to->req.begin_us = job->req.begin_us;
    to->blocked_since_us = job->blocked_since_us;
    to->limited_since_us = job->limited_since_us;
    to->promised_us = job->promised_us;
    to->span_ms = job->span_ms;
    to->array = job->array;
    to->task = job->task;
    if (job->tasks) {
        task_set_copy(&to->req.array, &job->tasks->pending);
        array_begin(to);
    }
    return to;
}

/* Copies of tasks that have left their array, to run or to wait in their own name, become its
 * copy's tasks again, whichever of the two is copied first. */
static void
adopt_task(struct job *array, const struct job *task)
{
    array->tasks->total++;
    array_adopt(array, task);
}

static void
adopt_tasks(const struct world *w, const struct job *real, struct job *array)
{
    for (int32_t i = 0; i < real->tasks->live; i++) {
        const struct job *task = queue_get(w->q, real->tasks->live_ids[i]);
        if (task)
            adopt_task(array, task);
    }
}

static void
copy_waiting(struct world *w, const struct job *real)
{
    struct job *copy = copy_job(real);
    struct job *array = copy->array ? queue_get(w->q, copy->array) : NULL;
    if (copy->tasks)
        adopt_tasks(w, real, copy);
    if (array && array->tasks)
        adopt_task(array, copy);
    queue_add(w->q, copy);
}

static void
fill_window(struct world *w, struct source *s)
{
    for (; s->n < WINDOW && s->next; s->next = kind_next(s->next), s->n++)
        copy_waiting(w, s->next);
}

static void
copy_active(struct world *w, const struct job *job, int64_t end_us)
{
    struct job *copy = copy_job(job);
    copy->run = xcalloc(1, sizeof *copy->run);
    if (job->run)
        *copy->run = *job->run;
    if (copy->run->started_us == 0)
        copy->run->started_us = w->now_us;
    queue_add(w->q, copy);
    if (end_us != NEVER)
        ends_push(w, (struct end){end_us, job->id});
}

static struct planner *
planner_clone(const struct planner *p, struct fair *fair)
{
    struct planner *to = xcalloc(1, sizeof *to);
    *to = *p;
    to->fair = fair;
    to->balance = balance_clone(p->balance);
    return to;
}

/* The ends that the planner expects. */
static void
copy_running(struct world *w)
{
    struct plan none = PLAN_INIT;
    struct planning pl = {.planner = w->planner,
                          .q = (struct queue *)w->from, /* runs_make only reads */
                          .l = w->l,
                          .now_us = w->now_us,
                          .p = &none};
    runs_make(&pl);
    for (size_t i = 0; i < pl.n_runs; i++)
        copy_active(w, pl.runs[i].job, pl.runs[i].end_us);
    runs_free(&pl);
}

static void
world_make(struct world *w, const struct planner *planner, const struct queue *q,
           const struct ledger *l, int64_t now_us, size_t most)
{
    *w = (struct world){.from = q, .now_us = now_us, .most = most, .next_id = UINT32_MAX / 2};
    w->fair = planner->fair ? fair_clone(planner->fair) : NULL;
    w->planner = planner_clone(planner, w->fair);
    w->q = queue_new();
    w->l = ledger_clone(l);
    w->out = xmalloc((most + 1) * sizeof *w->out);
    w->sources = xcalloc(queue_n_kinds(q) + 1, sizeof *w->sources);
    copy_running(w);
    for (size_t i = 0; i < queue_n_kinds(q); i++) {
        w->sources[i].next = queue_kind(q, i)->head;
        fill_window(w, &w->sources[i]);
    }
}

static void
world_free(struct world *w)
{
    planner_free(w->planner);
    fair_free(w->fair);
    queue_free(w->q);
    ledger_free(w->l);
    free(w->sources);
    free(w->ends);
}

/* What happens. */

static void
note_start(struct world *w, uint32_t id, int64_t at_us)
{
    if (w->n < w->most)
        w->out[w->n++] = (struct expected_start){id, at_us};
}

/* A copy of one that really waits has left its line. */
static void
left_line(struct world *w, uint32_t id)
{
    const struct job *real = queue_get(w->from, id);
    if (real && real->kind)
        w->sources[real->kind->slot].n--;
}

static struct job *
split_task(struct world *w, struct job *array, const struct decision *d)
{
    struct job *task = array_split(array, d->task, d->as);
    queue_add(w->q, task);
    array_note(array, task, JOB_PENDING, JOB_RUNNING, 0);
    queue_refile(w->q, array);
    if (array_next(array) < 0)
        left_line(w, array->id);
    return task;
}

static void
note_array(struct world *w, const struct job *task, enum job_state from, enum job_state to)
{
    struct job *array = task->array ? queue_get(w->q, task->array) : NULL;
    if (!array || !array->tasks)
        return;
    array_note(array, task, from, to, 0);
    queue_refile(w->q, array);
}

static void
start(struct world *w, const struct decision *d)
{
    struct job *job = queue_get(w->q, d->job);
    const struct job *real = queue_get(w->from, d->job);
    if (real && real->kind && (d->task < 0 || d->task == array_next(real)))
        note_start(w, d->job, w->now_us);
    if (d->task >= 0)
        job = split_task(w, job, d);
    else
        left_line(w, job->id);
    if (d->task < 0)
        note_array(w, job, JOB_PENDING, JOB_RUNNING);
    free(job->run);
    job->run = xcalloc(1, sizeof *job->run);
    job->run->started_us = w->now_us;
    job->run->n_gpus = d->where.n;
    memcpy(job->run->gpus, d->where.gpus, d->where.n);
    job->state = JOB_RUNNING;
    queue_refile(w->q, job);
    if (job->span_ms > 0)
        ends_push(w, (struct end){w->now_us + job->span_ms * 1000, job->id});
}

static void
charge(struct world *w, const struct job *job)
{
    const struct attempt *run = job->run;
    if (w->fair)
        fair_charge(w->fair, job->uid,
                    fair_part(w->l, &job->req.demand, run->gpus, run->n_gpus), run->started_us,
                    w->now_us);
}

static void
end(struct world *w, uint32_t id)
{
    struct job *job = queue_get(w->q, id);
    if (!job || !job_state_is_active(job->state))
        return; /* it had to make way */
    charge(w, job);
    ledger_release_ahead(w->l, id);
    note_array(w, job, JOB_RUNNING, JOB_COMPLETED);
    job_free(queue_remove(w->q, id));
}

/* It waits again. What its end was expected to be no longer counts. */
static void
make_way(struct world *w, uint32_t id)
{
    struct job *job = queue_get(w->q, id);
    charge(w, job);
    ledger_release_ahead(w->l, id);
    note_array(w, job, JOB_RUNNING, JOB_PENDING);
    for (size_t i = 0; i < w->n_ends; i++) {
        if (w->ends[i].job == id)
            w->ends[i].job = 0;
    }
    job->state = JOB_PENDING;
    job->cancel_asked = false;
    job->requeue_asked = REQUEUE_NO;
    queue_refile(w->q, job);
}

static void
refuse(struct world *w, uint32_t id)
{
    const struct job *real = queue_get(w->from, id);
    if (real && real->kind)
        w->sources[real->kind->slot].next = NULL;
    job_free(queue_remove(w->q, id));
}

static bool
fill_windows(struct world *w)
{
    bool was_short = false;
    for (size_t i = 0; i < queue_n_kinds(w->from); i++) {
        struct source *s = &w->sources[i];
        was_short |= s->n == 0 && s->next;
        if (s->n < WINDOW / 2)
            fill_window(w, s);
    }
    return was_short;
}

/* One plan. True when there is more to plan at this instant: somebody made way, or a line came
 * to the end of what had been copied of it. */
static bool
plan_now(struct world *w, int64_t *wake_us)
{
    auto_plan struct plan p = PLAN_INIT;
    bool again = false;
    plan_make(w->planner, w->q, w->l, w->now_us, &w->next_id, &p);
    for (size_t i = 0; i < p.n; i++) {
        const struct decision *d = &p.decisions[i];
        switch (d->type) {
        case PLAN_START:
            start(w, d);
            break;
        case PLAN_PREEMPT:
            make_way(w, d->job);
            again = true;
            break;
        case PLAN_INFEASIBLE:
            refuse(w, d->job);
            break;
        }
    }
    *wake_us = p.wake_us;
    if (p.n > 0)
        again |= fill_windows(w);
    return again;
}

/* On to the next end, or to when the planner wants to look again. */
static bool
advance(struct world *w, int64_t wake_us)
{
    int64_t next = w->n_ends ? w->ends[0].at_us : NEVER;
    if (wake_us < next)
        next = wake_us;
    if (next == NEVER)
        return false;
    w->now_us = next > w->now_us ? next : w->now_us + SECOND_US;
    while (w->n_ends && w->ends[0].at_us <= w->now_us) {
        uint32_t id = ends_pop(w).job;
        if (id)
            end(w, id);
    }
    return true;
}

/* Those who wait for what has no end that is known. */
static void
note_the_rest(struct world *w)
{
    size_t n;
    struct job **jobs = queue_list_in_order(w->q, 1u << JOB_PENDING, &n);
    for (size_t i = 0; i < n; i++) {
        const struct job *real = queue_get(w->from, jobs[i]->id);
        bool begun = real && jobs[i]->tasks && array_next(jobs[i]) != array_next(real);
        if (real && real->kind && !begun)
            note_start(w, jobs[i]->id, NEVER);
    }
    free(jobs);
}

size_t
plan_forecast(const struct planner *planner, const struct queue *q, const struct ledger *l,
              int64_t now_us, size_t max_jobs, struct expected_start **out)
{
    struct world w;
    int64_t wake_us = NEVER;
    bool goes_on = true;
    world_make(&w, planner, q, l, now_us, max_jobs);
    while (goes_on && w.n < max_jobs && queue_n_kinds(w.q) > 0) {
        if (!plan_now(&w, &wake_us))
            goes_on = advance(&w, wake_us);
    }
    if (!goes_on)
        note_the_rest(&w);
    *out = w.out;
    world_free(&w);
    return w.n;
}
