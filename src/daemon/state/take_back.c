/* See take_back.h. Other changes of a stored job stay in memory, marked for a later commit. */
#include "daemon/state/take_back.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/ids.h"
#include "core/queue/queue.h"
#include "daemon/state/array_turns.h"
#include "daemon/state/depend_turns.h"
#include "daemon/state/job_facts.h"
#include "daemon/state/learned_demands.h"
#include "daemon/state/state.h"
#include "daemon/state/unique.h"

static struct job *
load(const struct state *s, const struct job *job)
{
    struct err unused;
    return s->past->load_job(s->past->arg, job->id, &unused);
}

/* A task that has ended again stays: its array counts that end. */
bool
take_back_requeue(struct state *s, struct job *job, starts_job_fn gone, void *arg)
{
    bool counts = job->array && queue_get(s->queue, job->array);
    if (counts && job_state_is_final(job->state))
        return false;
    struct job *stored = load(s, job);
    if (!stored || !job_state_is_final(stored->state)) {
        job_free(stored);
        return false;
    }
    if (counts)
        arrays_ended_before(s, job, stored);
    if (gone)
        gone(arg, stored);
    jobs_retire(s, job);
    job_free(stored);
    return true;
}

static bool
is_waiting(const struct job *job)
{
    return job->state == JOB_PENDING || job->state == JOB_HELD;
}

static bool
waits_for_any(const struct job *job, const uint32_t *ids, size_t n)
{
    for (int i = 0; i < job->req.n_deps; i++)
        if (bsearch(&job->req.deps[i].job, ids, n, sizeof *ids, ids_compare))
            return true;
    return false;
}

static void
swap_texts(char **a, char **b)
{
    char *was = *a;
    *a = *b;
    *b = was;
}

/* The event of the update has been made: removing its kind drops it. */
static void
forget_update(struct state *s, const struct job *job)
{
    for (size_t i = 0; i < s->changes.n_read; i++) {
        struct change *x = &s->changes.list[i];
        if (x->type == CHANGE_UPDATED && x->job == job->id)
            x->kind[0] = '\0';
    }
}

void
take_back_request(struct state *s, struct job *job, const uint32_t *ids, size_t n)
{
    struct job *stored = is_waiting(job) && waits_for_any(job, ids, n) ? load(s, job) : NULL;
    if (!stored)
        return;
    depend_leave(s, job);
    struct request was = job->req;
    job->req = stored->req;
    stored->req = was;
    swap_texts(&job->cwd, &stored->cwd);
    job->declared_mib = stored->declared_mib;
    job->begin_us = stored->begin_us;
    if (is_waiting(stored))
        job->state = stored->state;
    unique_refresh(s, job);
    learned_apply(s, job);
    forget_update(s, job);
    depend_enter(s, job, NULL);
    job_free(stored);
}
