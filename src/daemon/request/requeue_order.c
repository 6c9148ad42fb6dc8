/* The order in which jobs run again: see requeue_order.h. Each entry of the stack `first`
 * waits for those above it. Each job is pushed once, so a circle ends. */
#include "daemon/request/requeue_order.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/ids.h"
#include "core/queue/job.h"

struct task_id {
    uint32_t array, id;
};

void
requeue_order_free(struct requeue_order *o)
{
    ids_free(&o->ids);
    ids_free(&o->first);
    free(o->taken);
    free(o->tasks);
    *o = (struct requeue_order){0};
}

void
requeue_order_add(struct requeue_order *o, uint32_t id, const struct job *job)
{
    ids_add(&o->ids, id);
    if (!job || !job->array)
        return;
    o->tasks = xgrow(o->tasks, o->n_tasks, &o->cap_tasks, sizeof *o->tasks);
    o->tasks[o->n_tasks++] = (struct task_id){job->array, id};
}

static int
compare_arrays(const void *a, const void *b)
{
    const struct task_id *x = a, *y = b;
    return ids_compare(&x->array, &y->array);
}

void
requeue_order_complete(struct requeue_order *o)
{
    ids_put_in_order(&o->ids);
    if (o->n_tasks > 0)
        qsort(o->tasks, o->n_tasks, sizeof *o->tasks, compare_arrays);
    o->taken = xcalloc(o->ids.n + 1, sizeof *o->taken);
}

uint32_t
requeue_order_next(struct requeue_order *o)
{
    if (o->first.n > 0)
        return o->first.v[o->first.n - 1];
    while (o->at < o->ids.n && o->taken[o->at])
        o->at++;
    return o->at < o->ids.n ? o->ids.v[o->at] : 0;
}

void
requeue_order_done(struct requeue_order *o)
{
    if (o->first.n > 0)
        o->first.n--;
    else if (o->at < o->ids.n)
        o->at++;
}

/* False: the job is not in the list, or was taken already. */
static bool
put_first(struct requeue_order *o, uint32_t id)
{
    const uint32_t *found =
        o->ids.n > 0 ? bsearch(&id, o->ids.v, o->ids.n, sizeof id, ids_compare) : NULL;
    if (!found)
        return false;
    size_t i = (size_t)(found - o->ids.v);
    if (i < o->at || o->taken[i])
        return false;
    o->taken[i] = true;
    ids_add(&o->first, id);
    return true;
}

/* Pushes all listed tasks of this array at once: they all wait for the same jobs, and none
 * for another. */
static bool
put_tasks_first(struct requeue_order *o, uint32_t array)
{
    size_t low = 0, high = o->n_tasks;
    bool any = false;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (o->tasks[mid].array < array)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < o->n_tasks && o->tasks[low].array == array; low++)
        any |= put_first(o, o->tasks[low].id);
    return any;
}

bool
requeue_order_defer(struct requeue_order *o, const struct job *job)
{
    if (job->req.n_deps > 0 && o->first.n == 0)
        (void)put_first(o, job->id); /* so that a circle cannot push it again */
    for (int i = 0; i < job->req.n_deps; i++)
        if (put_first(o, job->req.deps[i].job) || put_tasks_first(o, job->req.deps[i].job))
            return true;
    return false;
}
