/* Demands learned from runs: see learned_demands.h. Called by job_facts.c, method_file.c and
 * berthd.c. What a run taught is stored in the transaction that makes the run's end durable.
 * The lists of equal commands (core/learn/runtimes.h) find the jobs concerned, with an array
 * as one entry. A waiting job's learned demand is not stored for its own sake: it is computed
 * again after a restart. */
#include "daemon/state/learned_demands.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "core/learn/demands.h"
#include "core/learn/runtimes.h"
#include "core/queue/endings.h"
#include "core/queue/queue.h"
#include "daemon/state/state.h"
#include "daemon/state/unique.h"

/* The learned demand, or 0 (a whole GPU, as those runs had) if nothing is known or no GPU here
 * could provide it. */
static int32_t
demand_for(struct state *s, uint32_t uid, const struct demand *asked,
           const struct learned *known)
{
    struct demand demand = *asked;
    demand.vram_mib = learn_demand_mib(known);
    if (demand.vram_mib > 0 && !state_could_start(s, uid, &demand, NULL))
        return 0;
    return demand.vram_mib;
}

static bool
is_ours(const struct job *job)
{
    return job->req.vram_auto && (job->state == JOB_PENDING || job->state == JOB_HELD);
}

static bool
take(struct job *job, int32_t mib, int32_t runs)
{
    int32_t before = job->req.demand.vram_mib;
    job->auto_runs = runs;
    if (job->oom_used > 0 && mib > 0 && mib < before)
        return false; /* raised after an out-of-memory failure; not lowered again */
    job->req.demand.vram_mib = mib;
    if (job->oom_used == 0)
        job->declared_mib = mib;
    return mib != before;
}

bool
learned_apply(struct state *s, struct job *job)
{
    struct learned known;
    struct err e;
    if (!is_ours(job))
        return false;
    unique_mark(job);
    if (s->past->peaks_get(s->past->arg, job, &known, &e))
        return false;
    return take(job, demand_for(s, job->uid, &job->req.demand, &known), known.n);
}

/* Adds the attempt's peak to *known. False: the attempt says nothing about the demand. */
static bool
learn_from(const struct attempt *run, struct learned *known)
{
    int32_t peak = attempt_peak_mib(run);
    if (run->ending.outcome == OUTCOME_EXITED && run->ending.code == 0 && peak >= 0) {
        learn_completed(known, peak);
        return true;
    }
    if (run->ending.oom == OOM_CUDA && ending_state(&run->ending) == JOB_OUT_OF_MEMORY) {
        learn_oom(known, peak > run->vram_mib ? peak : run->vram_mib);
        return true;
    }
    return false;
}

/* Updates the waiting jobs with the same command and number of GPUs. There may be 100,000 of
 * them, so the demand is computed again only where the rest of the request differs. */
static void
follow(struct state *s, struct job *job, const struct learned *known)
{
    struct demand asked, last;
    int32_t mib = -1;
    struct job *next;
    for (struct job *same = history_first(s->history, job); same; same = next) {
        next = same->same_next;
        if (same == job || !is_ours(same) || same->uid != job->uid ||
            strcmp(same->fingerprint, job->fingerprint) != 0 ||
            demand_n_gpus(&same->req.demand) != demand_n_gpus(&job->req.demand))
            continue;
        asked = same->req.demand;
        asked.vram_mib = 0;
        if (mib < 0 || memcmp(&asked, &last, sizeof asked) != 0)
            mib = demand_for(s, same->uid, &asked, known);
        last = asked;
        if (take(same, mib, known->n))
            queue_refile(s->queue, same);
    }
}

/* Learns from the job's attempt and stores the result. False: nothing was learned. */
static bool
learn(struct state *s, const struct job *job, struct learned *known)
{
    struct err e; /* errors stick to the store; its commit reports them */
    if (!job->fingerprint || !job->run || demand_n_gpus(&job->req.demand) == 0)
        return false;
    if (s->past->peaks_get(s->past->arg, job, known, &e) < 0 || !learn_from(job->run, known))
        return false;
    s->past->peaks_put(s->past->arg, job, known);
    return true;
}

void
learned_not_saved(struct state *s, struct job *job)
{
    struct learned known;
    if (job->unsaved & SAVE_SETTLED)
        (void)learn(s, job, &known);
}

void
learned_attempt_over(struct state *s, struct job *job)
{
    struct learned known;
    if (!learn(s, job, &known))
        return;
    learned_apply(s, job); /* in case it runs again */
    follow(s, job, &known);
}

void
learned_recover(struct state *s)
{
    size_t n;
    auto_free struct job **jobs =
        queue_list_by_id(s->queue, 1U << JOB_PENDING | 1U << JOB_HELD, &n);
    for (size_t i = 0; i < n; i++)
        if (learned_apply(s, jobs[i]))
            queue_refile(s->queue, jobs[i]);
}
