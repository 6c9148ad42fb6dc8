/* See state.h. */
#include "daemon/state/state.h"

#include "base/buf.h"
#include "base/counted_text.h"
#include "base/err.h"
#include "base/parse.h"
#include "core/learn/runtimes.h"
#include "core/ledger/ledger.h"
#include "core/place/place.h"
#include "core/plan/limits.h"
#include "core/queue/queue.h"
#include "daemon/state/depend_turns.h"

void
state_open(struct state *s)
{
    s->history = history_new();
    s->depend = depend_new();
}

void
state_close(struct state *s)
{
    history_free(s->history);
    depend_free(s->depend);
    changes_free(&s->changes);
    shared_free(s->last_cwd);
    shared_free(s->last_user);
    shared_free(s->last_rlimits);
}

/* --- changes: noted with the current time and the user being served --- */

int64_t
state_wall_us(const struct state *s)
{
    return s->around->wall_us(s->around->arg);
}

/* The other changes free no GPU and leave the queue as it is. Memory still in use, for
 * example, is planned with once a sample shows that it is free. */
static bool
may_start_more(enum change_type type)
{
    return type != CHANGE_AWAITED && type != CHANGE_CANCEL_MORE && type != CHANGE_LAUNCHED;
}

struct change *
state_note(struct state *s, enum change_type type, const struct job *job)
{
    struct change *x = changes_add(&s->changes, type);
    x->at_us = state_wall_us(s);
    x->is_asked = s->asker.is_known;
    x->by_uid = s->asker.uid;
    if (job) {
        x->job = job->id;
        x->file = job->file;
        x->of_live = queue_get(s->queue, job->id) != NULL;
    }
    changes_wake(&s->changes, may_start_more(type));
    return x;
}

void
state_save(struct state *s, struct job *job, unsigned what)
{
    changes_mark(&s->changes, job, what);
}

/* --- limits on what a job may ever have; checked for every job that enters the table --- */

/* Lower bound on the demand's VRAM, wherever it is placed. */
static int64_t
least_vram(const struct state *s, const struct demand *demand, int n)
{
    int64_t least = INT64_MAX;
    for (int i = 0; n > 0 && i < ledger_n_cards(s->ledger); i++) {
        int64_t total = ledger_card(s->ledger, i)->info.total_mib;
        if (ledger_card(s->ledger, i)->gone)
            continue;
        int64_t mib = demand_is_whole(demand) ? total : demand_vram_mib(demand, total);
        least = mib < least ? mib : least;
    }
    return least == INT64_MAX ? 0 : least * n;
}

static int
check_limit(const struct state *s, const struct demand *demand, const struct limit *limit,
            const char *whose, const char *prefix, struct err *e)
{
    char asked[24], most[24];
    int n = demand->n_ids ? demand->n_ids : demand->gpus;
    int64_t vram_mib = least_vram(s, demand, n);
    if (limit->gpus > 0 && n > limit->gpus)
        return err_set(e, ERR_REFUSED,
                       "it could never start: it needs %d GPUs, and %s may have %d at the same "
                       "time (%smax_gpus)",
                       n, whose, limit->gpus, prefix);
    if (limit->vram_mib > 0 && vram_mib > limit->vram_mib)
        return err_set(e, ERR_REFUSED,
                       "it could never start: it needs %s of VRAM, and %s may have %s at the "
                       "same time (%smax_vram_mib)",
                       format_mib(vram_mib, asked), whose, format_mib(limit->vram_mib, most),
                       prefix);
    return 0;
}

int
state_check_limits(const struct state *s, uint32_t uid, const struct demand *demand,
                   struct err *e)
{
    if (demand->engine == ENGINE_SLURM)
        return 0; /* the limits apply to this machine only */
    return check_limit(s, demand, &s->limits->all, "all users together", "", e) ||
                   check_limit(s, demand, limits_of(s->limits, uid), s->around->user_name(uid),
                               "user_", e) < 0
               ? -1
               : 0;
}

bool
state_could_start(const struct state *s, uint32_t uid, const struct demand *demand,
                  struct buf *why)
{
    struct err e = {0};
    if (!place_feasible(demand, s->ledger, why))
        return false;
    if (state_check_limits(s, uid, demand, &e) == 0)
        return true;
    if (why)
        buf_adds(why, e.text);
    return false;
}
