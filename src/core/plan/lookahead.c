/* When pending jobs are expected to start: runs the planner ahead in virtual time on copies of
 * the ledger, the running jobs and the first jobs of the lines. Running jobs end when they are
 * expected to (as plan_ends.c has it for the planner); a job with an unknown run time never
 * ends. Called by the daemon for explanations; changes none of its inputs.
 *
 * It copies only as many lines as a plan can handle quickly, and of each line only the first
 * jobs. The forecast ends when the copies of a line are used up and the line has more jobs. So
 * its cost does not depend on the number of pending jobs, and it can run in steps, because it
 * never looks at the real queue again. Jobs that wait for a time join their lines at that
 * time; jobs that wait for other jobs are left out. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/plan/ends.h"
#include "core/plan/fair.h"
#include "core/plan/lookahead_asked.h"
#include "core/plan/plan_priv.h"

#define SECOND_US  INT64_C(1000000)
#define LINES      1000  /* copied lines: those whose turn comes first */
#define COPIES     16000 /* copied jobs, divided equally among the lines */
#define ASKED_EACH 2000  /* asked-about jobs handled per step */
#define AGAIN_MAX  100   /* preempting plans per instant before time moves on */

/* What was copied of one line. */
struct source {
    bool has_more; /* jobs that were not copied */
    uint32_t n;    /* copies that still wait */
};

/* A waiting job, as it was when copied. */
struct waiting {
    uint32_t job, source;
    int32_t next_task; /* of an array; -1: not an array */
    bool noted;        /* the start to report has been recorded: later ones do not count */
};

struct forecast_run {
    struct source *sources;
    struct waiting *waiting; /* sorted by job */
    size_t n_waiting;
    bool short_of_copies; /* the copies of some line are used up */
    bool over;
    bool planned;    /* this instant is; jobs asked about get their reasons, some per step */
    bool settled;    /* nothing more ends; the remaining jobs asked about wait forever */
    int64_t wake_us; /* the earliest of this instant's plans */
    int n_again;     /* plans of this instant that preempted a job */
    struct planner *planner;
    struct fair *fair;
    struct queue *q;
    struct ledger *l;
    int64_t now_us;
    uint32_t next_id;
    struct ends ends;
    struct asked asked;
    struct expected_start *out;
    size_t n, most;
};

/* Copies. */

/* Copies what the planner reads. */
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
    to->stop_grace_ms = job->stop_grace_ms;
    to->requeue_asked = job->requeue_asked;
    to->order = job->order;
    to->submitted_us = job->submitted_us;
    to->lined_us = job->lined_us;
    to->joined_us = job->joined_us;
    to->req.begin_us = job->req.begin_us;
    to->begin_us = job->begin_us;
    to->blocked_since_us = job->blocked_since_us;
    to->limited_since_us = job->limited_since_us;
    to->first_since_us = job->first_since_us;
    to->span_ms = job->span_ms;
    to->file = job->file;
    to->array = job->array;
    to->task = job->task;
    if (job->tasks) {
        task_set_copy(&to->req.array, &job->tasks->pending);
        array_begin(to);
    }
    return to;
}

/* Tasks split off an array, running or waiting on their own, become tasks of the array's copy
 * again, whichever is copied first. */
static void
adopt_task(struct job *array, const struct job *task)
{
    array->tasks->total++;
    array_adopt(array, task);
}

static void
adopt_tasks(const struct forecast_run *w, const struct job *real, struct job *array)
{
    const struct tasks *t = real->tasks;
    for (int32_t i = 0; t && i < t->live; i++) {
        const struct job *task = queue_get(w->q, t->live_ids[i]);
        if (task)
            adopt_task(array, task);
    }
}

static void
copy_waiting(struct forecast_run *w, const struct job *real)
{
    struct job *copy = copy_job(real);
    struct job *array = copy->array ? queue_get(w->q, copy->array) : NULL;
    if (copy->tasks)
        adopt_tasks(w, real, copy);
    if (array && array->tasks)
        adopt_task(array, copy);
    queue_add(w->q, copy);
}

static int
compare_waiting(const void *a, const void *b)
{
    const struct waiting *x = a, *y = b;
    return x->job < y->job ? -1 : x->job > y->job;
}

/* NULL: the job was not waiting, or was not copied. */
static struct waiting *
find_waiting(const struct forecast_run *w, uint32_t job)
{
    const struct waiting key = {.job = job};
    return w->n_waiting == 0
               ? NULL
               : bsearch(&key, w->waiting, w->n_waiting, sizeof key, compare_waiting);
}

/* The first line in order among the users' next ones; advances that user to the following
 * line. */
static struct kind *
take_first(struct kind **next, size_t users)
{
    size_t first = 0;
    for (size_t i = 1; i < users; i++) {
        if (!next[first] ||
            (next[i] && kind_place_compare(&next[i]->place, &next[first]->place) < 0))
            first = i;
    }
    struct kind *k = next[first];
    next[first] = kind_user_next(k);
    return k;
}

/* Copies a line from its head, or the jobs that wait for a time. */
static void
copy_line(struct forecast_run *w, struct job *head, struct job *(*next)(struct job *),
          uint32_t source, size_t window)
{
    struct source *s = &w->sources[source];
    struct job *job = head;
    for (; job && s->n < window; job = next(job), s->n++) {
        w->waiting[w->n_waiting++] = (struct waiting){
            .job = job->id, .source = source, .next_task = job->tasks ? array_next(job) : -1};
        copy_waiting(w, job);
    }
    s->has_more = job != NULL;
}

/* Copies the line of a job that every plan examines, unless it is already copied. */
static void
copy_line_of(struct forecast_run *w, const struct queue *q, uint32_t id, uint32_t source,
             size_t window)
{
    const struct job *job = queue_get(q, id);
    if (job && job->kind && !queue_get(w->q, job->kind->head->id))
        copy_line(w, job->kind->head, kind_next, source, window);
}

static void
copy_lines(struct forecast_run *w, const struct queue *q)
{
    const struct job_list *watched = &w->planner->watched;
    size_t kinds = queue_n_kinds(q), n = kinds < LINES ? kinds : LINES;
    size_t users = queue_n_users(q);
    struct kind **next = xcalloc(users + 1, sizeof(struct kind *));
    for (size_t i = 0; i < users; i++)
        next[i] = kind_user_first(queue_user(q, i));
    size_t n_promises = w->planner->n_promises;
    size_t most = n + 2 + n_promises + watched->n; /* lines, and one for later jobs */
    w->sources = xcalloc(most, sizeof *w->sources);
    size_t window = COPIES / (n + 1);
    if (window > w->most)
        window = w->most;
    w->waiting = xcalloc(most * window, sizeof *w->waiting);
    for (size_t i = 0; i < n; i++)
        copy_line(w, take_first(next, users)->head, kind_next, (uint32_t)i, window);
    copy_line(w, queue_later(q), queue_later_next, (uint32_t)n++, window);
    copy_line_of(w, q, w->planner->reserved.job, (uint32_t)n++, window);
    for (size_t i = 0; i < n_promises; i++)
        copy_line_of(w, q, w->planner->promises[i].job, (uint32_t)n++, window);
    for (size_t i = 0; i < watched->n; i++)
        copy_line_of(w, q, watched->ids[i], (uint32_t)n++, window);
    free(next);
    if (w->n_waiting > 1)
        qsort(w->waiting, w->n_waiting, sizeof *w->waiting, compare_waiting);
}

static void
copy_active(struct forecast_run *w, const struct job *job, int64_t end_us)
{
    struct job *copy = copy_job(job);
    copy->run = xcalloc(1, sizeof *copy->run);
    if (job->run)
        *copy->run = *job->run;
    if (copy->run->started_us == 0)
        copy->run->started_us = w->now_us;
    queue_add(w->q, copy);
    if (end_us != NEVER)
        ends_push(&w->ends, (struct end){.at = end_us, .who = job->id});
}

static struct planner *
planner_clone(const struct planner *p, struct fair *fair)
{
    struct planner *to = xcalloc(1, sizeof *to);
    *to = *p;
    to->rules.depth = 0; /* the copies are few enough to examine all lines */
    planner_look_anew(to);
    to->fair = fair;
    to->balance = balance_clone(p->balance);
    to->watched = (struct job_list){0};
    for (size_t i = 0; i < p->watched.n; i++)
        lines_watch(to, p->watched.ids[i]);
    return to;
}

/* Copies running jobs, with the ends that the planner expects. */
static void
copy_running(struct forecast_run *w, const struct queue *q)
{
    struct plan none = PLAN_INIT;
    struct planning pl = {.planner = w->planner,
                          .q = (struct queue *)q, /* runs_make only reads */
                          .l = w->l,
                          .now_us = w->now_us,
                          .p = &none};
    runs_make(&pl);
    for (size_t i = 0; i < pl.n_runs; i++)
        copy_active(w, pl.runs[i].job, pl.runs[i].end_us);
    runs_free(&pl);
}

struct forecast_run *
forecast_run_begin(const struct planner *planner, const struct queue *q, const struct ledger *l,
                   int64_t now_us, size_t max_jobs)
{
    struct forecast_run *w = xcalloc(1, sizeof *w);
    *w = (struct forecast_run){
        .now_us = now_us, .most = max_jobs, .next_id = UINT32_MAX / 2, .wake_us = NEVER};
    w->fair = planner->fair ? fair_clone(planner->fair) : NULL;
    w->planner = planner_clone(planner, w->fair);
    w->q = queue_new();
    if (queue_tells_users_apart(q))
        queue_tell_users_apart(w->q);
    w->l = ledger_clone(l);
    w->out = xmalloc((max_jobs + 1) * sizeof *w->out);
    copy_running(w, q);
    copy_lines(w, q);
    return w;
}

void
forecast_run_add(struct forecast_run *w, const struct job *job)
{
    w->planner->rules.depth = PLAN_DEPTH; /* any number of them may be added */
    asked_add(&w->asked, job->id);
    queue_add(w->q, copy_job(job));
}

static void
run_free(struct forecast_run *w)
{
    planner_free(w->planner);
    fair_free(w->fair);
    queue_free(w->q);
    ledger_free(w->l);
    free(w->sources);
    free(w->waiting);
    ends_free(&w->ends);
    asked_free(&w->asked);
    free(w);
}

/* What happens. */

static void
note_start(struct forecast_run *w, struct waiting *x, int64_t at_us)
{
    if (!x->noted && w->n < w->most)
        w->out[w->n++] = (struct expected_start){x->job, at_us};
    x->noted = true;
}

/* The copy of a really waiting job has left its line. */
static void
left_line(struct forecast_run *w, uint32_t id)
{
    const struct waiting *x = find_waiting(w, id);
    struct source *s = x ? &w->sources[x->source] : NULL;
    if (s && --s->n == 0)
        w->short_of_copies |= s->has_more;
}

static struct job *
split_task(struct forecast_run *w, struct job *array, const struct decision *d)
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
note_array(struct forecast_run *w, const struct job *task, enum job_state from,
           enum job_state to)
{
    struct job *array = task->array ? queue_get(w->q, task->array) : NULL;
    if (!array || !array->tasks)
        return;
    array_note(array, task, from, to, 0);
    queue_refile(w->q, array);
}

static void
start(struct forecast_run *w, const struct decision *d)
{
    struct job *job = queue_get(w->q, d->job);
    struct waiting *x = find_waiting(w, d->job);
    asked_starts(&w->asked, d->job, w->now_us, &d->where);
    if (x && (d->task < 0 || d->task == x->next_task))
        note_start(w, x, w->now_us);
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
        ends_push(&w->ends,
                  (struct end){.at = w->now_us + job->span_ms * 1000, .who = job->id});
}

static void
charge(struct forecast_run *w, const struct job *job)
{
    const struct attempt *run = job->run;
    if (w->fair)
        fair_charge(w->fair, job->uid,
                    fair_part(w->l, &job->req.demand, run->gpus, run->n_gpus), run->started_us,
                    w->now_us);
}

static void
end(struct forecast_run *w, uint32_t id)
{
    struct job *job = queue_get(w->q, id);
    if (!job || !job_state_is_active(job->state))
        return; /* it was preempted */
    charge(w, job);
    ledger_release_ahead(w->l, id);
    w->planner->has_ended = true;
    note_array(w, job, JOB_RUNNING, JOB_COMPLETED);
    job_free(queue_remove(w->q, id));
}

/* Puts a preempted job back in its line. Its expected end no longer counts. */
static void
make_way(struct forecast_run *w, uint32_t id)
{
    struct job *job = queue_get(w->q, id);
    const struct waiting *x = find_waiting(w, id);
    if (x)
        w->sources[x->source].n++;
    charge(w, job);
    ledger_release_ahead(w->l, id);
    note_array(w, job, JOB_RUNNING, JOB_PENDING);
    ends_forget(&w->ends, id);
    job->state = JOB_PENDING;
    job->cancel_asked = false;
    job->requeue_asked = REQUEUE_NO;
    queue_refile(w->q, job);
}

static void
refuse(struct forecast_run *w, uint32_t id)
{
    left_line(w, id);
    job_free(queue_remove(w->q, id));
}

/* Makes one plan. True if there is more to plan at this instant: a job was preempted, or not
 * all lines were examined. */
static bool
plan_now(struct forecast_run *w)
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
    again = again && w->n_again++ < AGAIN_MAX; /* bound, so that the instant ends */
    if (again)
        planner_look_anew(w->planner);
    if (p.wake_us < w->wake_us)
        w->wake_us = p.wake_us;
    return again || p.more;
}

/* Moves time to the next end, or to when the planner wants to plan again. */
static bool
advance(struct forecast_run *w)
{
    int64_t next = ends_next(&w->ends);
    if (w->wake_us < next)
        next = w->wake_us;
    w->wake_us = NEVER;
    w->n_again = 0;
    planner_look_anew(w->planner);
    if (next == NEVER)
        return false;
    w->now_us = next > w->now_us ? next : w->now_us + SECOND_US;
    while (ends_next(&w->ends) <= w->now_us) {
        uint32_t id = ends_pop(&w->ends).who;
        if (id)
            end(w, id);
    }
    return true;
}

/* Records jobs that wait for something with no known end. */
static void
note_the_rest(struct forecast_run *w)
{
    for (size_t i = 0; i < w->n_waiting; i++) {
        const struct job *job = queue_get(w->q, w->waiting[i].job);
        if (job && job->state == JOB_PENDING)
            note_start(w, &w->waiting[i], NEVER);
    }
}

/* Whether the forecast has all that callers need. The jobs asked about first get their reasons
 * for waiting, even if the forecast stops at this instant. */
static bool
is_enough(const struct forecast_run *w)
{
    bool is_told = w->asked.n == 0 || w->asked.explained;
    return (is_told && (w->n >= w->most || w->short_of_copies)) || asked_is_answered(&w->asked);
}

/* The instant is finished; moves on to the next one. */
static void
go_on(struct forecast_run *w)
{
    bool goes_on = advance(w);
    bool none_waits = queue_n_kinds(w->q) == 0 && !queue_later(w->q);
    w->planned = false;
    w->over = none_waits || is_enough(w);
    if (goes_on)
        return;
    w->settled = !w->short_of_copies;
    w->over = w->short_of_copies;
    if (w->settled)
        note_the_rest(w);
}

bool
forecast_run_step(struct forecast_run *w)
{
    if (w->over)
        return false;
    if (w->settled) {
        w->over = !asked_settle(&w->asked, w->q, ASKED_EACH);
    } else if (!w->planned && plan_now(w)) {
        w->over = is_enough(w);
    } else {
        w->planned = true;
        if (!asked_explain(&w->asked, w->q, ASKED_EACH))
            go_on(w);
    }
    return !w->over;
}

bool
forecast_run_has_begun(const struct forecast_run *w)
{
    return w->asked.explained;
}

bool
forecast_run_shrink(struct forecast_run *w)
{
    struct asked *a = &w->asked;
    for (size_t k = 0; k < ASKED_EACH && a->n > 0; k++)
        job_free(queue_remove(w->q, a->v[--a->n].job));
    w->over = true;
    return a->n > 0;
}

const struct asked_start *
forecast_run_asked(struct forecast_run *w, uint32_t job)
{
    return asked_find(&w->asked, job);
}

size_t
forecast_run_end(struct forecast_run *w, struct expected_start **out)
{
    size_t n = w->n;
    *out = w->out;
    run_free(w);
    return n;
}

size_t
plan_forecast(const struct planner *planner, const struct queue *q, const struct ledger *l,
              int64_t now_us, size_t max_jobs, struct expected_start **out)
{
    struct forecast_run *w = forecast_run_begin(planner, q, l, now_us, max_jobs);
    while (forecast_run_step(w))
        ;
    return forecast_run_end(w, out);
}
