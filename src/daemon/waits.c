/* Waiting clients: see waits.h. A wait holds the ids that are still to come, sorted, and the
 * tasks that had no id yet; a job's end is looked up in each. A task that never left its array
 * ends with it. */
#include "daemon/waits.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/ids.h"
#include "core/account.h"
#include "core/array.h"
#include "core/job.h"
#include "daemon/daemon.h"
#include "daemon/server.h"

struct wait {
    struct wait *next;
    struct ticket *ticket;
    struct waited whom; /* sorted, each once */
    size_t left;
    struct buf done; /* objects, comma-separated */
};

struct waits {
    struct wait *first;
};

void
waited_add(struct waited *w, uint32_t id)
{
    if (w->n_ids == w->cap_ids) {
        w->cap_ids = w->cap_ids ? w->cap_ids * 2 : 16;
        w->ids = xrealloc(w->ids, w->cap_ids * sizeof *w->ids);
    }
    w->ids[w->n_ids++] = id;
}

void
waited_add_task(struct waited *w, uint32_t array, int32_t task)
{
    if (w->n_tasks == w->cap_tasks) {
        w->cap_tasks = w->cap_tasks ? w->cap_tasks * 2 : 16;
        w->tasks = xrealloc(w->tasks, w->cap_tasks * sizeof *w->tasks);
    }
    w->tasks[w->n_tasks++] = (struct waited_task){.array = array, .task = task};
}

void
waited_free(struct waited *w)
{
    free(w->ids);
    free(w->tasks);
    *w = (struct waited){0};
}

struct waits *
waits_new(void)
{
    return xcalloc(1, sizeof(struct waits));
}

static void
wait_free(struct wait *x)
{
    ticket_free(x->ticket);
    waited_free(&x->whom);
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

void
waits_write(struct buf *out, const struct job *job)
{
    write_one(out, job->id, job->state, job_exit_status(job),
              &(struct waited_task){.array = job->array, .task = job->task});
}

static void
answer(struct wait *x)
{
    auto_free char *text = xasprintf("{\"jobs\":[%s]}", buf_str(&x->done));
    server_answer(TAKE(x->ticket), text);
    wait_free(x);
}

static int
compare_tasks(const void *a, const void *b)
{
    const struct waited_task *x = a, *y = b;
    if (x->array != y->array)
        return x->array < y->array ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task;
}

/* In order, each once, so that it is found, and counted, once. */
static void
put_in_order(struct waited *w)
{
    size_t n = 0;
    if (w->n_ids > 0)
        qsort(w->ids, w->n_ids, sizeof *w->ids, ids_compare);
    for (size_t i = 0; i < w->n_ids; i++)
        if (i == 0 || w->ids[i] != w->ids[n - 1])
            w->ids[n++] = w->ids[i];
    w->n_ids = n;
    n = 0;
    if (w->n_tasks > 0)
        qsort(w->tasks, w->n_tasks, sizeof *w->tasks, compare_tasks);
    for (size_t i = 0; i < w->n_tasks; i++)
        if (i == 0 || compare_tasks(&w->tasks[i], &w->tasks[n - 1]) != 0)
            w->tasks[n++] = w->tasks[i];
    w->n_tasks = n;
}

void
waits_add(struct daemon *d, struct ticket *t, struct waited *whom, const char *done)
{
    struct wait *x = xcalloc(1, sizeof *x);
    x->ticket = t;
    x->whom = *whom;
    *whom = (struct waited){0};
    put_in_order(&x->whom);
    x->left = x->whom.n_ids + x->whom.n_tasks;
    buf_adds(&x->done, done);
    if (x->left == 0) {
        answer(x);
        return;
    }
    x->next = d->waits->first;
    d->waits->first = x;
}

/* The task has left its array since, and ended. */
static void
task_ended(struct wait *x, const struct job *job)
{
    const struct waited_task key = {.array = job->array, .task = job->task};
    struct waited_task *t = x->whom.n_tasks == 0 ? NULL
                                                 : bsearch(&key, x->whom.tasks, x->whom.n_tasks,
                                                           sizeof key, compare_tasks);
    if (!t || t->ended)
        return;
    t->ended = true;
    waits_write(&x->done, job);
    x->left--;
}

/* What has not ended before its array has never left it: its rest was cancelled, or could never
 * start. */
static void
array_ended(struct wait *x, const struct job *array)
{
    bool cancelled = array->tasks->ended[JOB_CANCELLED] > 0;
    for (size_t i = 0; i < x->whom.n_tasks; i++) {
        struct waited_task *t = &x->whom.tasks[i];
        if (t->array != array->id || t->ended)
            continue;
        t->ended = true;
        x->left--;
        write_one(&x->done, array->id, cancelled ? JOB_CANCELLED : JOB_INFEASIBLE,
                  cancelled ? STATUS_CANCELLED : 1, t);
    }
}

void
waits_job_ended(struct daemon *d, const struct job *job)
{
    struct wait **at = &d->waits->first;
    while (*at) {
        struct wait *x = *at;
        if (x->whom.n_ids &&
            bsearch(&job->id, x->whom.ids, x->whom.n_ids, sizeof job->id, ids_compare)) {
            waits_write(&x->done, job);
            x->left--;
        }
        if (job->array)
            task_ended(x, job);
        else if (job->tasks)
            array_ended(x, job);
        if (x->left > 0) {
            at = &x->next;
            continue;
        }
        *at = x->next;
        answer(x);
    }
}

void
waits_drop_client(struct waits *w, const struct client *client)
{
    struct wait **at = &w->first;
    while (*at) {
        struct wait *x = *at;
        if (!ticket_is_of(x->ticket, client)) {
            at = &x->next;
            continue;
        }
        *at = x->next;
        wait_free(x);
    }
}
