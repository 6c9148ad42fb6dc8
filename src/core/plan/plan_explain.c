/* Why a job waits, from its own state and from what the last pass recorded for its line.
 * Called by the daemon for listings, events and explanations. */
#include "core/plan/plan.h"
#include "core/queue/array.h"
#include "core/queue/queue.h"
#include "core/queue/singles.h"

/* False: the job has ended. One that is no longer in the table ended as required: otherwise
 * the dependent job would have ended with it. */
static bool
is_awaited(const struct queue *q, const struct dep *dep, struct called *who)
{
    const struct job *job = queue_get(q, dep->job);
    *who = (struct called){.id = dep->job};
    if (!job || job_state_is_final(job->state) || dep->task < 0)
        return job && !job_state_is_final(job->state);
    bool waits = job->tasks && task_set_has(&job->tasks->pending, dep->task);
    const struct job *task = waits ? NULL : queue_task(q, job, dep->task);
    *who =
        (struct called){.id = task ? task->id : dep->job, .array = dep->job, .task = dep->task};
    return waits || task;
}

static void
explain_dependency(const struct queue *q, const struct job *job, struct blocked *out)
{
    out->reason = REASON_DEPENDENCY;
    out->waits_more = job->deps_unmet - 1;
    for (int32_t i = 0; i < job->req.n_deps; i++) {
        if (!is_awaited(q, &job->req.deps[i], &out->waits_for))
            continue;
        out->waits_how = (uint8_t)job->req.deps[i].type;
        return;
    }
}

static void
explain_line(const struct job *job, struct blocked *out)
{
    *out = job->kind->blocked;
    if (out->reason == REASON_NONE)
        out->reason = REASON_PRIORITY;
    if (out->waits_for.id == job->id) /* the job ahead waits for its sake */
        *out = (struct blocked){.reason = REASON_PRIORITY, .gpu = -1};
    if (job->kind->head != job)
        out->ahead.id = job->kind->head->id;
}

static void
call(const struct queue *q, struct called *who)
{
    const struct job *job = who->id ? queue_get(q, who->id) : NULL;
    if (job && job->array)
        *who = (struct called){.id = job->id, .array = job->array, .task = job->task};
}

/* Fills in the display names of the jobs that the reason mentions. */
static void
call_all(const struct queue *q, struct blocked *why)
{
    for (int i = 0; i < BLOCKED_HOLDERS; i++)
        call(q, &why->holders[i]);
    for (int i = 0; i < BLOCKED_ENDS; i++)
        call(q, &why->ends[i]);
    call(q, &why->ahead);
    call(q, &why->waits_for);
}

void
plan_explain(const struct queue *q, const struct job *job, struct blocked *out)
{
    *out = (struct blocked){.gpu = -1};
    if (job->state == JOB_HELD) {
        out->reason = REASON_HELD;
        out->limit = job->admin_held;
    } else if (job->state != JOB_PENDING || (job->tasks && array_next(job) < 0)) {
        return; /* no task of it waits */
    } else if (job->parked & PARK_DEPENDENCY) {
        explain_dependency(q, job, out);
    } else if (job->parked & PARK_SINGLETON) {
        const struct job *before = singles_before(job);
        out->reason = REASON_DEPENDENCY;
        out->waits_for.id = before ? before->id : 0;
        out->waits_single = true;
    } else if (job->parked & PARK_ARRAY_LIMIT) {
        out->reason = REASON_ARRAY_LIMIT;
        out->limit = job->req.array_max;
    } else if (job->kind) {
        explain_line(job, out);
    } else {
        out->reason = REASON_BEGIN_TIME;
        out->until_us = job->begin_us;
        out->failed = job->begin_us != job->req.begin_us ? job->attempts : 0;
    }
    call_all(q, out);
}

/* Whether room kept for the other job is out of this job's reach; a higher priority overrides
 * that. */
static bool
is_kept_from(const struct queue *q, const struct job *job, uint32_t other, uint64_t cards,
             const struct blocked *why)
{
    const struct job *first = other ? queue_get(q, other) : NULL;
    return first && first != job && cards >> why->gpu & 1 &&
           first->req.priority >= job->req.priority;
}

/* Names a promise to another job on the GPU that this job waits for; false: there is none. */
static bool
explain_promised(const struct queue *q, const struct planner *p, const struct job *job,
                 struct blocked *why)
{
    size_t n;
    const struct promise *list = planner_promises(p, &n);
    for (size_t i = 0; i < n; i++) {
        if (!is_kept_from(q, job, list[i].job, list[i].cards, why))
            continue;
        why->waits_for.id = list[i].job;
        why->until_us = list[i].at_us;
        why->until_firm = true;
        return true;
    }
    return false;
}

void
plan_explain_reserved(const struct queue *q, const struct planner *p, const struct job *job,
                      struct blocked *why)
{
    const struct reservation *r = planner_reservation(p);
    if (why->gpu < 0 || why->waits_for.id)
        return;
    if (r->lasting && is_kept_from(q, job, r->job, r->cards, why)) {
        why->waits_for.id = r->job;
        why->until_us = r->at_us;
    } else if (!explain_promised(q, p, job, why)) {
        return;
    }
    call(q, &why->waits_for);
}

void
plan_explain_text(const struct queue *q, const struct job *job, struct buf *out)
{
    struct blocked why;
    plan_explain(q, job, &why);
    blocked_text(&why, &job->req.demand, out);
    blocked_text_ahead(&why, out);
}
