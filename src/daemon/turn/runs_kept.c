/* See runs_kept.h. Called by berthd.c, and by job_rows.c within a commit. */
#include "daemon/turn/runs_kept.h"

#include "base/err.h"
#include "core/learn/runtimes.h"
#include "core/plan/plan.h"
#include "core/queue/job.h"
#include "store/store.h"

#define TAUGHT_MAX 1000 /* ended jobs from which a new daemon's planner learns */
#define ENDED_BY_ITSELF                                                                        \
    (1U << JOB_COMPLETED | 1U << JOB_FAILED | 1U << JOB_TIMEOUT | 1U << JOB_OUT_OF_MEMORY)
#define TRIM_EVERY 4096 /* ends between trims, which visit every row */

static void
on_runs(const struct store_runs *r, void *arg)
{
    history_restore(arg, r->uid, r->fingerprint,
                    (struct runs){.last_ms = r->last_ms, .before_ms = r->before_ms});
}

/* The job's estimate is no longer known; most estimates come from the limit, so that
 * is used. */
static int
on_ended(struct job *job, const char *const *uuids, void *arg)
{
    (void)uuids;
    if (job->run && job->run->ending.run_ms > 0)
        planner_ended(arg, job->req.limit_ms, job->run->ending.run_ms);
    return 0;
}

/* The order `balanced` scales limits by how far ended jobs stayed below theirs. */
static int
teach_planner(struct store *store, struct planner *p, struct err *e)
{
    const struct store_filter ended = {
        .states = ENDED_BY_ITSELF, .limit = TAUGHT_MAX, .newest_first = true};
    if (planner_rules(p)->order != PLAN_BALANCED)
        return 0;
    return store_jobs_select(store, &ended, on_ended, p, e);
}

int
runs_load(struct store *store, struct history *h, struct planner *p, struct err *e)
{
    if (store_runs_load(store, on_runs, h, e) < 0)
        return -1;
    return teach_planner(store, p, e);
}

void
runs_save(struct store *store, const struct history *h, const struct job *job)
{
    struct err e; /* errors stick to the store; its commit reports them */
    struct runs r = history_runs(h, job);
    if (job->state != JOB_COMPLETED || r.last_ms == 0)
        return;
    const struct store_runs row = {.uid = job->uid,
                                   .fingerprint = job->fingerprint,
                                   .last_ms = r.last_ms,
                                   .before_ms = r.before_ms,
                                   .ended_us = job->ended_us};
    store_runs_put(store, &row, &e);
    if (job->id % TRIM_EVERY == 0)
        store_runs_trim(store, &e);
}
