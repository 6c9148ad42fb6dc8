/* Rows of the workload as jobs of the queue: their submission, and what their ends mean for
 * arrays and dependents. The counterpart of src/daemon/state/job_facts.c, without a store. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/queue/array.h"
#include "core/queue/deps.h"
#include "core/queue/queue.h"
#include "sim/live_sim_priv.h"

void
live_jobs_init(struct live *live)
{
    const struct workload *w = live->w;
    live->deps = deps_new();
    live->next_id = (uint32_t)w->n + 1;
    live->first_rows = xcalloc(w->n_requests + 1, sizeof *live->first_rows);
    live->whole_states = xcalloc(w->n_requests + 1, 1);
    live->states = xcalloc(w->n + 1, 1);
    live->promised_us = xcalloc(w->n + 1, sizeof *live->promised_us);
    for (size_t i = w->n; i-- > 0;) {
        if (w->jobs[i].request)
            live->first_rows[w->jobs[i].request - 1] = (uint32_t)i;
    }
}

void
live_jobs_free(struct live *live)
{
    deps_free(live->deps);
    free(live->first_rows);
    free(live->whole_states);
    free(live->states);
    free(live->promised_us);
    free(live->task_rows);
}

uint32_t
live_row(const struct live *live, const struct job *job)
{
    return job->id <= live->w->n ? job->id - 1 : live->task_rows[job->id - live->w->n - 1];
}

/* Ends. */

static bool
has_ended(void *arg, uint32_t id, int32_t task, enum job_state *out)
{
    const struct live *live = arg;
    const struct sim_job *rows = live->w->jobs;
    uint32_t row = id - 1;
    if (task < 0) {
        *out = (enum job_state)live->whole_states[rows[row].request - 1];
        return *out != 0;
    }
    while (row < live->w->n && rows[row].request == rows[id - 1].request &&
           rows[row].task != task)
        row++;
    *out = (enum job_state)live->states[row];
    return row < live->w->n && *out != 0;
}

static void
on_dependent(void *arg, uint32_t id, bool met, const char *why)
{
    struct live *live = arg;
    struct job *job = queue_get(live->q, id);
    if (!job)
        return;
    if (!met)
        live_apply(live, job, &(struct job_event){.type = JOB_EV_DEP_FAILED, .text = why});
    else if (deps_met(job))
        queue_refile(live->q, job);
}

/* Reports the task's change of state to its array. */
static void
tell_array(struct live *live, const struct job *task, enum job_state from)
{
    struct job *array = queue_get(live->q, task->array);
    enum job_state whole;
    array_note(array, task, from, task->state, 0);
    queue_refile(live->q, array);
    if (array_is_over(array, &whole))
        live_apply(live, array, &(struct job_event){.type = JOB_EV_OVER});
}

static void
retire(struct live *live, struct job *job)
{
    uint32_t request = live->w->jobs[live_row(live, job)].request;
    uint32_t id = job->id, array = job->array;
    int32_t task = job->task;
    enum job_state state = job->state;
    live->states[live_row(live, job)] = (uint8_t)state;
    if (request && !array)
        live->whole_states[request - 1] = (uint8_t)state;
    deps_leave(live->deps, job);
    job_free(queue_remove(live->q, id));
    if (request)
        deps_ended(live->deps, id, array, task, state, on_dependent, live);
}

void
live_apply(struct live *live, struct job *job, struct job_event *ev)
{
    const char *why = NULL;
    enum job_state from = job->state;
    ev->wall_us = live_wall(live->now);
    if (job_apply(job, ev, &why) != JOB_NEXT)
        err_abort("job %u: event %d is refused: %s", job->id, (int)ev->type, why ? why : "?");
    queue_refile(live->q, job);
    if (job->array)
        tell_array(live, job, from);
    if (job_state_is_final(job->state))
        retire(live, job);
}

/* Arrivals. */

/* The demand of a row without a request. A declared 0 would mean "the whole card". */
static void
demand_of_shape(const struct shape *s, struct demand *d)
{
    d->gpus = s->n;
    d->vram_mib = s->vram_mib > 0 || s->alone ? s->vram_mib : 1;
    d->exclusive = s->alone && s->vram_mib > 0;
    d->devices = s->allowed == UINT64_MAX ? 0 : s->allowed;
}

#define THE_FILE                                                                               \
    1 /* jobs with requests are of one file, whose order of lines the daemon keeps */

/* An estimate that the job will exceed cannot be its limit, so it is only an estimate. */
static void
set_span(struct job *job, const struct sim_job *row)
{
    job->span_ms = row->estimate * 1000;
    if (row->estimate >= row->duration)
        job->req.limit_ms = job->span_ms;
    else
        job->estimate_ms = job->span_ms;
}

/* Until here, dependencies name jobs of the file by the number of their request. */
static void
take_request(const struct live *live, const struct request *r, struct job *job)
{
    request_free(&job->req);
    request_copy(&job->req, r);
    for (int i = 0; i < job->req.n_deps; i++)
        job->req.deps[i].job = live->first_rows[job->req.deps[i].job - 1] + 1;
    if (r->begin_us > live->w->zero_us)
        job->begin_us = r->begin_us - live->w->zero_us + live_wall(0);
    if (r->array.n)
        array_begin(job);
}

static void
wait_for_others(struct live *live, struct job *job)
{
    auto_buf struct buf why = BUF_INIT;
    bool is_hopeful = deps_enter(live->deps, job, has_ended, live, &why);
    queue_add(live->q, job);
    if (!is_hopeful)
        live_apply(live, job,
                   &(struct job_event){.type = JOB_EV_DEP_FAILED, .text = buf_str(&why)});
}

void
live_arrive(struct live *live)
{
    const struct workload *w = live->w;
    const struct sim_job *row = &w->jobs[live->arrived++];
    struct job *job = job_new();
    job->id = (uint32_t)live->arrived;
    job->uid = row->user;
    job->order = job->id;
    job->submitted_us = live_wall(live->now);
    live->out.events++;
    job->file = row->request ? THE_FILE : 0;
    if (row->request)
        take_request(live, &w->requests[row->request - 1], job);
    else
        demand_of_shape(&w->shapes[row->shape], &job->req.demand);
    job->req.priority = row->priority;
    job->declared_mib = job->req.demand.vram_mib;
    set_span(job, row);
    while (job->tasks && live->arrived < w->n &&
           w->jobs[live->arrived].request == row->request) {
        live->arrived++;
        live->out.events++;
    }
    planner_submitted(live->planner, &job->req.demand, job->tasks ? array_n_pending(job) : 1,
                      live_wall(live->now));
    wait_for_others(live, job);
}

struct job *
live_split(struct live *live, struct job *array, int32_t task, uint32_t id)
{
    size_t at = id - live->w->n - 1;
    uint32_t row = array->id - 1;
    while (live->w->jobs[row].task != task)
        row++;
    if (at >= live->cap_task_rows) {
        live->cap_task_rows = (at + 1) * 2;
        live->task_rows =
            xrealloc(live->task_rows, live->cap_task_rows * sizeof *live->task_rows);
    }
    live->task_rows[at] = row;
    struct job *job = array_split(array, task, id);
    queue_add(live->q, job);
    queue_refile(live->q, array);
    return job;
}
