/* What a forecast finds out about jobs that are only asked about; see lookahead_asked.h. */
#include "core/plan/lookahead_asked.h"

#include <stdlib.h>

#include "base/err.h"
#include "core/queue/queue.h"

static int
compare(const void *x, const void *y)
{
    const struct asked_start *a = x, *b = y;
    return a->job < b->job ? -1 : a->job > b->job;
}

void
asked_add(struct asked *a, uint32_t job)
{
    a->v = xgrow(a->v, a->n, &a->cap, sizeof *a->v);
    a->v[a->n++] = (struct asked_start){.job = job};
    a->sorted = false;
}

struct asked_start *
asked_find(struct asked *a, uint32_t job)
{
    const struct asked_start key = {.job = job};
    if (a->n == 0)
        return NULL;
    if (!a->sorted)
        qsort(a->v, a->n, sizeof *a->v, compare);
    a->sorted = true;
    return bsearch(&key, a->v, a->n, sizeof key, compare);
}

void
asked_starts(struct asked *a, uint32_t job, int64_t at_us, const struct placement *where)
{
    struct asked_start *x = asked_find(a, job);
    if (!x || x->at_us)
        return;
    x->at_us = at_us;
    x->at_once = where && !a->explained;
    if (where)
        x->where = *where;
    a->n_answered++;
}

bool
asked_explain(struct asked *a, const struct queue *q, size_t most)
{
    for (; most > 0 && a->explained_n < a->n; most--) {
        struct asked_start *x = &a->v[a->explained_n++];
        const struct job *job = x->at_us ? NULL : queue_get(q, x->job);
        if (job)
            plan_explain(q, job, &x->why);
    }
    a->explained = a->explained_n == a->n;
    return !a->explained;
}

bool
asked_settle(struct asked *a, const struct queue *q, size_t most)
{
    for (; most > 0 && a->settled_n < a->n; most--) {
        struct asked_start *x = &a->v[a->settled_n++];
        const struct job *job = x->at_us ? NULL : queue_get(q, x->job);
        if (job && job->state == JOB_PENDING) {
            x->at_us = INT64_MAX;
            a->n_answered++;
        }
    }
    return a->settled_n < a->n;
}

bool
asked_is_answered(const struct asked *a)
{
    return a->n > 0 && a->n_answered == a->n;
}

void
asked_free(struct asked *a)
{
    free(a->v);
    *a = (struct asked){0};
}
