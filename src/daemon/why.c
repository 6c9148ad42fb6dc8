/* Why a job waits; see why.h. The planner knows jobs by number, and cards by what was measured:
 * names and ailments are added here. Called wherever somebody is told. */
#include "daemon/why.h"

#include "core/job.h"
#include "core/place.h"
#include "core/plan.h"
#include "core/queue.h"
#include "daemon/daemon.h"
#include "daemon/health.h"

static void
name_holders(const struct daemon *d, struct blocked *why)
{
    for (int i = 0; i < BLOCKED_HOLDERS && why->holders[i]; i++) {
        const struct job *job = queue_get(d->queue, why->holders[i]);
        if (!job || !job->array)
            continue;
        why->holder_arrays[i] = job->array;
        why->holder_tasks[i] = job->task;
    }
}

void
why_waits(struct daemon *d, const struct job *job, struct blocked *why, struct buf *text)
{
    plan_explain(job, why);
    name_holders(d, why);
    blocked_text(why, &job->req.demand, text);
    health_explain(d, why, text);
}
