/* See job_rows.h. Called by turn.c. */
#include "daemon/turn/job_rows.h"

#include "base/err.h"
#include "core/ledger/ledger.h"
#include "core/plan/fair.h"
#include "daemon/state/state.h"
#include "daemon/turn/runs_kept.h"
#include "store/store.h"

static void
write_attempt(struct store *store, const struct state *s, const struct job *job)
{
    const char *uuids[GPU_MAX];
    struct err e;
    for (int i = 0; i < job->run->n_gpus; i++)
        uuids[i] = ledger_card(s->ledger, job->run->gpus[i])->info.uuid;
    store_attempt_insert(store, job->id, job->run, uuids, &e);
}

void
rows_write(struct store *store, const struct state *s, struct job *job)
{
    struct err e;
    if (job->unsaved & SAVE_INSERT)
        store_job_insert(store, job, &e);
    else if (job->unsaved & (SAVE_JOB | SAVE_ENDED))
        store_job_update(store, job, &e);
    if (job->unsaved & SAVE_ENDED)
        runs_save(store, s->history, job);
    if (job->unsaved & SAVE_DETACH)
        store_job_detach(store, job->id, &e);
    if (job->unsaved & SAVE_SETTLED) {
        int64_t now_us = state_wall_us(s);
        store_usage_set(store, job->uid, fair_usage(s->fair, job->uid, now_us), now_us, &e);
    }
    if (job->unsaved & SAVE_ATTEMPT_NEW)
        write_attempt(store, s, job);
    else if (job->unsaved & SAVE_ATTEMPT)
        store_attempt_update(store, job->id, job->run, &e);
}
