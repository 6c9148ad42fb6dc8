/* `requeue`: runs jobs again. An active job is stopped first; an ended one is loaded from the
 * store into the queue with its number and its place. An array stands for all its tasks,
 * including those dropped before they left it; if it was selected by state, or with "failed",
 * only for its tasks in those states.
 *
 * The work is done in pieces (long_work.h): which jobs are selected, and whether all of that
 * is allowed, is determined before anything is changed. An array whose tasks come back in
 * several pieces, named by the array or one by one, does not end between the pieces, even if
 * all tasks that are back have ended (core/queue/array.h, returning). */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "core/queue/array.h"
#include "core/queue/queue.h"
#include "daemon/common/instance.h"
#include "daemon/common/user_names.h"
#include "daemon/request/admit.h"
#include "daemon/request/requeue_order.h"
#include "daemon/request/selection_walk.h"
#include "daemon/rpc/long_work.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/rpc.h"
#include "daemon/state/array_turns.h"
#include "daemon/state/changes.h"
#include "daemon/state/depend_turns.h"
#include "daemon/state/estimates.h"
#include "daemon/state/job_facts.h"
#include "store/store.h"

#define ROWS_EACH   200 /* rows of an array's tasks; they are read instead of a job */
#define CHANGE_EACH 250 /* jobs in one commit: about 20 ms */

#define ANY_STATE UINT32_MAX

/* One row of an array's tasks. */
struct row {
    uint32_t id;
    int32_t task;
    enum job_state state;
};

/* How many jobs of a user come back, as far as known before anything is done; tasks of arrays
 * are not known yet. */
struct returning {
    uint32_t uid;
    int64_t n;
};

/* The rows of an array's tasks are read in pieces before anything is done to the array: for
 * 100,000 tasks this takes a quarter of a second. */
struct look {
    uint32_t array; /* 0: none */
    int32_t next;   /* the first task not looked up yet */
    bool done;
    int64_t ended_us; /* of the array when the look began; 0: it had not ended */
    struct row *rows; /* owned */
    size_t n, cap, n_piece;
};

struct again {
    struct rpc *rpc;
    const struct caller *caller; /* of this piece */
    const json_t *params;        /* borrowed; valid while the work lasts */
    struct target_walk walk;     /* selected jobs that have not ended */
    struct select_past past;     /* and those that have */
    struct requeue_order meant;  /* complete once chosen is set */
    bool chosen;
    struct returning *users; /* owned */
    size_t n_users, cap_users;
    bool hold;   /* pending jobs are held from the start */
    bool failed; /* only failed jobs */
    bool active; /* only active jobs */

    struct look look;

    /* The array whose tasks are being run again. */
    uint32_t array;  /* 0: none */
    unsigned states; /* only its tasks in these states */
    struct ids tasks;
    int64_t n_ended; /* how many of them had ended when chosen */
    size_t task_at;
    struct ids open; /* arrays whose tasks are requeued one by one */

    struct ids touched;
    struct ids before; /* sorted: jobs touched by an earlier execution of this request */
    struct err *why;   /* of this piece: why the selection is refused as a whole */
    struct err last;   /* why a job could not be requeued */
};

/* States of jobs that ended before their work was done, other than cancelled by a user. */
#define FAILED_STATES                                                                          \
    (1U << JOB_FAILED | 1U << JOB_TIMEOUT | 1U << JOB_OUT_OF_MEMORY | 1U << JOB_PREEMPTED |    \
     1U << JOB_LOST)

static struct job *
take_back(struct instance *inst, uint32_t id, struct err *e)
{
    struct job *job = queue_get(inst->queue, id);
    if (job)
        return job;
    job = store_job_load(inst->store, id, e);
    if (!job)
        return NULL;
    job->env_bytes = (int32_t)store_env_bytes(inst->store, job->env);
    estimate_enter(inst->state, job);
    queue_add(inst->queue, job);
    return job;
}

/* Removes a job from the queue again that could not be requeued. */
static void
put_back(struct instance *inst, struct job *job)
{
    if (!job_state_is_final(job->state) || job->unsaved)
        return;
    estimate_leave(inst->state, job);
    job_free(queue_remove(inst->queue, job->id));
}

/* The state in which the tasks without a row ended: they were dropped together. JOB_PENDING:
 * there are none. counts: ended tasks per state, of all tasks; array counts only those with
 * rows. */
static enum job_state
dropped_state(const struct job *array, const int32_t *counts)
{
    for (int s = JOB_COMPLETED; s < JOB_STATES; s++)
        if (counts[s] > array->tasks->ended[s])
            return (enum job_state)s;
    return JOB_PENDING;
}

static void
book(struct job *array, const struct row *row)
{
    if (task_set_remove(&array->tasks->pending, row->task) && job_state_is_final(row->state))
        array->tasks->ended[row->state]++;
}

/* Rebuilds the task counts of an ended array from its tasks' rows. Tasks without a row become
 * pending again if `states` contains the state they were dropped in. */
static void
reopen(struct job *array, const struct look *look, unsigned states)
{
    struct tasks *old = array->tasks;
    array->tasks = NULL;
    array_begin(array);
    array_take_statuses(array->tasks, old);
    for (size_t i = 0; i < look->n; i++)
        book(array, &look->rows[i]);
    enum job_state dropped = dropped_state(array, old->ended);
    array_free(old);
    if (dropped == JOB_PENDING)
        return;
    array_count_status(array->tasks, array_dropped_status(dropped), -array_n_pending(array));
    if (!(states >> dropped & 1))
        array_drop(array, dropped);
}

/* Requeues one job. On failure the job may have been freed. */
static int
run_again(struct again *r, struct job *job)
{
    struct rpc *rpc = r->rpc;
    if (job_state_is_final(job->state))
        depend_renew(rpc->inst->state, &job->req);
    if (job_state_is_final(job->state) &&
        depend_check(rpc->inst->state, &job->req, &r->last) < 0) {
        err_prefix(&r->last, "job %s cannot be requeued", job_words(job).text);
        put_back(rpc->inst, job);
        return -1;
    }
    if (jobs_requeue(rpc->inst->state, job, daemon_user_name(r->caller->uid), r->hold,
                     &r->last) < 0) {
        put_back(rpc->inst, job);
        return -1;
    }
    if (job->state == JOB_PENDING)
        depend_enter(rpc->inst->state, job, NULL);
    if (r->hold && job->state == JOB_PENDING)
        (void)jobs_hold(rpc->inst->state, job, &r->last);
    if (!ids_has(&r->before, job->id))
        ids_add_job(&r->touched, job);
    return 0;
}

/* More tasks may come back, so the array must not end before this request is done. */
static void
keep_open(struct again *r, struct job *array)
{
    if (r->open.n > 0 && r->open.v[r->open.n - 1] == array->id)
        return;
    array->tasks->returning++;
    ids_add(&r->open, array->id);
}

static void
let_end(struct again *r)
{
    for (size_t i = 0; i < r->open.n && !r->rpc->inst->leaving; i++)
        arrays_returned(r->rpc->inst->state, r->open.v[i]);
    ids_free(&r->open);
}

/* --- the rows of an array --- */

static void
look_free(struct look *x)
{
    free(x->rows);
    *x = (struct look){0};
}

static int
on_row(uint32_t id, int32_t task, enum job_state state, void *arg)
{
    struct again *r = arg;
    struct look *x = &r->look;
    const struct job *live = queue_get(r->rpc->inst->queue, id);
    x->rows = xgrow(x->rows, x->n, &x->cap, sizeof *x->rows);
    /* the store has the state of the last commit */
    x->rows[x->n++] = (struct row){id, task, live ? live->state : state};
    x->next = task + 1;
    return ++x->n_piece == ROWS_EACH;
}

static int64_t
ended_us(const struct job *job)
{
    return job_state_is_final(job->state) ? job->ended_us : 0;
}

/* False: the rows have to be read first, in pieces; also if somebody else has run the array
 * again meanwhile. */
static bool
has_looked(struct again *r, const struct job *array)
{
    struct look *x = &r->look;
    if (x->array == array->id && x->done && x->ended_us == ended_us(array))
        return true;
    look_free(x);
    x->array = array->id;
    x->ended_us = ended_us(array);
    return false;
}

/* Reads one piece of the rows. */
static void
look_on(struct again *r)
{
    struct look *x = &r->look;
    x->n_piece = 0;
    int rc = store_tasks_walk(r->rpc->inst->store, x->array, x->next, ARRAY_MAX, on_row, r,
                              &r->last);
    x->done = x->n_piece < ROWS_EACH;
    if (rc == 0)
        return;
    look_free(x);
    requeue_order_done(&r->meant); /* the array cannot be requeued */
}

/* False: not done yet. */
static bool
requeue_task(struct again *r, struct job *task)
{
    struct rpc *rpc = r->rpc;
    struct job *array = take_back(rpc->inst, task->array, &r->last);
    int rc = array ? 0 : -1;
    if (array && job_state_is_final(array->state)) {
        if (!has_looked(r, array)) {
            put_back(rpc->inst, array);
            put_back(rpc->inst, task);
            return false;
        }
        reopen(array, &r->look, 0);
        rc = run_again(r, array);
    } else if (array && array->cancel_asked) {
        rc = err_set(&r->last, ERR_FAILED,
                     "job %s cannot be requeued: its array %u is being cancelled",
                     job_words(task).text, array->id);
    }
    if (rc) {
        put_back(rpc->inst, task);
        return true;
    }
    keep_open(r, array);
    run_again(r, task);
    return true;
}

/* --- an array --- */

/* Chooses the tasks in one of these states as far as known; each is checked again when it is
 * requeued. */
static void
choose_tasks(struct again *r, unsigned states)
{
    r->n_ended = 0;
    for (size_t i = 0; i < r->look.n; i++) {
        const struct row *row = &r->look.rows[i];
        const struct job *live = queue_get(r->rpc->inst->queue, row->id);
        enum job_state state = live ? live->state : row->state;
        bool left = !live && !job_state_is_final(state); /* it has ended since */
        if ((!left && !(states >> state & 1)) || ids_has(&r->before, row->id))
            continue;
        ids_add(&r->tasks, row->id);
        r->n_ended += left || job_state_is_final(state);
    }
}

/* All tasks that could come back have done so. */
static void
leave_array(struct again *r)
{
    if (r->array && !r->rpc->inst->leaving)
        arrays_returned(r->rpc->inst->state, r->array);
    r->array = 0;
    ids_free(&r->tasks);
}

/* Begins to requeue an array with its tasks in one of these states. False: not done yet. */
static bool
requeue_array(struct again *r, struct job *array, unsigned states)
{
    struct rpc *rpc = r->rpc;
    int rc = 0;
    if (!has_looked(r, array)) {
        put_back(rpc->inst, array);
        return false;
    }
    choose_tasks(r, states);
    if (job_state_is_final(array->state))
        reopen(array, &r->look, states);
    bool none = r->tasks.n == 0 && array_n_pending(array) == 0;
    bool has_ended = job_state_is_final(array->state);
    int64_t n = r->n_ended + (has_ended ? array_n_pending(array) : 0);
    if (array->cancel_asked && !job_state_is_final(array->state))
        rc = err_set(&r->last, ERR_FAILED, "job %u cannot be requeued: it is being cancelled",
                     array->id);
    else if (none && states != ANY_STATE)
        rc = err_set(&r->last, ERR_FAILED, "job %u has no task to run again", array->id);
    else
        rc = admit_pending(rpc->admission, array->uid, n, &r->last);
    if (rc)
        put_back(rpc->inst, array);
    else if (has_ended)
        rc = run_again(r, array);
    if (rc) {
        ids_free(&r->tasks);
        return true;
    }
    array->tasks->returning++;
    r->array = array->id;
    r->states = states;
    r->task_at = 0;
    return true;
}

/* Requeues the next chosen task. The task and its array may have changed since it was
 * chosen. */
static void
requeue_next_task(struct again *r)
{
    struct rpc *rpc = r->rpc;
    const struct job *array = queue_get(rpc->inst->queue, r->array);
    struct job *task = NULL;
    if (r->task_at < r->tasks.n && array && !array->cancel_asked)
        task = take_back(rpc->inst, r->tasks.v[r->task_at++], &r->last);
    else
        leave_array(r);
    if (!task)
        return;
    bool waits = task->state == JOB_PENDING || task->state == JOB_HELD;
    bool may = !job_state_is_final(task->state) ||
               admit_pending(rpc->admission, task->uid, 1, &r->last) == 0;
    if (!waits && r->states >> task->state & 1 && may)
        run_again(r, task);
    else
        put_back(rpc->inst, task);
}

/* --- one selected job --- */

/* The states in which an array's tasks, or a job without tasks, are to be requeued. */
static unsigned
wanted_states(const struct again *r, const struct job *job)
{
    unsigned states;
    if (!select_is_by_state(&r->walk.select, job, &states))
        states = ANY_STATE;
    return r->failed ? states & FAILED_STATES : states;
}

/* Checks that the job still matches the selection and that there is room for it. */
static int
check_again(struct again *r, const struct job *job)
{
    bool ended = job_state_is_final(job->state);
    if (r->walk.paused && !select_matches(&r->walk.select, job))
        return err_set(&r->last, ERR_FAILED, "job %s has changed: it is %s",
                       job_words(job).text, job_state_name(job->state));
    if (ended && r->active)
        return err_set(&r->last, ERR_FAILED, "job %s has ended (%s)", job_words(job).text,
                       job_state_name(job->state));
    if (!ended)
        return 0;
    if (admit_text(r->rpc->admission, job->uid, request_text_bytes(&job->req), &r->last) < 0)
        return -1;
    return job->tasks ? 0 : admit_pending(r->rpc->admission, job->uid, 1, &r->last);
}

/* False: not done yet. */
static bool
requeue_one(struct again *r, uint32_t id)
{
    struct rpc *rpc = r->rpc;
    struct job *job = queue_get(rpc->inst->queue, id);
    struct job *old = job ? NULL : store_job_load(rpc->inst->store, id, &r->last);
    int rc = job || old ? check_again(r, job ? job : old) : -1;
    bool others_first = rc == 0 && requeue_order_defer(&r->meant, job ? job : old);
    job_free(old);
    if (others_first)
        return false;
    if (rc || !(job = take_back(rpc->inst, id, &r->last)))
        return true;
    unsigned states = wanted_states(r, job);
    if (job->tasks)
        return requeue_array(r, job, states);
    if (!(states >> job->state & 1)) {
        err_set(&r->last, ERR_FAILED, "job %s has not failed: it is %s", job_words(job).text,
                job_state_name(job->state));
        put_back(rpc->inst, job);
        return true;
    }
    if (job->array)
        return requeue_task(r, job);
    run_again(r, job);
    return true;
}

/* --- the pieces --- */

static void
count_user(struct again *r, uint32_t uid)
{
    size_t i = 0;
    while (i < r->n_users && r->users[i].uid != uid)
        i++;
    if (i == r->n_users) {
        r->users = xgrow(r->users, r->n_users, &r->cap_users, sizeof *r->users);
        r->users[r->n_users++] = (struct returning){.uid = uid};
    }
    r->users[i].n++;
}

static int
admit_users(const struct again *r, struct err *e)
{
    for (size_t i = 0; i < r->n_users; i++)
        if (admit_pending(r->rpc->admission, r->users[i].uid, r->users[i].n, e) < 0)
            return -1;
    return 0;
}

static int
on_ended(struct job *job, const char *const *uuids, void *arg)
{
    (void)uuids;
    struct again *r = arg;
    if (target_check_owner(r->caller, job, r->why) < 0)
        return 1;
    if (!job->tasks && ids_has(&r->before, job->id))
        return 0;
    requeue_order_add(&r->meant, job->id, job);
    if (!job->tasks)
        count_user(r, job->uid);
    return 0;
}

/* Determines the selected jobs and whether all may be requeued: 1; 0 if time ran out; -1 with
 * e. */
static int
choose(struct again *r, int64_t until_us, struct err *e)
{
    struct rpc *rpc = r->rpc;
    struct target_walk *w = &r->walk;
    int rc = w->chosen ? 1 : target_walk_choose(rpc->inst, r->caller, w, until_us, e);
    if (rc > 0 && !r->active) {
        struct err why = {0};
        r->why = &why;
        rc = select_past_walk(rpc->inst, &w->select, &r->past, until_us, on_ended, r, e);
        if (why.code) {
            *e = why;
            return -1;
        }
    }
    w->paused |= rc == 0;
    if (rc <= 0)
        return rc;
    if (daemon_accepts_work(rpc->inst, e) < 0 || admit_users(r, e) < 0)
        return -1;
    for (size_t i = 0; i < w->live.n; i++) {
        const struct job *job =
            queue_get(rpc->inst->queue, w->live.ids[i]); /* NULL: it has ended */
        if (!ids_has(&r->before, w->live.ids[i]) || (job && job->tasks))
            requeue_order_add(&r->meant, w->live.ids[i], job);
    }
    requeue_order_complete(&r->meant);
    r->chosen = true;
    return 1;
}

static int
answer(struct again *r, struct jsonw *out, struct err *e)
{
    if (r->meant.ids.n == 0 && r->touched.n == 0)
        return select_none(r->params, e);
    if (r->touched.n == 0 && !r->last.code)
        return err_set(e, ERR_FAILED, "all of these jobs are pending already");
    if (r->touched.n == 0) {
        *e = r->last;
        return -1;
    }
    jsonw_object(out);
    ids_write(out, "ids", &r->touched);
    jsonw_end_object(out);
    return WORK_DONE;
}

static int
step(struct rpc *rpc, const struct caller *c, void *arg, struct jsonw *out, int64_t until_us,
     struct err *e)
{
    struct again *r = arg;
    r->rpc = rpc;
    r->caller = c;
    int rc = r->chosen ? 1 : choose(r, until_us, e);
    if (rc <= 0)
        return rc < 0 ? -1 : WORK_MORE;
    uint32_t id = 0;
    for (int n = 1; r->array || (id = requeue_order_next(&r->meant)) > 0; n++) {
        if (r->array)
            requeue_next_task(r);
        else if (r->look.array && !r->look.done)
            look_on(r);
        else if (requeue_one(r, id))
            requeue_order_done(&r->meant);
        /* Each job is read from the disk and may have megabytes. */
        if (n == CHANGE_EACH || clock_boot_us() >= until_us) {
            r->walk.paused = true;
            return WORK_MORE;
        }
    }
    let_end(r);
    return answer(r, out, e);
}

static void
again_free(void *arg)
{
    struct again *r = arg;
    leave_array(r);
    let_end(r);
    look_free(&r->look);
    target_walk_free(&r->walk);
    select_past_free(&r->past);
    requeue_order_free(&r->meant);
    ids_free(&r->touched);
    ids_free(&r->before);
    free(r->users);
    free(r);
}

static size_t
n_done(const void *arg)
{
    const struct again *r = arg;
    return r->touched.n;
}

static void
so_far(void *arg, struct buf *out)
{
    struct again *r = arg;
    if (r->touched.n > r->touched.n_saved)
        ids_save(&r->touched, out);
}

static void
resume(void *arg, const char *text)
{
    struct again *r = arg;
    ids_load(&r->touched, text);
    ids_load(&r->before, text);
    ids_put_in_order(&r->before);
}

int
method_requeue(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
               struct err *e)
{
    static const struct work_kind kind = {.step = step,
                                          .free = again_free,
                                          .past = true,
                                          .changes = true,
                                          .n_done = n_done,
                                          .so_far = so_far,
                                          .resume = resume};
    struct again *r = xcalloc(1, sizeof *r);
    r->params = params;
    r->hold = json_is_true(json_object_get(params, "hold"));
    r->failed = json_is_true(json_object_get(params, "failed"));
    r->active = json_is_true(json_object_get(params, "active"));
    if (target_read(rpc->roles, c, params, &r->walk.select, e) < 0) {
        again_free(r);
        return -1;
    }
    return work_begin(rpc, c, &kind, r, params, out, e);
}
