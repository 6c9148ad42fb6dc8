/* The bound on how many tasks of an array run; see plan_priv.h. */
#include <stdlib.h>

#include "base/err.h"
#include "core/plan/plan_priv.h"

const struct job *
plan_array_bound(const struct planning *pl, const struct job *job)
{
    const struct job *array = job->array ? queue_get(pl->q, job->array) : job;
    return array && array->tasks && array->req.array_max > 0 ? array : NULL;
}

static struct started *
started_of(struct planning *pl, uint32_t array)
{
    for (size_t i = 0; i < pl->n_started; i++) {
        if (pl->started[i].array == array)
            return &pl->started[i];
    }
    pl->started = xgrow(pl->started, pl->n_started, &pl->cap_started, sizeof *pl->started);
    pl->started[pl->n_started] = (struct started){.array = array};
    return &pl->started[pl->n_started++];
}

bool
plan_array_is_full(struct planning *pl, const struct job *job)
{
    const struct job *array = plan_array_bound(pl, job);
    if (!array)
        return false;
    return array->tasks->active + started_of(pl, array->id)->n >= array->req.array_max;
}

void
plan_array_starts(struct planning *pl, const struct job *job)
{
    const struct job *array = plan_array_bound(pl, job);
    if (array)
        started_of(pl, array->id)->n++;
}
