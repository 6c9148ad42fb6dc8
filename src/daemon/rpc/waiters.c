/* Waiting clients: see waiters.h. A wait holds the ids of jobs, sorted, and the tasks that had
 * no id yet; the end of a job is looked up in each wait. A task that never left its array ends
 * with it. A job that is requeued after its end counts as ended once. */
#include "daemon/rpc/waiters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/ids.h"
#include "base/jsonw.h"
#include "core/queue/array.h"
#include "core/queue/endings.h"
#include "core/queue/job.h"
#include "core/queue/queue.h"
#include "daemon/request/selection.h"
#include "daemon/rpc/rpc_server.h"
#include "daemon/state/changes.h"

struct waited_job {
    uint32_t id; /* first: the lookup compares it alone */
    bool ended;
};

struct waited_task {
    uint32_t array;
    int32_t task;
    bool ended;
};

struct wait {
    struct wait *next;
    struct ticket *ticket;      /* NULL: not begun */
    const struct select *names; /* borrowed until the wait begins */
    struct waited_job *jobs;    /* sorted, unique */
    struct waited_task *tasks;  /* the same once put_in_order has run */
    size_t n_jobs, cap_jobs, n_tasks, cap_tasks;
    bool in_order;   /* tasks are sorted and unique */
    size_t left;     /* not ended; valid once begun */
    struct buf done; /* objects, comma-separated */
    uint32_t *ended; /* owned; had ended before, in ascending order */
    size_t n_ended, cap_ended;
};

struct waits {
    const struct queue *queue;
    struct wait *first;
};

struct waits *
waits_new(const struct queue *queue)
{
    struct waits *all = xcalloc(1, sizeof *all);
    all->queue = queue;
    return all;
}

static void
wait_free(struct wait *x)
{
    ticket_free(x->ticket);
    free(x->jobs);
    free(x->tasks);
    free(x->ended);
    buf_free(&x->done);
    free(x);
}

void
waits_free(struct waits *w)
{
    while (w && w->first) {
        struct wait *x = w->first;
        w->first = x->next;
        wait_free(x);
    }
    free(w);
}

/* --- output --- */

static void
write_one(struct buf *out, uint32_t id, enum job_state state, int exit_status,
          const struct waited_task *task)
{
    if (out->len > 0)
        buf_addc(out, ',');
    buf_addf(out, "{\"id\":%u,\"state\":\"%s\",\"exit_status\":%d", id, job_state_name(state),
             exit_status);
    if (task->array)
        buf_addf(out, ",\"array_job\":%u,\"array_task\":%d", task->array, task->task);
    buf_addc(out, '}');
}

static void
write_job(struct buf *out, const struct job *job)
{
    write_one(out, job->id, job->state, job_exit_status(job),
              &(struct waited_task){.array = job->array, .task = job->task});
}

void
waits_write_meant(const struct wait *x, struct jsonw *out)
{
    char word[32];
    jsonw_object(out);
    jsonw_karray(out, "select");
    for (size_t i = 0; i < x->n_jobs + x->n_ended; i++) {
        snprintf(word, sizeof word, "%u",
                 i < x->n_jobs ? x->jobs[i].id : x->ended[i - x->n_jobs]);
        jsonw_str(out, word);
    }
    for (size_t i = 0; i < x->n_tasks; i++) {
        snprintf(word, sizeof word, "%u_%d", x->tasks[i].array, x->tasks[i].task);
        jsonw_str(out, word);
    }
    jsonw_end_array(out);
    jsonw_end_object(out);
}

/* --- jobs and tasks of a wait --- */

static struct waited_job *
find_job(const struct wait *x, uint32_t id)
{
    return x->n_jobs ? bsearch(&id, x->jobs, x->n_jobs, sizeof *x->jobs, ids_compare) : NULL;
}

struct wait *
waits_open(struct waits *all, const struct select *names)
{
    struct wait *x = xcalloc(1, sizeof *x);
    x->names = names;
    x->next = all->first;
    all->first = x;
    return x;
}

/* Nearly all are added in order. */
void
waits_add_job(struct wait *x, uint32_t id)
{
    size_t at = x->n_jobs;
    if (find_job(x, id))
        return;
    x->jobs = xgrow(x->jobs, x->n_jobs, &x->cap_jobs, sizeof *x->jobs);
    for (; at > 0 && x->jobs[at - 1].id > id; at--)
        x->jobs[at] = x->jobs[at - 1];
    x->jobs[at] = (struct waited_job){.id = id};
    x->n_jobs++;
}

void
waits_add_task(struct wait *x, uint32_t array, int32_t task)
{
    x->tasks = xgrow(x->tasks, x->n_tasks, &x->cap_tasks, sizeof *x->tasks);
    x->tasks[x->n_tasks++] = (struct waited_task){.array = array, .task = task};
    x->in_order = false;
}

bool
waits_is_empty(const struct wait *x)
{
    return x->n_jobs + x->n_tasks + x->n_ended == 0;
}

static int
compare_tasks(const void *a, const void *b)
{
    const struct waited_task *x = a, *y = b;
    if (x->array != y->array)
        return x->array < y->array ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task;
}

/* Sorts the tasks and removes duplicates, so that each is found and counted once. */
static void
put_in_order(struct wait *x)
{
    size_t n = 0;
    if (x->in_order)
        return;
    if (x->n_tasks > 0)
        qsort(x->tasks, x->n_tasks, sizeof *x->tasks, compare_tasks);
    for (size_t i = 0; i < x->n_tasks; i++)
        if (i == 0 || compare_tasks(&x->tasks[i], &x->tasks[n - 1]) != 0)
            x->tasks[n++] = x->tasks[i];
    x->n_tasks = n;
    x->in_order = true;
}

static struct waited_task *
find_task(struct wait *x, const struct job *job)
{
    const struct waited_task key = {.array = job->array, .task = job->task};
    put_in_order(x);
    return x->n_tasks && job->array
               ? bsearch(&key, x->tasks, x->n_tasks, sizeof key, compare_tasks)
               : NULL;
}

void
waits_add_ended(struct wait *x, const struct job *job)
{
    if (find_job(x, job->id) || find_task(x, job))
        return;
    x->ended = xgrow(x->ended, x->n_ended, &x->cap_ended, sizeof *x->ended);
    x->ended[x->n_ended++] = job->id;
    write_job(&x->done, job);
}

static void
unlink_wait(struct waits *all, const struct wait *x)
{
    struct wait **at = &all->first;
    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
}

void
waits_drop(struct waits *all, struct wait *x)
{
    if (!x)
        return;
    unlink_wait(all, x);
    wait_free(x);
}

static void
answer(struct wait *x)
{
    struct buf result = BUF_INIT;
    buf_addf(&result, "{\"jobs\":[%s]}", buf_str(&x->done));
    server_answer(TAKE(x->ticket), &result);
    wait_free(x);
}

void
waits_begin(struct waits *all, struct wait *x, struct ticket *t)
{
    x->ticket = t;
    x->names = NULL;
    put_in_order(x);
    ticket_keep(t, (int64_t)(x->cap_jobs * sizeof *x->jobs + x->cap_tasks * sizeof *x->tasks +
                             x->cap_ended * sizeof *x->ended + x->done.len));
    for (size_t i = 0; i < x->n_jobs; i++)
        x->left += !x->jobs[i].ended;
    for (size_t i = 0; i < x->n_tasks; i++)
        x->left += !x->tasks[i].ended;
    if (x->left > 0)
        return;
    unlink_wait(all, x);
    answer(x);
}

/* --- ends --- */

/* False: the wait does not include the job, or it has ended already. */
static bool
job_ended(struct wait *x, const struct job *job)
{
    struct waited_job *w = find_job(x, job->id);
    if (!w || w->ended)
        return false;
    w->ended = true;
    write_job(&x->done, job);
    return true;
}

/* The same for a task that has left its array since. */
static bool
task_ended(struct wait *x, const struct job *job)
{
    struct waited_task *t = find_task(x, job);
    if (!t || t->ended)
        return false;
    t->ended = true;
    write_job(&x->done, job);
    return true;
}

/* Tasks still waited for when their array ends have never left it: the rest was cancelled or
 * could never start. Returns their number. */
static size_t
array_ended(struct wait *x, const struct job *array)
{
    bool cancelled = array->tasks->ended[JOB_CANCELLED] > 0;
    size_t n = 0;
    for (size_t i = 0; i < x->n_tasks; i++) {
        struct waited_task *t = &x->tasks[i];
        if (t->array != array->id || t->ended)
            continue;
        t->ended = true;
        n++;
        write_one(&x->done, array->id, cancelled ? JOB_CANCELLED : JOB_INFEASIBLE,
                  cancelled ? STATUS_CANCELLED : 1, t);
    }
    return n;
}

void
waits_job_ended(struct waits *all, const struct job *job)
{
    struct wait **at = &all->first;
    while (*at) {
        struct wait *x = *at;
        size_t n = job_ended(x, job);
        if (job->array)
            n += task_ended(x, job);
        else if (job->tasks)
            n += array_ended(x, job);
        x->left -= x->ticket ? n : 0;
        if (x->left > 0 || !x->ticket) {
            at = &x->next;
            continue;
        }
        *at = x->next;
        answer(x);
    }
}

void
waits_read(struct waits *all, const struct change *change)
{
    if (change->type != CHANGE_BACK || !job_state_is_final(change->state))
        return;
    const struct job *job = queue_get(all->queue, change->job);
    if (!job)
        return;
    for (struct wait *x = all->first; x; x = x->next) {
        bool is_known = x->ticket || (x->n_ended && bsearch(&job->id, x->ended, x->n_ended,
                                                            sizeof job->id, ids_compare));
        if (!is_known && select_matches(x->names, job))
            waits_add_job(x, job->id);
    }
}

void
waits_drop_client(struct waits *w, const struct client *client)
{
    struct wait **at = &w->first;
    while (*at) {
        struct wait *x = *at;
        if (!x->ticket || !ticket_is_of(x->ticket, client)) {
            at = &x->next;
            continue;
        }
        *at = x->next;
        wait_free(x);
    }
}
