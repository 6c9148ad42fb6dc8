/* --unique: see unique.h. Called by the methods that make jobs. The store's index finds ended
 * jobs; lists by fingerprint (core/learn/runtimes.h) find those in the table, new ones
 * included. Tasks do not count, because their array does. */
#include "daemon/state/unique.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/learn/runtimes.h"
#include "core/queue/queue.h"
#include "daemon/state/estimates.h"
#include "daemon/state/state.h"
#include "spec/fingerprint.h"

void
unique_mark(struct job *job)
{
    char print[FINGERPRINT_HEX + 1];
    if (job->fingerprint)
        return;
    fingerprint_make(&job->req, job->cwd, print);
    job->fingerprint = xstrdup(print);
}

void
unique_refresh(struct state *s, struct job *job)
{
    estimate_leave(s, job);
    free(job->fingerprint);
    job->fingerprint = NULL;
    unique_mark(job);
    estimate_enter(s, job);
}

static bool
counts(enum job_state s)
{
    return !job_state_is_final(s) || s == JOB_COMPLETED;
}

/* A duplicate in the table. */
static const struct job *
find_live(const struct state *s, const struct job *job)
{
    for (const struct job *x = history_first(s->history, job); x; x = x->same_next)
        if (!x->array && x->uid == job->uid && counts(x->state) &&
            strcmp(x->fingerprint, job->fingerprint) == 0)
            return x;
    return NULL;
}

int
unique_check(struct state *s, struct job *job, struct err *e)
{
    struct found_job found = {0};
    unique_mark(job);
    if (!job->req.unique)
        return 0;
    const struct job *same = find_live(s, job);
    if (!same && s->past->find_same(s->past->arg, job->uid, job->fingerprint, &found, e))
        return -1;
    if (!same && found.id)
        same = queue_get(s->queue, found.id);
    if (same)
        found = (struct found_job){same->id, same->state};
    if (!found.id || !counts(found.state)) /* the table is newer */
        return 0;
    return err_set(
        e, ERR_REFUSED,
        "job %u (%s) has the same command in the same folder, and this one is unique", found.id,
        job_state_name(found.state));
}
