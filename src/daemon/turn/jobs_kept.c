/* See jobs_kept.h. Called by recover.c. The database records only that an attempt was decided
 * and on which GPUs, by UUID; their numbers may have changed. */
#include "daemon/turn/jobs_kept.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "core/ledger/ledger.h"
#include "core/plan/fair.h"
#include "core/queue/job.h"
#include "core/queue/queue.h"
#include "daemon/state/array_turns.h"
#include "daemon/state/depend_turns.h"
#include "daemon/state/job_facts.h"
#include "daemon/state/state.h"
#include "store/store.h"

/* An attempt under way as stored, with the UUIDs of its GPUs. */
struct attempts_kept {
    struct attempts_kept *next;
    uint32_t job;
    int n;
    char *uuids[GPU_MAX];
};

struct loading {
    struct state *state;
    struct store *store;
    const struct kept_host *host;
    struct attempts_kept *attempts;
};

static void
remember_cards(struct loading *l, const struct job *job, const char *const *uuids)
{
    struct attempts_kept *r = xcalloc(1, sizeof *r);
    r->job = job->id;
    r->n = job->run->n_gpus;
    for (int i = 0; i < r->n; i++)
        r->uuids[i] = xstrdup(uuids[i]);
    r->next = l->attempts;
    l->attempts = r;
}

/* A damaged database may have lost the row of an attempt under way. Its folder and processes
 * are still found by its number; for Slurm it gets a new key. */
static void
remake_attempt(const struct loading *l, struct job *job)
{
    struct err e;
    log_error("job=%u event=attempt-lost the database has no row of its attempt", job->id);
    if (job->attempts < 1)
        job->attempts = 1;
    struct attempt *run = job->run = attempt_new(job->attempts);
    if (job->req.demand.engine == ENGINE_SLURM)
        l->host->make_key(run->sent.key, sizeof run->sent.key);
    if (store_attempt_insert(l->store, job->id, run, NULL, &e) < 0)
        log_error("job=%u event=attempt-not-kept %s", job->id, e.text);
}

static int
on_live(struct job *job, const char *const *uuids, void *arg)
{
    struct loading *l = arg;
    if (job_state_is_active(job->state)) {
        if (!job->run)
            remake_attempt(l, job);
        remember_cards(l, job, uuids);
    }
    job->env_bytes = (int32_t)store_env_bytes(l->store, job->env);
    jobs_recover(l->state, job);
    return 0;
}

static void
on_usage(uint32_t uid, double gpu_seconds, int64_t at_us, void *arg)
{
    fair_restore(arg, uid, gpu_seconds, at_us);
}

int
jobs_load(struct state *s, struct store *store, const struct kept_host *host,
          struct attempts_kept **attempts, struct err *e)
{
    struct loading l = {.state = s, .store = store, .host = host};
    if (store_usage_load(store, on_usage, s->fair, e) < 0 ||
        store_jobs_load_live(store, on_live, &l, e) < 0)
        return -1;
    *attempts = l.attempts;
    depend_recover(s);
    return 0;
}

/* The GPU with this UUID. A GPU that is no longer present is entered as lost, so that the job
 * on it can be supervised to its end. */
static int
find_card(const struct state *s, const char *uuid, const struct kept_host *host)
{
    int card = ledger_find_uuid(s->ledger, uuid);
    if (card >= 0 || ledger_n_cards(s->ledger) == GPU_MAX)
        return card;
    struct gpu_info info = {.index = ledger_n_cards(s->ledger), .minor = -1, .numa = -1};
    snprintf(info.uuid, sizeof info.uuid, "%s", uuid);
    card = ledger_add_card(s->ledger, &info);
    host->card_missing(host->arg, card);
    return card;
}

static void
take_up(struct state *s, const struct attempts_kept *r, const struct kept_host *host)
{
    struct job *job = queue_get(s->queue, r->job);
    struct attempt *run = job->run;
    int n = 0;
    for (int i = 0; i < r->n; i++) {
        int card = find_card(s, r->uuids[i], host);
        if (card < 0)
            continue;
        run->peak_mib[n] = run->peak_mib[i];
        run->now_mib[n] = -1;
        run->gpus[n++] = (uint8_t)card;
    }
    run->n_gpus = (uint8_t)n;
    struct demand had = job->req.demand;
    had.vram_mib = run->vram_mib;
    ledger_hold(s->ledger, job->id, &had, run->gpus, n);
    ledger_rebind(s->ledger, job->id, (uint64_t)run->nodes);
    for (int i = 0; i < n; i++)
        ledger_restore_peak(s->ledger, run->gpus[i], job->id, run->peak_mib[i]);
    host->take_up(host->arg, job);
}

void
attempts_take_up(struct state *s, struct attempts_kept *attempts, const struct kept_host *host)
{
    struct attempts_kept *next;
    for (struct attempts_kept *r = attempts; r; r = next) {
        next = r->next;
        take_up(s, r, host);
        for (int i = 0; i < r->n; i++)
            free(r->uuids[i]);
        free(r);
    }
    arrays_recovered(s);
}
