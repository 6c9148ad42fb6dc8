/* Why a job waits; see wait_reason.h. The planner reports what the last plan recorded, and for
 * GPUs what was measured; this file adds which jobs have to end and the health of GPUs. Called
 * wherever a reason is shown. */
#include "daemon/view/wait_reason.h"

#include "base/clock.h"
#include "base/err.h"
#include "core/place/place.h"
#include "core/plan/plan.h"
#include "core/queue/job.h"
#include "daemon/attempt/machine_trouble.h"
#include "daemon/common/instance.h"
#include "daemon/common/turn_due.h"
#include "daemon/gpu/card_health.h"
#include "daemon/gpu/machine_cards.h"
#include "daemon/gpu/prober.h"
#include "daemon/request/roles.h"
#include "daemon/slurm/slurm_engine.h"
#include "daemon/view/views.h"

/* Maximum number of queue lines between two plans for which the jobs that have to end are
 * computed, so that a list of thousands of kinds of jobs delays nothing; for the others the
 * nearest GPU is named. */
#define NEEDS_TOLD_MAX 64

/* A job sent to Slurm waits in Slurm's queue; reasons of this machine do not apply to it. */
static void
why_not_on_slurm(const struct views *views, const struct job *job, struct blocked *why)
{
    if (job->state == JOB_STARTING)
        *why = (struct blocked){
            .reason = REASON_SLURM, .gpu = -1, .trouble = slurm_tell(views->slurm, job)};
    else if (why->reason == REASON_SLURM)
        why->trouble = slurm_trouble(views->slurm);
}

void
why_blocked(struct views *views, const struct job *job, struct blocked *why)
{
    const struct err *trouble = turn_disk_trouble(views->inst);
    plan_tell_unseen(views->inst->planner, views->inst->ledger, job);
    if (!trouble && plan_may_tell_needs(job) && views->needs_told < NEEDS_TOLD_MAX) {
        views->needs_told++;
        plan_tell_needs(views->inst->queue, views->inst->ledger, job, clock_wall_us());
    }
    plan_explain(views->inst->queue, job, why);
    plan_explain_reserved(views->inst->queue, views->inst->planner, job, why);
    if (why->reason == REASON_PROBE && why->gpu < 0)
        why->trouble = prober_error(views->cards->prober);
    const char *machine = machine_says_of(views->attempts, job->uid);
    bool is_users = machine && !machine_says(views->attempts);
    if (is_users && roles_is_hidden(views->roles, job->uid))
        machine = "what its user's jobs need is lacking"; /* may name a path of theirs */
    if (machine && job->kind)
        *why = (struct blocked){.reason = REASON_MACHINE, .gpu = -1, .trouble = machine};
    else if (why->reason == REASON_MACHINE) /* it is over; the next plan is about to be made */
        *why = (struct blocked){.reason = REASON_PRIORITY, .gpu = -1};
    if (job->req.demand.engine == ENGINE_SLURM)
        why_not_on_slurm(views, job, why);
    if (trouble && job->kind) /* the job is in a queue line, and no plan is made */
        *why = (struct blocked){.reason = REASON_DISK, .gpu = -1, .trouble = trouble->text};
}

void
why_waits(struct views *views, const struct job *job, struct blocked *why, struct buf *text)
{
    why_blocked(views, job, why);
    blocked_text(why, &job->req.demand, text);
    health_explain(views->cards, why, text);
    blocked_text_ahead(why, text);
}
