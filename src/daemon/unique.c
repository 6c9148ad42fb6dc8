/* --unique: see unique.h. Called by the methods that make jobs. What has been committed is
 * found by the store's index; what is new in this turn is asked of the turn. */
#include "daemon/unique.h"

#include <string.h>

#include "base/err.h"
#include "core/queue.h"
#include "daemon/daemon.h"
#include "daemon/turn.h"
#include "spec/fingerprint.h"
#include "store/store.h"

void
unique_mark(struct job *job)
{
    char print[FINGERPRINT_HEX + 1];
    if (job->fingerprint)
        return;
    fingerprint_make(&job->req, job->cwd, NULL, print);
    job->fingerprint = xstrdup(print);
}

static bool
counts(enum job_state s)
{
    return !job_state_is_final(s) || s == JOB_COMPLETED;
}

static bool
is_same(const struct job *job, const void *arg)
{
    const struct job *x = arg;
    return job->uid == x->uid && counts(job->state) && job->fingerprint &&
           strcmp(job->fingerprint, x->fingerprint) == 0;
}

int
unique_check(struct daemon *d, struct job *job, struct err *e)
{
    struct store_found found = {0};
    unique_mark(job);
    if (!job->req.unique)
        return 0;
    const struct job *same = turn_find_new(d, is_same, job);
    if (!same && store_find_same(d->store, job->uid, job->fingerprint, &found, e))
        return -1;
    if (!same && found.id)
        same = queue_get(d->queue, found.id);
    if (same)
        found = (struct store_found){same->id, same->state};
    if (!found.id || !counts(found.state)) /* the table knows better what has just ended */
        return 0;
    return err_set(e, ERR_REFUSED,
                   "the same command in the same folder is job %u already (%s), and it is to "
                   "be unique",
                   found.id, job_state_name(found.state));
}
