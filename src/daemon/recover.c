/* Recovery: see recover.h and "Recovery" in ARCHITECTURE.md. For each attempt without an
 * outcome the folder decides: lock held, its shepherd lives, connect and go on; lock free and
 * an exit record, apply it; neither, see supervisor_watch.c. What the database says of jobs and
 * their GPUs is turn/jobs_kept.c's. */
#include "daemon/recover.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/queue/queue.h"
#include "daemon/attempt/attempt_folder.h"
#include "daemon/attempt/attempts.h"
#include "daemon/attempt/supervisor_watch.h"
#include "daemon/common/daemon.h"
#include "daemon/gpu/card_health.h"
#include "daemon/gpu/machine_cards.h"
#include "daemon/gpu/prober.h"
#include "daemon/slurm/slurm_engine.h"
#include "daemon/turn/jobs_kept.h"
#include "store/store.h"

static void
card_missing(void *arg, int card)
{
    struct daemon *d = arg;
    health_card_added(d->cards, card);
    health_missing(d->cards, card);
}

static void
take_up(void *arg, struct job *job)
{
    struct daemon *d = arg;
    if (job->req.demand.engine == ENGINE_SLURM)
        slurm_recover(d->slurm, job);
    else
        watch_recover(d->attempts, job);
}

static struct kept_host
host_of(struct daemon *d)
{
    return (struct kept_host){
        .arg = d, .make_key = slurm_make_key, .card_missing = card_missing, .take_up = take_up};
}

int
recover_load(struct daemon *d, struct err *e)
{
    const char *before = store_boot_id(d->inst.store);
    const struct kept_host host = host_of(d);
    d->attempts->rebooted = before[0] && strcmp(before, clock_boot_id()) != 0;
    return jobs_load(d->inst.state, d->inst.store, &host, &d->attempts_kept, e);
}

int
recover_attempts(struct daemon *d, struct err *e)
{
    const struct kept_host host = host_of(d);
    size_t live = queue_n(d->inst.queue), active = queue_n_active(d->inst.queue);
    if (folders_clean(d->attempts, e) < 0)
        return -1;
    attempts_take_up(d->inst.state, d->attempts_kept, &host);
    d->attempts_kept = NULL;
    slurm_take_up(d->slurm);
    if (active > 0)
        prober_forget(d->cards->prober);
    if (live > 0)
        log_info("event=recovered jobs=%zu active=%zu rebooted=%d", live, active,
                 d->attempts->rebooted);
    d->attempts->rebooted = false; /* what this daemon starts is of this boot */
    return 0;
}
