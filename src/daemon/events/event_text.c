/* Changes of jobs as events: see event_text.h and docs/protocol.md, "An event". */
#include "daemon/events/event_text.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "core/ledger/ledger.h"
#include "core/queue/endings.h"
#include "core/queue/queue.h"
#include "daemon/common/event_say.h"
#include "daemon/common/event_words.h"
#include "daemon/common/instance.h"
#include "daemon/common/user_names.h"
#include "daemon/outbox/outbox_fill.h"
#include "daemon/state/changes.h"

static void
write_vram(struct jsonw *w, const char *key, int64_t mib)
{
    if (mib > 0)
        jsonw_kint(w, key, mib);
    else
        jsonw_knull(w, key);
}

static void
write_started(struct instance *inst, struct jsonw *w, const struct job *job)
{
    const struct attempt *run = job->run;
    events_write_gpus(w, run);
    if (job->req.demand.engine == ENGINE_SLURM) /* its key is made later */
        jsonw_kstr(w, "on", "slurm");
    write_vram(w, "vram_mib", run->vram_mib);
    if (run->cap_mib > 0)
        jsonw_kint(w, "cap_mib", run->cap_mib);
    if (job->req.demand.share_permille > 0) {
        jsonw_knum(w, "share", job->req.demand.share_permille / 1000.0);
    }
    if (run->n_gpus > 0)
        write_vram(w, "total_mib", ledger_card(inst->ledger, run->gpus[0])->info.total_mib);
    jsonw_kint(w, "attempt", run->number);
}

static void
write_numbers(struct instance *inst, struct jsonw *w, const struct job *job,
              enum job_state state)
{
    const struct attempt *run = job->run;
    const struct ending *e = &run->ending;
    int32_t peak = attempt_peak_mib(run);
    enum verdict v = state == JOB_COMPLETED
                         ? account_verdict(run->vram_mib, peak,
                                           (int32_t)(inst->config.tolerance * 1000 + 0.5))
                         : VERDICT_NONE;
    if (e->outcome == OUTCOME_EXITED)
        jsonw_kint(w, "exit_code", e->code);
    else if (e->code >= 0)
        jsonw_kint(w, "stop_code", e->code);
    if (e->signal)
        jsonw_kint(w, "signal", e->signal);
    jsonw_kint(w, "run_ms", e->run_ms);
    jsonw_kint(w, "attempt", run->number);
    events_write_gpus(w, run);
    events_write_peaks(w, run);
    if (attempt_util(run) >= 0)
        jsonw_kint(w, "util", attempt_util(run));
    write_vram(w, "vram_mib", run->vram_mib);
    if (v != VERDICT_NONE)
        jsonw_kstr(w, "verdict", verdict_name(v));
    if (run->vram_mib > 0 && peak >= 0)
        jsonw_kint(w, "percent", account_percent(run->vram_mib, peak));
}

static void
write_ended(struct instance *inst, struct jsonw *w, const struct job *job,
            const struct change *x)
{
    jsonw_kstr(w, "state", job_state_name(x->state));
    jsonw_kint(w, "exit_status", x->exit_status);
    if (job->run && x->state != JOB_INFEASIBLE)
        write_numbers(inst, w, job, x->state);
    if (job->run && job->run->command_pid > 0) /* for followers that missed `launched` */
        jsonw_kint(w, "pid", job->run->command_pid);
    if (x->by)
        jsonw_kstr(w, "by", x->by);
    jsonw_kstr(w, "text", x->text);
}

/* Tries allowed for this kind of retry. */
static int32_t
tries_allowed(const struct job *job, bool oom)
{
    if (oom)
        return 1 + job->req.oom_retries;
    return 1 + (job->run->ending.outcome == OUTCOME_TIMEOUT ? job->req.max_requeues
                                                            : job->req.retries);
}

static void
write_retried(struct jsonw *w, const struct job *job, const struct change *x)
{
    const struct attempt *run = job->run;
    auto_buf struct buf text = BUF_INIT;
    attempt_end_text(run, &text);
    bool oom = (run->ending.oom == OOM_CUDA || run->ending.outcome == OUTCOME_EXCEEDED) &&
               x->vram_old != x->vram;
    write_vram(w, "vram_mib_old", x->vram_old);
    write_vram(w, "vram_mib", x->vram);
    jsonw_kint(w, "attempt", run->number);
    jsonw_kint(w, "allowed", tries_allowed(job, oom || run->ending.oom == OOM_CUDA));
    jsonw_kbool(w, "oom", run->ending.oom == OOM_CUDA);
    events_write_peaks(w, run);
    if (x->begin_us)
        jsonw_ktime(w, "begin", x->begin_us);
    jsonw_kstr(w, "text", buf_str(&text));
}

static void
write_back(struct jsonw *w, const struct change *x)
{
    jsonw_kint(w, "attempt", x->number);
    jsonw_kstr(w, "by", x->by);
    jsonw_kstr(w, "text", "by request");
}

static void
write_by(struct jsonw *w, const struct change *x)
{
    const char *by = x->by ? x->by : x->is_asked ? daemon_user_name(x->by_uid) : NULL;
    if (by)
        jsonw_kstr(w, "by", by);
}

static void
write_delayed(struct jsonw *w, const struct change *x)
{
    jsonw_ktime(w, "promised", x->begin_us);
    if (x->other)
        jsonw_kint(w, "for", x->other);
    jsonw_kstr(w, "text", x->text);
}

/* Writes the fields of this kind of event. */
static void
write_own(struct instance *inst, struct jsonw *w, const struct job *job, const struct change *x)
{
    switch (x->type) {
    case CHANGE_ENTERED:
        if (job->key)
            jsonw_kstr(w, "key", job->key);
        break;
    case CHANGE_STARTED:
        write_started(inst, w, job);
        break;
    case CHANGE_ENDED:
        write_ended(inst, w, job, x);
        break;
    case CHANGE_RETRIED:
        write_retried(w, job, x);
        break;
    case CHANGE_BACK:
        write_back(w, x);
        break;
    case CHANGE_PREEMPT:
        jsonw_kint(w, "for", x->other);
        break;
    case CHANGE_DELAYED:
        write_delayed(w, x);
        break;
    case CHANGE_PRIORITY:
        jsonw_kint(w, "priority", x->number);
        write_by(w, x);
        break;
    case CHANGE_HELD:
    case CHANGE_RELEASED:
    case CHANGE_UPDATED:
    case CHANGE_CANCEL:
    case CHANGE_REQUEUE:
        write_by(w, x);
        break;
    case CHANGE_SAID:
    case CHANGE_CANCEL_MORE:
    case CHANGE_LAUNCHED:
    case CHANGE_AWAITED:
    case CHANGE_DROPPED:
        break;
    }
}

void
event_read(struct instance *inst, struct change *x)
{
    static const char *const kinds[] = {
        [CHANGE_ENTERED] = "submitted", [CHANGE_STARTED] = "started",
        [CHANGE_ENDED] = "ended",       [CHANGE_RETRIED] = "requeued",
        [CHANGE_BACK] = "requeued",     [CHANGE_HELD] = "held",
        [CHANGE_RELEASED] = "released", [CHANGE_UPDATED] = "updated",
        [CHANGE_PRIORITY] = "updated",  [CHANGE_CANCEL] = "cancelled",
        [CHANGE_REQUEUE] = "requeue",   [CHANGE_PREEMPT] = "preempted",
        [CHANGE_DELAYED] = "delayed",   [CHANGE_DROPPED] = NULL,
    };
    const struct job *job = kinds[x->type] ? queue_get(inst->queue, x->job) : NULL;
    if (!job)
        return;
    struct jsonw *w = event_begin(inst, x, kinds[x->type], job);
    write_own(inst, w, job, x);
    turn_event_end(inst);
    x->hooks = hooks_concern(&inst->config, job, x->kind);
}
