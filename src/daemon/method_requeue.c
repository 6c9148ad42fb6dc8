/* `requeue`: jobs run again. An active one is stopped first; one that has ended comes back from
 * the store into the table, with its number and its place. An array stands for all its tasks,
 * also those that were dropped before they left it; when it was chosen by state, or with
 * "failed", for its tasks in those states only. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/ids.h"
#include "base/jsonw.h"
#include "core/array.h"
#include "core/queue.h"
#include "daemon/admit.h"
#include "daemon/daemon.h"
#include "daemon/depend.h"
#include "daemon/estimate.h"
#include "daemon/jobs.h"
#include "daemon/methods.h"
#include "daemon/target.h"
#include "store/store.h"

struct again {
    struct daemon *daemon;
    const struct caller *caller;
    const char *by;
    bool hold;   /* what waits again is held from the first moment on */
    bool failed; /* only what has failed */
    struct ids touched;
    struct err last; /* why one could not be */
};

#define ANY_STATE UINT32_MAX

/* Ended without having done its work, though nobody called it off. */
#define FAILED_STATES                                                                          \
    (1u << JOB_FAILED | 1u << JOB_TIMEOUT | 1u << JOB_OUT_OF_MEMORY | 1u << JOB_PREEMPTED |    \
     1u << JOB_LOST)

static struct job *
take_back(struct daemon *d, uint32_t id, struct err *e)
{
    struct job *job = queue_get(d->queue, id);
    if (job)
        return job;
    job = store_job_load(d->store, id, e);
    if (!job)
        return NULL;
    estimate_enter(d, job);
    queue_add(d->queue, job);
    return job;
}

struct reopening {
    struct daemon *daemon;
    struct job *array;
};

static int
on_row(uint32_t id, int32_t task, enum job_state state, void *arg)
{
    const struct reopening *r = arg;
    const struct job *live = queue_get(r->daemon->queue, id);
    if (live)
        state = live->state; /* the store knows it as of the last commit */
    if (task_set_remove(&r->array->tasks->pending, task) && job_state_is_final(state))
        r->array->tasks->ended[state]++;
    return 0;
}

/* One that could not be requeued after all goes again. */
static void
put_back(struct daemon *d, struct job *job)
{
    if (!job_state_is_final(job->state) || job->unsaved)
        return;
    estimate_leave(d, job);
    job_free(queue_remove(d->queue, job->id));
}

/* In which state the tasks without a row ended: they were dropped together. JOB_PENDING: there
 * are none. `counts`: how many ended in each state, of all; `array` has those with rows. */
static enum job_state
dropped_state(const struct job *array, const int32_t *counts)
{
    for (int s = JOB_COMPLETED; s < JOB_STATES; s++)
        if (counts[s] > array->tasks->ended[s])
            return (enum job_state)s;
    return JOB_PENDING;
}

/* The books of an array that has ended, as its tasks' rows have them. Tasks without a row wait
 * again when the state that they were dropped in is one of `states`. */
static int
reopen(struct daemon *d, struct job *array, unsigned states, struct err *e)
{
    if (!job_state_is_final(array->state))
        return 0;
    struct reopening r = {d, array};
    int32_t exit_status = array->tasks->exit_status, counts[JOB_STATES];
    memcpy(counts, array->tasks->ended, sizeof counts);
    array_begin(array);
    if (store_tasks_walk(d->store, array->id, 0, ARRAY_MAX, on_row, &r, e))
        return -1;
    enum job_state dropped = dropped_state(array, counts);
    if (dropped != JOB_PENDING && !(states >> dropped & 1))
        array_drop(array, dropped);
    if (!array_all_completed(array))
        array->tasks->exit_status = exit_status;
    return 0;
}

/* The one job, which may be gone afterwards when this fails. */
static int
run_again(struct again *r, struct job *job)
{
    struct daemon *d = r->daemon;
    if (job_state_is_final(job->state) && depend_check(d, &job->req, &r->last)) {
        err_prefix(&r->last, "job %u cannot be requeued", job->id);
        put_back(d, job);
        return -1;
    }
    if (jobs_requeue(d, job, r->by, r->hold, &r->last)) {
        put_back(d, job);
        return -1;
    }
    if (job->state == JOB_PENDING)
        depend_enter(d, job, NULL);
    if (r->hold && job->state == JOB_PENDING)
        (void)jobs_hold(d, job, &r->last);
    ids_add_job(&r->touched, job);
    return 0;
}

static int
requeue_task(struct again *r, struct job *task)
{
    struct daemon *d = r->daemon;
    struct job *array = take_back(d, task->array, &r->last);
    if (array && job_state_is_final(array->state) &&
        (reopen(d, array, 0, &r->last) || run_again(r, array))) {
        put_back(d, task);
        return -1;
    }
    return run_again(r, task);
}

struct choosing {
    struct daemon *daemon;
    unsigned states;
    struct ids *ids;
};

static int
on_task(uint32_t id, int32_t task, enum job_state state, void *arg)
{
    (void)task;
    const struct choosing *c = arg;
    const struct job *live = queue_get(c->daemon->queue, id);
    if (c->states >> (live ? live->state : state) & 1)
        ids_add(c->ids, id);
    return 0;
}

/* Its tasks in one of these states. */
static int
requeue_array(struct again *r, struct job *array, unsigned states)
{
    struct daemon *d = r->daemon;
    struct ids tasks = {0};
    size_t before = r->touched.n;
    struct choosing choosing = {d, states, &tasks};
    int rc = store_tasks_walk(d->store, array->id, 0, ARRAY_MAX, on_task, &choosing, &r->last);
    if (rc == 0)
        rc = reopen(d, array, states, &r->last);
    bool none = rc == 0 && tasks.n == 0 && array_n_pending(array) == 0;
    if (none && states != ANY_STATE)
        rc = err_set(&r->last, ERR_FAILED, "job %u has no task to run again", array->id);
    if (rc == 0 && job_state_is_final(array->state))
        rc = run_again(r, array);
    else if (rc)
        put_back(d, array);
    for (size_t i = 0; i < tasks.n && rc == 0; i++) {
        struct job *task = take_back(d, tasks.v[i], &r->last);
        if (task && task->state != JOB_PENDING && task->state != JOB_HELD)
            run_again(r, task);
    }
    ids_free(&tasks);
    return rc || r->touched.n > before ? rc : -1;
}

static void
refuse_state(struct again *r, struct job *job)
{
    err_set(&r->last, ERR_FAILED, "job %u has not failed: it is %s", job->id,
            job_state_name(job->state));
    put_back(r->daemon, job);
}

/* Which of an array's tasks are meant; of a job without tasks, whether it is. */
static unsigned
wanted_states(const struct again *r, const struct select *s, const struct job *job)
{
    unsigned states;
    if (!select_is_by_state(s, job, &states))
        states = ANY_STATE;
    return r->failed ? states & FAILED_STATES : states;
}

static int
requeue_one(struct again *r, const struct select *s, uint32_t id, struct err *e)
{
    struct job *job = queue_get(r->daemon->queue, id);
    struct job *old = job ? NULL : store_job_load(r->daemon->store, id, e);
    int rc = job || old ? target_check_owner(r->caller, job ? job : old, e) : -1;
    if (rc == 0 && old)
        rc = admit_text(r->daemon, old->uid, request_text_bytes(&old->req), e);
    job_free(old);
    if (rc || !(job = take_back(r->daemon, id, e)))
        return -1;
    unsigned states = wanted_states(r, s, job);
    if (job->tasks)
        requeue_array(r, job, states);
    else if (!(states >> job->state & 1))
        refuse_state(r, job);
    else if (job->array)
        requeue_task(r, job);
    else
        run_again(r, job);
    return 0;
}

static int
on_ended(struct job *job, const char *const *uuids, void *arg)
{
    (void)uuids;
    ids_add(arg, job->id);
    return 0;
}

static int
requeue_all(struct again *r, const struct select *s, const json_t *params, struct err *e)
{
    struct daemon *d = r->daemon;
    struct ids ids = {0};
    auto_free struct job **live = NULL;
    bool active = json_is_true(json_object_get(params, "active"));
    int rc = active ? 0 : select_ended(d, s, 0, on_ended, &ids, e);
    size_t n = rc ? 0 : select_live(d, s, &live);
    for (size_t i = 0; i < n; i++)
        ids_add(&ids, live[i]->id);
    if (rc == 0 && (daemon_accepts_work(d, e) ||
                    admit_pending(d, r->caller->uid, (int64_t)(ids.n - n), e)))
        rc = -1;
    if (ids.n) /* so that those that wait for others find them waiting */
        qsort(ids.v, ids.n, sizeof *ids.v, ids_compare);
    for (size_t i = 0; i < ids.n && rc == 0; i++)
        rc = requeue_one(r, s, ids.v[i], e);
    if (rc == 0 && ids.n == 0)
        rc = select_none(params, e);
    else if (rc == 0 && r->touched.n == 0) {
        *e = r->last;
        rc = -1;
    }
    ids_free(&ids);
    return rc;
}

int
method_requeue(struct daemon *d, struct caller *c, json_t *params, struct jsonw *out,
               struct err *e)
{
    struct again r = {.daemon = d,
                      .caller = c,
                      .by = daemon_user_name(c->uid),
                      .hold = json_is_true(json_object_get(params, "hold")),
                      .failed = json_is_true(json_object_get(params, "failed"))};
    struct select s = {0};
    int rc = target_read(d, c, params, &s, e);
    target_mine(c, &s);
    if (rc == 0)
        rc = requeue_all(&r, &s, params, e);
    if (rc == 0) {
        jsonw_object(out);
        ids_write(out, "ids", &r.touched);
        jsonw_end_object(out);
    }
    ids_free(&r.touched);
    select_free(&s);
    return rc;
}
