/* Recovery: see recover.h and "Recovery" in ARCHITECTURE.md. For each attempt without an
 * outcome its folder decides. Lock held: the supervisor lives, so connect and continue. Lock
 * free with an exit record: apply the record. Neither: see supervisor_watch.c.
 * turn/jobs_kept.c loads what the database has about jobs and their GPUs. */
#include "daemon/recover.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/queue/queue.h"
#include "daemon/attempt/attempt_folder.h"
#include "daemon/attempt/attempts.h"
#include "daemon/attempt/supervisor_watch.h"
#include "daemon/common/instance.h"
#include "daemon/gpu/card_health.h"
#include "daemon/gpu/machine_cards.h"
#include "daemon/gpu/prober.h"
#include "daemon/slurm/slurm_engine.h"
#include "daemon/turn/jobs_kept.h"
#include "store/store.h"

static void
card_missing(void *arg, int card)
{
    const struct recovery *r = arg;
    health_card_added(r->cards, card);
    health_missing(r->cards, card);
}

static void
take_up(void *arg, struct job *job)
{
    struct recovery *r = arg;
    if (job->req.demand.engine == ENGINE_SLURM)
        slurm_recover(r->slurm, job);
    else
        watch_recover(r->attempts, job);
}

static struct kept_host
host_of(struct recovery *r)
{
    return (struct kept_host){
        .arg = r, .make_key = slurm_make_key, .card_missing = card_missing, .take_up = take_up};
}

int
recover_load(struct recovery *r, struct err *e)
{
    const char *before = store_boot_id(r->inst->store);
    const struct kept_host host = host_of(r);
    r->attempts->rebooted = before[0] && strcmp(before, clock_boot_id()) != 0;
    return jobs_load(r->inst->state, r->inst->store, &host, &r->kept, e);
}

int
recover_attempts(struct recovery *r, struct err *e)
{
    const struct kept_host host = host_of(r);
    size_t live = queue_n(r->inst->queue), active = queue_n_active(r->inst->queue);
    if (folders_clean(r->attempts, e) < 0)
        return -1;
    attempts_take_up(r->inst->state, r->kept, &host);
    r->kept = NULL;
    slurm_take_up(r->slurm);
    if (active > 0)
        prober_forget(r->cards->prober);
    if (live > 0)
        log_info("event=recovered jobs=%zu active=%zu rebooted=%d", live, active,
                 r->attempts->rebooted);
    r->attempts->rebooted = false; /* attempts started from now on are of this boot */
    return 0;
}
