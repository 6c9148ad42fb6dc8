/* Job arrays in the daemon: see array_turns.h. Called by starts.c, job_facts.c (other changes
 * of tasks), selection_walk.c (a user names single tasks) and recover.c. The array's row is
 * written in the same commit as its task's, so the two never disagree. */
#include "daemon/state/array_turns.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "core/queue/array.h"
#include "core/queue/endings.h"
#include "core/queue/queue.h"
#include "daemon/state/depend_turns.h"
#include "daemon/state/estimates.h"
#include "daemon/state/job_facts.h"
#include "daemon/state/state.h"

struct job *
arrays_split(struct state *s, struct job *array, int32_t task, uint32_t id)
{
    struct job *job = array_split(array, task, id ? id : s->past->next_job_id(s->past->arg));
    queue_refile(s->queue, array);
    state_save(s, array, SAVE_JOB);
    estimate_enter(s, job);
    queue_add(s->queue, job);
    state_save(s, job, SAVE_INSERT);
    if (job->parked & PARK_DEPENDENCY)
        depend_join(s, job);
    return job;
}

struct job **
arrays_live_tasks(const struct state *s, const struct job *array, size_t *n)
{
    const struct tasks *t = array->tasks;
    struct job **jobs = xcalloc((size_t)t->live + 1, sizeof(struct job *));
    *n = 0;
    for (int32_t i = 0; i < t->live; i++) {
        struct job *job = queue_get(s->queue, t->live_ids[i]);
        if (job)
            jobs[(*n)++] = job;
    }
    return jobs;
}

/* Parks or unparks the pending tasks that are jobs of their own, like the rest of
 * the array. */
static void
park_tasks(struct state *s, const struct job *array)
{
    size_t n;
    auto_free struct job **jobs = arrays_live_tasks(s, array, &n);
    for (size_t i = 0; i < n; i++)
        if (array_park_task(array, jobs[i]))
            queue_refile(s->queue, jobs[i]);
}

static void
end_if_over(struct state *s, struct job *array)
{
    enum job_state final;
    if (!job_state_is_final(array->state) && array_is_over(array, &final))
        jobs_array_over(s, array);
}

void
arrays_moved(struct state *s, struct job *task, enum job_state from)
{
    struct job *array = task->array ? queue_get(s->queue, task->array) : NULL;
    if (!array || !array->tasks)
        return;
    uint8_t parked = array->parked;
    struct job was = *task; /* a requeued task still has the attempt that it ended with */
    was.state = job_state_is_final(from) ? from : task->state;
    array_note(array, task, from, task->state, job_exit_status(&was));
    queue_refile(s->queue, array);
    state_save(s, array, SAVE_JOB);
    if (array->parked != parked)
        park_tasks(s, array);
    end_if_over(s, array);
}

void
arrays_ended_before(struct state *s, const struct job *task, const struct job *stored)
{
    struct job *array = queue_get(s->queue, task->array);
    if (!array || !array->tasks)
        return;
    array_note(array, task, task->state, stored->state, job_exit_status(stored));
    queue_refile(s->queue, array);
    park_tasks(s, array);
}

void
arrays_returned(struct state *s, uint32_t id)
{
    struct job *array = queue_get(s->queue, id);
    if (!array || !array->tasks || array->tasks->returning == 0)
        return;
    array->tasks->returning--;
    end_if_over(s, array);
}

bool
arrays_keep_back(struct state *s, struct job *task)
{
    struct job *array = task->array ? queue_get(s->queue, task->array) : NULL;
    if (!array || !array->tasks || !array_is_full(array))
        return false;
    if (array_park_task(array, task))
        queue_refile(s->queue, task);
    return true;
}

void
arrays_unsplit(struct state *s, struct job *task)
{
    struct job *array = queue_get(s->queue, task->array);
    if (!array || !array->tasks)
        return;
    array_unsplit(array, task);
    queue_refile(s->queue, array);
    park_tasks(s, array);
}

void
arrays_recover(struct state *s, struct job *job)
{
    struct job *array = job->array ? queue_get(s->queue, job->array) : NULL;
    if (!array)
        return;
    if (!array->tasks) {
        log_error("job=%u event=recovery its array %u has no books", job->id, array->id);
        return;
    }
    array_adopt(array, job);
    queue_refile(s->queue, array);
    park_tasks(s, array);
}

/* The cancel was committed in pieces, and the daemon died between two of them: cancels the
 * remaining tasks. */
static void
go_on_cancelling(struct state *s, struct job *array)
{
    size_t n, n_left = 0;
    auto_free struct job **tasks = arrays_live_tasks(s, array, &n);
    const char *by = array->cancelled_by;
    for (size_t i = 0; i < n; i++) {
        if (tasks[i]->cancel_asked)
            continue;
        jobs_set_stop_grace(s, tasks[i], array->stop_grace_ms);
        jobs_cancel(s, tasks[i], by ? by : s->around->user_name(array->uid));
        n_left++;
    }
    if (n_left > 0)
        log_info("job=%u event=recovery %zu of its tasks are cancelled, as it was", array->id,
                 n_left);
}

void
arrays_recovered(struct state *s)
{
    size_t n;
    auto_free struct job **jobs =
        queue_list_by_id(s->queue, 1U << JOB_PENDING | 1U << JOB_HELD, &n);
    for (size_t i = 0; i < n; i++) {
        if (!jobs[i]->tasks)
            continue;
        if (jobs[i]->cancel_asked)
            go_on_cancelling(s, jobs[i]);
        end_if_over(s, jobs[i]);
    }
}
