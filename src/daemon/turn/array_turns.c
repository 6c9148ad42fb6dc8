/* Arrays in the daemon: see array_turns.h. Called by turn.c (starts), job_changes.c (whatever
 * else happens to tasks), selection_walk.c (a person singles one out) and recover.c. The
 * array's row is written in the commit that writes its task's, so the two never disagree. */
#include "daemon/turn/array_turns.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "core/queue/array.h"
#include "core/queue/endings.h"
#include "core/queue/queue.h"
#include "daemon/daemon.h"
#include "daemon/turn/depend_turns.h"
#include "daemon/turn/estimates.h"
#include "daemon/turn/job_changes.h"
#include "daemon/turn/turn.h"
#include "store/store.h"

struct job *
arrays_split(struct daemon *d, struct job *array, int32_t task, uint32_t id)
{
    struct job *job = array_split(array, task, id ? id : store_next_job_id(d->store));
    queue_refile(d->queue, array);
    turn_save(d, array, SAVE_JOB);
    estimate_enter(d, job);
    queue_add(d->queue, job);
    turn_save(d, job, SAVE_INSERT);
    if (job->parked & PARK_DEPENDENCY)
        depend_join(d, job);
    return job;
}

struct job **
arrays_live_tasks(const struct daemon *d, const struct job *array, size_t *n)
{
    const struct tasks *t = array->tasks;
    struct job **jobs = xcalloc((size_t)t->live + 1, sizeof(struct job *));
    *n = 0;
    for (int32_t i = 0; i < t->live; i++) {
        struct job *job = queue_get(d->queue, t->live_ids[i]);
        if (job)
            jobs[(*n)++] = job;
    }
    return jobs;
}

struct job *
arrays_find_task(const struct daemon *d, const struct job *array, int32_t task)
{
    const struct tasks *t = array->tasks;
    for (int32_t i = 0; t && i < t->live; i++) {
        struct job *job = queue_get(d->queue, t->live_ids[i]);
        if (job && job->task == task)
            return job;
    }
    return NULL;
}

/* Those that wait in their own name are parked and freed with the rest. */
static void
park_tasks(struct daemon *d, const struct job *array)
{
    size_t n;
    auto_free struct job **jobs = arrays_live_tasks(d, array, &n);
    for (size_t i = 0; i < n; i++)
        if (array_park_task(array, jobs[i]))
            queue_refile(d->queue, jobs[i]);
}

static void
end_if_over(struct daemon *d, struct job *array)
{
    enum job_state final;
    if (!job_state_is_final(array->state) && array_is_over(array, &final))
        jobs_array_over(d, array);
}

void
arrays_moved(struct daemon *d, struct job *task, enum job_state from)
{
    struct job *array = task->array ? queue_get(d->queue, task->array) : NULL;
    if (!array || !array->tasks)
        return;
    uint8_t parked = array->parked;
    array_note(array, task, from, task->state, job_exit_status(task));
    queue_refile(d->queue, array);
    turn_save(d, array, SAVE_JOB);
    if (array->parked != parked)
        park_tasks(d, array);
    end_if_over(d, array);
}

void
arrays_returned(struct daemon *d, uint32_t id)
{
    struct job *array = d->leaving ? NULL : queue_get(d->queue, id);
    if (!array || !array->tasks || array->tasks->returning == 0)
        return;
    array->tasks->returning--;
    end_if_over(d, array);
}

bool
arrays_keep_back(struct daemon *d, struct job *task)
{
    struct job *array = task->array ? queue_get(d->queue, task->array) : NULL;
    if (!array || !array->tasks || !array_is_full(array))
        return false;
    if (array_park_task(array, task))
        queue_refile(d->queue, task);
    return true;
}

void
arrays_unsplit(struct daemon *d, struct job *task)
{
    struct job *array = queue_get(d->queue, task->array);
    if (!array || !array->tasks)
        return;
    array_unsplit(array, task);
    queue_refile(d->queue, array);
    park_tasks(d, array);
}

void
arrays_recover(struct daemon *d, struct job *job)
{
    struct job *array = job->array ? queue_get(d->queue, job->array) : NULL;
    if (!array)
        return;
    if (!array->tasks) {
        log_error("job=%u event=recovery its array %u has no books", job->id, array->id);
        return;
    }
    array_adopt(array, job);
    queue_refile(d->queue, array);
    park_tasks(d, array);
}

void
arrays_recovered(struct daemon *d)
{
    size_t n;
    auto_free struct job **jobs =
        queue_list_by_id(d->queue, 1u << JOB_PENDING | 1u << JOB_HELD, &n);
    for (size_t i = 0; i < n; i++)
        if (jobs[i]->tasks)
            end_if_over(d, jobs[i]);
}
