/* See runs_kept.h. Called by berthd.c, and by turn.c within its commit. */
#include "daemon/turn/runs_kept.h"

#include "base/err.h"
#include "core/learn/runtimes.h"
#include "core/plan/plan.h"
#include "daemon/daemon.h"
#include "daemon/state/state.h"
#include "store/store.h"

#define TAUGHT_MAX 1000 /* ended jobs that a new daemon's planner learns from */
#define ENDED_BY_ITSELF                                                                        \
    (1u << JOB_COMPLETED | 1u << JOB_FAILED | 1u << JOB_TIMEOUT | 1u << JOB_OUT_OF_MEMORY)
#define TRIM_EVERY 4096 /* ends: it looks at every row */

static void
on_runs(const struct store_runs *r, void *arg)
{
    history_restore(arg, r->uid, r->fingerprint,
                    (struct runs){.last_ms = r->last_ms, .before_ms = r->before_ms});
}

/* Of its estimate nothing is known any more; its limit is what most go by. */
static int
on_ended(struct job *job, const char *const *uuids, void *arg)
{
    (void)uuids;
    if (job->run && job->run->ending.run_ms > 0)
        planner_ended(arg, job->req.limit_ms, job->run->ending.run_ms);
    return 0;
}

/* The order `balanced` corrects limits by how those that ended stayed below theirs. */
static int
teach_planner(struct daemon *d, struct err *e)
{
    const struct store_filter ended = {
        .states = ENDED_BY_ITSELF, .limit = TAUGHT_MAX, .newest_first = true};
    if (planner_rules(d->planner)->order != PLAN_BALANCED)
        return 0;
    return store_jobs_select(d->store, &ended, on_ended, d->planner, e);
}

int
runs_load(struct daemon *d, struct err *e)
{
    if (store_runs_load(d->store, on_runs, d->state.history, e))
        return -1;
    return teach_planner(d, e);
}

void
runs_save(struct daemon *d, const struct job *job)
{
    struct err e; /* sticks to the store; the commit tells */
    struct runs r = history_runs(d->state.history, job);
    if (job->state != JOB_COMPLETED || r.last_ms == 0)
        return;
    const struct store_runs row = {.uid = job->uid,
                                   .fingerprint = job->fingerprint,
                                   .last_ms = r.last_ms,
                                   .before_ms = r.before_ms,
                                   .ended_us = job->ended_us};
    store_runs_put(d->store, &row, &e);
    if (job->id % TRIM_EVERY == 0)
        store_runs_trim(d->store, &e);
}
