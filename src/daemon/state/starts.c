/* See starts.h. Called by turn_plan.c, and by turn.c after a failed commit. */
#include "daemon/state/starts.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/ids.h"
#include "base/log.h"
#include "core/ledger/ledger.h"
#include "core/plan/plan.h"
#include "core/queue/queue.h"
#include "daemon/state/array_turns.h"
#include "daemon/state/job_facts.h"
#include "daemon/state/learned_demands.h"
#include "daemon/state/state.h"
#include "daemon/state/take_back.h"

static struct attempt *
new_attempt(const struct state *s, const struct job *job, const struct placement *where)
{
    struct attempt *run = attempt_new(job->attempts + 1);
    run->n_gpus = where->n;
    memcpy(run->gpus, where->gpus, where->n);
    run->vram_mib = job->req.demand.vram_mib;
    run->cap_mib = ledger_cap_mib(s->ledger, &job->req.demand, run->gpus, run->n_gpus);
    run->nodes = (int64_t)ledger_bound(s->ledger, job->id);
    return run;
}

static bool
start_job(struct state *s, struct job *job, const struct placement *where)
{
    /* The previous attempt's row is not stored yet: it is committed first, and the next plan
     * starts the job again. */
    if (job->unsaved & SAVE_ATTEMPT || arrays_keep_back(s, job)) {
        ledger_release(s->ledger, job->id);
        return false;
    }
    const struct job_event ev = {
        .type = JOB_EV_START, .wall_us = state_wall_us(s), .run = new_attempt(s, job, where)};
    ev.run->before = job->run;
    job->run = NULL;
    const char *why = NULL;
    if (job_apply(job, &ev, &why) != JOB_NEXT)
        err_abort("job %u was planned to start but cannot: %s", job->id, why ? why : "?");
    queue_refile(s->queue, job);
    state_save(s, job, SAVE_JOB | SAVE_ATTEMPT_NEW);
    log_debug("job=%u event=started attempt=%d", job->id, job->run->number);
    state_note(s, CHANGE_STARTED, job);
    arrays_moved(s, job, JOB_PENDING);
    return true;
}

bool
starts_carry_out(struct state *s, const struct decision *x)
{
    struct job *job = queue_get(s->queue, x->job);
    switch (x->type) {
    case PLAN_START:
        /* Another singleton of this name has started in this plan. Asks the array, because a
         * task that has just been split off is always queued behind the rest of it. */
        if (job->parked & PARK_SINGLETON) {
            ledger_release(s->ledger, x->task >= 0 ? x->as : x->job);
            return false;
        }
        if (x->task >= 0)
            job = arrays_split(s, job, x->task, x->as);
        return start_job(s, job, &x->where);
    case PLAN_INFEASIBLE:
        jobs_infeasible(s, job, x->text);
        break;
    case PLAN_PREEMPT:
        jobs_preempt(s, job, x->by);
        break;
    }
    return true;
}

void
starts_undo(struct state *s, struct job *job)
{
    ledger_release(s->ledger, job->id);
    struct attempt *run = job->run;
    job->run = run->before;
    free(run);
    job->attempts--;
    job->state = JOB_PENDING;
    job->unsaved &= (uint8_t)~SAVE_ATTEMPT_NEW;
    queue_refile(s->queue, job);
    arrays_moved(s, job, JOB_STARTING);
}

void
starts_keep(struct job *job)
{
    free(job->run->before);
    job->run->before = NULL;
}

static bool
may_go(struct state *s, struct job *job)
{
    if (!job->array || !queue_get(s->queue, job->array))
        return true; /* its array had ended before, and counts as ended again */
    if (job_state_is_final(job->state))
        return false;
    arrays_unsplit(s, job);
    return true;
}

void
starts_take_back(struct state *s, starts_job_fn undone, starts_job_fn gone, void *arg)
{
    struct changes *c = &s->changes;
    size_t keep = 0, n_gone = 0;
    auto_free uint32_t *ids = xcalloc(c->n_unsaved + 1, sizeof *ids);
    for (size_t i = 0; i < c->n_unsaved; i++) {
        struct job *job = c->unsaved[i];
        if (job->unsaved & SAVE_ATTEMPT_NEW) {
            if (undone)
                undone(arg, job);
            starts_undo(s, job);
        }
        uint32_t id = job->id;
        if (job->unsaved & SAVE_INSERT && may_go(s, job)) {
            if (gone)
                gone(arg, job);
            jobs_retire(s, job);
            ids[n_gone++] = id;
        } else if (job->unsaved & SAVE_BACK && take_back_requeue(s, job, gone, arg)) {
            ids[n_gone++] = id;
        } else {
            c->unsaved[keep++] = job;
        }
    }
    c->n_unsaved = keep;
    ids_sort(ids, n_gone);
    for (size_t i = 0; i < keep && n_gone > 0; i++)
        take_back_request(s, c->unsaved[i], ids, n_gone);
    for (size_t i = 0; i < keep; i++)
        learned_not_saved(s, c->unsaved[i]);
}
