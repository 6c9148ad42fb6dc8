/* Run time estimates: see estimates.h. core/learn/runtimes.h has the table, this file connects
 * it to the queue, and runs_kept.c stores it. */
#include "daemon/state/estimates.h"

#include "core/learn/runtimes.h"
#include "core/queue/queue.h"
#include "daemon/state/state.h"

#define FOLLOW_EACH 1000 /* jobs per turn: about 5 ms */

void
estimate_enter(struct state *s, struct job *job)
{
    history_enter(s->history, job);
}

void
estimate_refresh(struct state *s, struct job *job)
{
    history_expect(s->history, job);
}

void
estimate_leave(struct state *s, struct job *job)
{
    history_leave(s->history, job);
}

/* A running job keeps the estimate it started with, since a promised start may depend
 * on it. */
static bool
may_change(const struct job *job)
{
    return job->state == JOB_PENDING || job->state == JOB_HELD;
}

bool
estimates_follow(struct state *s)
{
    struct job *job;
    for (int n = 0; n < FOLLOW_EACH && (job = history_next(s->history)); n++)
        if (may_change(job) && history_expect(s->history, job))
            queue_refile(s->queue, job);
    return history_has_next(s->history);
}

void
estimate_completed(struct state *s, struct job *job)
{
    if (!job->fingerprint || !job->run)
        return;
    history_note(s->history, job, job->run->ending.run_ms);
}
