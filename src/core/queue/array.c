/* The state of arrays: which tasks are still in the array, how many are split off and running,
 * and how ended tasks came out. job.c calls it for events of the whole array; the daemon and
 * the simulator call it for events of a task. The life of a single task is in job.c. */
#include "core/queue/array.h"

#include <stdlib.h>
#include <string.h>

#include "base/counted_text.h"
#include "base/err.h"
#include "core/queue/endings.h"

static char *
text_copy(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

void
array_begin(struct job *array)
{
    struct tasks *t = xcalloc(1, sizeof *t);
    array_free(array->tasks);
    task_set_copy(&t->pending, &array->req.array);
    t->total = (int32_t)task_set_count(&t->pending);
    array->tasks = t;
}

void
array_free(struct tasks *t)
{
    if (!t)
        return;
    task_set_free(&t->pending);
    free(t->statuses);
    free(t->live_ids);
    free(t);
}

/* Subtracts what is gone, because counting a set with many holes is slow. */
int32_t
array_n_pending(const struct job *array)
{
    const struct tasks *t = array->tasks;
    int32_t n = t->total - t->live;
    for (int s = JOB_COMPLETED; s < JOB_STATES; s++)
        n -= t->ended[s];
    return n;
}

int32_t
array_next(const struct job *array)
{
    const struct task_set *pending = &array->tasks->pending;
    return pending->n ? pending->ranges[0].first : -1;
}

static void
live_add(struct tasks *t, uint32_t id)
{
    t->live_ids = xgrow(t->live_ids, t->live, &t->cap_live, sizeof *t->live_ids);
    t->live_ids[t->live++] = id;
}

static void
live_drop(const struct job *array, uint32_t id)
{
    struct tasks *t = array->tasks;
    for (int32_t i = 0; i < t->live; i++) {
        if (t->live_ids[i] != id)
            continue;
        t->live_ids[i] = t->live_ids[--t->live];
        return;
    }
    err_abort("job %u is not a live task of array %u", id, array->id);
}

static void
mark_full(struct job *array)
{
    if (array_is_full(array))
        array->parked |= PARK_ARRAY_LIMIT;
    else
        array->parked &= (uint8_t)~PARK_ARRAY_LIMIT;
}

struct job *
array_split(struct job *array, int32_t task, uint32_t id)
{
    struct job *job = job_new();
    if (!array->tasks || !task_set_remove(&array->tasks->pending, task))
        err_abort("task %d is not pending in array %u", task, array->id);
    request_free(&job->req);
    request_copy(&job->req, &array->req);
    task_set_free(&job->req.array);
    job->id = id;
    job->array = array->id;
    job->task = task;
    job->uid = array->uid;
    job->state = array->state;
    job->admin_held = array->admin_held;
    job->declared_mib = array->declared_mib;
    job->order = array->order;
    job->submitted_us = array->submitted_us;
    job->begin_us = array->begin_us;
    job->lined_us = array->lined_us;
    job->joined_us = array->joined_us;
    job->blocked_since_us = array->blocked_since_us;
    job->limited_since_us = array->limited_since_us;
    job->span_ms = array->span_ms;
    job->estimate_ms = array->estimate_ms;
    job->fingerprint = text_copy(array->fingerprint);
    job->auto_runs = array->auto_runs;
    job->parked = array->parked;
    job->deps_unmet = array->deps_unmet;
    job->file = array->file;
    job->line = array->line;
    job->env = array->env;
    job->env_bytes = array->env_bytes;
    job->cwd = shared_ref(array->cwd);
    job->rlimits = shared_ref(array->rlimits);
    job->user = shared_ref(array->user);
    job->umask_bits = array->umask_bits;
    live_add(array->tasks, id);
    return job;
}

void
array_unsplit(struct job *array, const struct job *task)
{
    live_drop(array, task->id);
    task_set_add(&array->tasks->pending, task->task);
    mark_full(array);
}

void
array_adopt(struct job *array, const struct job *task)
{
    live_add(array->tasks, task->id);
    array->tasks->active += job_state_is_active(task->state);
    mark_full(array);
}

int32_t
array_exit_status(const struct tasks *t)
{
    return t->n_statuses ? t->statuses[0].status : 0;
}

void
array_take_statuses(struct tasks *t, struct tasks *from)
{
    free(t->statuses);
    t->statuses = from->statuses;
    t->n_statuses = from->n_statuses;
    t->cap_statuses = from->cap_statuses;
    from->statuses = NULL;
    from->n_statuses = 0;
    from->cap_statuses = 0;
}

int32_t
array_dropped_status(enum job_state final)
{
    return final == JOB_CANCELLED ? STATUS_CANCELLED : 1;
}

static void
insert_status(struct tasks *t, int at, int32_t status)
{
    t->statuses = xgrow(t->statuses, t->n_statuses, &t->cap_statuses, sizeof *t->statuses);
    memmove(&t->statuses[at + 1], &t->statuses[at],
            (size_t)(t->n_statuses++ - at) * sizeof *t->statuses);
    t->statuses[at] = (struct status_count){.status = status};
}

/* There are usually few distinct statuses. One that is missing was counted by an older daemon,
 * which kept only the highest. */
void
array_count_status(struct tasks *t, int32_t status, int32_t n)
{
    int i = 0;
    if (status <= 0 || n == 0 || (n < 0 && t->n_statuses == 0))
        return;
    while (i < t->n_statuses && t->statuses[i].status > status)
        i++;
    bool is_there = i < t->n_statuses && t->statuses[i].status == status;
    if (!is_there && n > 0)
        insert_status(t, i, status);
    else if (!is_there)
        i = 0;
    t->statuses[i].n += n;
    if (t->statuses[i].n <= 0)
        memmove(&t->statuses[i], &t->statuses[i + 1],
                (size_t)(--t->n_statuses - i) * sizeof *t->statuses);
}

static bool
all_completed(const struct tasks *t)
{
    for (int s = JOB_COMPLETED + 1; s < JOB_STATES; s++)
        if (t->ended[s])
            return false;
    return true;
}

void
array_note(struct job *array, const struct job *task, enum job_state from, enum job_state to,
           int exit_status)
{
    struct tasks *t = array->tasks;
    if (job_state_is_final(from) && !job_state_is_final(to)) {
        t->ended[from]--;
        live_add(t, task->id);
        array_count_status(t, exit_status, -1);
        if (all_completed(t))
            t->n_statuses = 0;
    }
    t->active += job_state_is_active(to) - job_state_is_active(from);
    if (job_state_is_final(to) && !job_state_is_final(from)) {
        t->ended[to]++;
        live_drop(array, task->id);
        array_count_status(t, exit_status, 1);
    }
    mark_full(array);
}

bool
array_is_full(const struct job *array)
{
    return array->req.array_max > 0 && array->tasks->active >= array->req.array_max;
}

bool
array_park_task(const struct job *array, struct job *task)
{
    uint8_t before = task->parked;
    if (array_is_full(array) && !job_state_is_active(task->state))
        task->parked |= PARK_ARRAY_LIMIT;
    else
        task->parked &= (uint8_t)~PARK_ARRAY_LIMIT;
    return task->parked != before;
}

void
array_drop(struct job *array, enum job_state final)
{
    struct tasks *t = array->tasks;
    int32_t n = array_n_pending(array);
    array_count_status(t, array_dropped_status(final), n);
    t->ended[final] += n;
    task_set_free(&t->pending);
}

bool
array_is_over(const struct job *array, enum job_state *out)
{
    /* Ordered by what a person would want to know first. */
    static const enum job_state grave[] = {
        JOB_LOST,       JOB_FAILED,    JOB_OUT_OF_MEMORY, JOB_TIMEOUT,
        JOB_INFEASIBLE, JOB_CANCELLED, JOB_PREEMPTED,
    };
    const struct tasks *t = array->tasks;
    if (t->pending.n || t->live || t->returning)
        return false;
    *out = JOB_COMPLETED;
    for (size_t i = 0; i < sizeof grave / sizeof grave[0]; i++) {
        if (t->ended[grave[i]] > 0) {
            *out = grave[i];
            break;
        }
    }
    return true;
}
