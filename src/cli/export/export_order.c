/* Orders the jobs for submission: in queue order, except that a job follows its dependencies,
 * because sbatch must know their ids. */
#include <stdlib.h>

#include "base/err.h"
#include "cli/export/export_priv.h"

static bool
is_part(const struct export_job *job, const struct dep *dep)
{
    if (dep->task < 0)
        return job->id == dep->job || job->array == dep->job;
    return (job->array == dep->job && job->task == dep->task) ||
           (job->id == dep->job && job->array == 0 && task_set_has(&job->req.array, dep->task));
}

const struct export_job *
export_find_dep(const struct export_data *x, const struct dep *dep,
                const struct export_job *from)
{
    const struct export_job *end = x->jobs + x->n;

    for (const struct export_job *job = from ? from + 1 : x->jobs; job < end; job++)
        if (is_part(job, dep))
            return job;
    return NULL;
}

/* Places a job after its dependencies. These cannot form cycles: a job can depend only on jobs
 * submitted before it. */
static void
place(struct export_data *x, struct export_job *job, size_t *order, size_t *n)
{
    if (job->is_placed)
        return;
    job->is_placed = true;
    for (int i = 0; i < job->req.n_deps; i++) {
        const struct export_job *before = NULL;

        while ((before = export_find_dep(x, &job->req.deps[i], before)))
            place(x, &x->jobs[before - x->jobs], order, n);
    }
    order[(*n)++] = (size_t)(job - x->jobs);
}

void
export_put_in_order(struct export_data *x)
{
    size_t *order = xcalloc(x->n + 1, sizeof *order);
    struct export_job *sorted = xcalloc(x->n + 1, sizeof *sorted);
    size_t n = 0;

    for (size_t i = 0; i < x->n; i++)
        place(x, &x->jobs[i], order, &n);
    for (size_t i = 0; i < n; i++)
        sorted[i] = x->jobs[order[i]];
    free(order);
    free(x->jobs);
    x->jobs = sorted;
}
