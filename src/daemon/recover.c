/* Recovery: see recover.h and "Recovery" in ARCHITECTURE.md. For each attempt without an
 * outcome the folder decides: lock held, its shepherd lives, connect and go on; lock free and
 * an exit record, apply it; neither, see supervisor_watch.c. The database says only that the
 * attempt was decided. */
#include "daemon/recover.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "core/ledger/ledger.h"
#include "core/plan/fair.h"
#include "core/queue/queue.h"
#include "daemon/attempt/attempt_folder.h"
#include "daemon/attempt/supervisor_watch.h"
#include "daemon/common/daemon.h"
#include "daemon/gpu/card_health.h"
#include "daemon/gpu/prober.h"
#include "daemon/slurm/slurm_engine.h"
#include "daemon/state/array_turns.h"
#include "daemon/state/depend_turns.h"
#include "daemon/state/job_facts.h"
#include "store/store.h"

/* An attempt under way, as it was stored: which card was which. */
struct recovered {
    struct recovered *next;
    uint32_t job;
    int n;
    char *uuids[GPU_MAX];
};

static void
remember_cards(struct daemon *d, const struct job *job, const char *const *uuids)
{
    struct recovered *r = xcalloc(1, sizeof *r);
    r->job = job->id;
    r->n = job->run->n_gpus;
    for (int i = 0; i < r->n; i++)
        r->uuids[i] = xstrdup(uuids[i]);
    r->next = d->recovered;
    d->recovered = r;
}

/* A damaged database may have lost the row of an attempt under way. What its folder and its
 * processes say is still found by its number; Slurm is asked under a key of its own. */
static void
remake_attempt(struct daemon *d, struct job *job)
{
    struct err e;
    log_error("job=%u event=attempt-lost the database has no row of its attempt", job->id);
    if (job->attempts < 1)
        job->attempts = 1;
    struct attempt *run = job->run = attempt_new(job->attempts);
    if (job->req.demand.engine == ENGINE_SLURM)
        slurm_make_key(run->sent.key, sizeof run->sent.key);
    if (store_attempt_insert(d->store, job->id, run, NULL, &e) < 0)
        log_error("job=%u event=attempt-not-kept %s", job->id, e.text);
}

static int
on_live(struct job *job, const char *const *uuids, void *arg)
{
    struct daemon *d = arg;
    if (job_state_is_active(job->state)) {
        if (!job->run)
            remake_attempt(d, job);
        remember_cards(d, job, uuids);
    }
    job->env_bytes = (int32_t)store_env_bytes(d->store, job->env);
    jobs_recover(&d->state, job);
    return 0;
}

static void
on_usage(uint32_t uid, double gpu_seconds, int64_t at_us, void *arg)
{
    fair_restore(arg, uid, gpu_seconds, at_us);
}

int
recover_load(struct daemon *d, struct err *e)
{
    const char *before = store_boot_id(d->store);
    d->rebooted = before[0] && strcmp(before, clock_boot_id()) != 0;
    if (store_usage_load(d->store, on_usage, d->fair, e) < 0)
        return -1;
    if (store_jobs_load_live(d->store, on_live, d, e) < 0)
        return -1;
    depend_recover(&d->state);
    return 0;
}

/* The card of this UUID; one that the machine no longer shows is entered as lost, so that
 * the job beside it can be supervised to its end. */
static int
find_card(struct daemon *d, const char *uuid)
{
    int card = ledger_find_uuid(d->ledger, uuid);
    if (card >= 0 || ledger_n_cards(d->ledger) == GPU_MAX)
        return card;
    struct gpu_info info = {.index = ledger_n_cards(d->ledger), .minor = -1, .numa = -1};
    snprintf(info.uuid, sizeof info.uuid, "%s", uuid);
    card = ledger_add_card(d->ledger, &info);
    health_card_added(d, card);
    health_missing(d, card);
    return card;
}

static void
take_up(struct daemon *d, const struct recovered *r)
{
    struct job *job = queue_get(d->queue, r->job);
    struct attempt *run = job->run;
    int n = 0;
    for (int i = 0; i < r->n; i++) {
        int card = find_card(d, r->uuids[i]);
        if (card < 0)
            continue;
        run->peak_mib[n] = run->peak_mib[i];
        run->now_mib[n] = -1;
        run->gpus[n++] = (uint8_t)card;
    }
    run->n_gpus = (uint8_t)n;
    struct demand d_run = job->req.demand;
    d_run.vram_mib = run->vram_mib;
    ledger_hold(d->ledger, job->id, &d_run, run->gpus, n);
    ledger_rebind(d->ledger, job->id, (uint64_t)run->nodes);
    for (int i = 0; i < n; i++)
        ledger_restore_peak(d->ledger, run->gpus[i], job->id, run->peak_mib[i]);
    if (d_run.engine == ENGINE_SLURM)
        slurm_recover(d, job);
    else
        watch_recover(d, job);
}

int
recover_attempts(struct daemon *d, struct err *e)
{
    size_t live = queue_n(d->queue), active = queue_n_active(d->queue);
    if (folders_clean(d, e) < 0)
        return -1;
    struct recovered *next;
    for (struct recovered *r = d->recovered; r; r = next) {
        next = r->next;
        take_up(d, r);
        for (int i = 0; i < r->n; i++)
            free(r->uuids[i]);
        free(r);
    }
    d->recovered = NULL;
    slurm_take_up(d);
    arrays_recovered(&d->state);
    if (active > 0)
        prober_forget(d->prober);
    if (live > 0)
        log_info("event=recovered jobs=%zu active=%zu rebooted=%d", live, active, d->rebooted);
    d->rebooted = false; /* what this daemon starts is of this boot */
    (void)e;
    return 0;
}
