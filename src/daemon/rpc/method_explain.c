/* `explain`: why a job waits or why it ended, as a sentence, what would help, and the numbers
 * behind both. The sentences come from the core (place_text.c, endings.c, advice.c); this file
 * adds the job's position in the queue and when it is expected to start or to end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/ids.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "core/ledger/ledger.h"
#include "core/plan/advice.h"
#include "core/plan/lineup.h"
#include "core/plan/plan.h"
#include "core/queue/array.h"
#include "core/queue/endings.h"
#include "core/queue/queue.h"
#include "daemon/attempt/cpu_nodes.h"
#include "daemon/common/event_words.h"
#include "daemon/common/instance.h"
#include "daemon/request/roles.h"
#include "daemon/request/selection.h"
#include "daemon/rpc/long_work.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/rpc.h"
#include "daemon/slurm/slurm_engine.h"
#include "daemon/view/expected_starts.h"
#include "daemon/view/wait_reason.h"
#include "store/store.h"

struct answer {
    struct rpc *rpc;
    struct jsonw *out;
    size_t n; /* explained so far */

    /* The selected jobs, explained in pieces (long_work.h). */
    struct select select;
    const json_t *params; /* borrowed; valid while the work lasts */
    bool begun, past_done;
    struct lineup *places; /* owned; as of the beginning */
    struct select_past past;
    struct select_live live; /* the jobs that were live at the beginning */
    uint32_t *sorted;        /* owned; the same ids, sorted */
    size_t at;
};

static void
put_text(struct jsonw *w, const char *key, const struct buf *text)
{
    jsonw_kstr(w, key, text->len ? buf_str(text) : NULL);
}

static struct advice_facts
facts_of(const struct instance *inst, const struct job *job)
{
    struct advice_facts f = {.tolerance_permille =
                                 (int32_t)(inst->config.tolerance * 1000 + 0.5)};
    for (int i = 0; i < ledger_n_cards(inst->ledger); i++) {
        int64_t mib = ledger_card(inst->ledger, i)->info.total_mib;
        if (ledger_card(inst->ledger, i)->gone)
            continue;
        f.largest_mib = mib > f.largest_mib ? mib : f.largest_mib;
    }
    for (int i = 0; job->run && i < job->run->n_gpus; i++) {
        if (job->run->gpus[i] >= ledger_n_cards(inst->ledger))
            continue;
        int64_t mib = ledger_card(inst->ledger, job->run->gpus[i])->info.total_mib;
        f.card_mib = f.card_mib == 0 || mib < f.card_mib ? mib : f.card_mib;
    }
    return f;
}

/* --- pending jobs --- */

static void
put_place_in_line(const struct answer *a, const struct job *job)
{
    int64_t before = 0;
    bool waits = lineup_place(a->places, job->id, &before);
    jsonw_kint_or_null(a->out, "position", before + 1, waits);
    jsonw_kint(a->out, "waiting", lineup_waiting(a->places));
}

/* Writes when the job is expected to start, the latest start if one is promised, and the GPUs
 * reserved for it. */
static void
put_expected_start(const struct answer *a, const struct job *job)
{
    const struct planner *p = a->rpc->inst->planner;
    const struct reservation *r = planner_reservation(p);
    const struct promise *promised = planner_promise_of(p, job->id);
    bool kept = r->job == job->id && r->lasting;
    uint64_t cards = kept ? r->cards : promised ? promised->cards : 0;
    int64_t at_us = forecast_start_us(a->rpc->views, job);
    jsonw_ktime(a->out, "expected_start", at_us);
    jsonw_ktime(a->out, "expected_as_of", at_us ? forecast_as_of_us(a->rpc->views) : 0);
    jsonw_kbool(a->out, "reserved", kept || promised);
    jsonw_kbool(a->out, "firm", promised != NULL);
    jsonw_ktime(a->out, "latest_start", promised ? promised->at_us : 0);
    jsonw_karray(a->out, "cards");
    for (uint64_t rest = cards; rest; rest &= rest - 1)
        jsonw_int(a->out, __builtin_ctzll(rest));
    jsonw_end_array(a->out);
}

static void
put_share(struct jsonw *w, int32_t permille)
{
    jsonw_knum(w, "share_left", permille / 1000.0);
}

static void
put_holders(struct jsonw *w, const struct blocked *b)
{
    jsonw_karray(w, "held_by");
    for (int i = 0; i < BLOCKED_HOLDERS && b->holders[i].id; i++)
        jsonw_int(w, b->holders[i].id);
    jsonw_end_array(w);
    jsonw_kint(w, "holders", b->n_holders);
}

/* Writes the jobs that must end, and the GPUs that must become free, before it can start. */
static void
put_needs(struct jsonw *w, const struct blocked *b)
{
    if (!b->told_needs)
        return;
    jsonw_karray(w, "ends");
    for (int i = 0; i < BLOCKED_ENDS && b->ends[i].id; i++)
        jsonw_int(w, b->ends[i].id);
    jsonw_end_array(w);
    jsonw_kint(w, "ends_total", b->n_ends);
    jsonw_karray(w, "to_free");
    for (uint64_t rest = b->to_free; rest; rest &= rest - 1)
        jsonw_int(w, __builtin_ctzll(rest));
    jsonw_end_array(w);
}

/* Writes, once each, the display names of those tasks among the jobs mentioned. */
static void
put_tasks(struct jsonw *w, const struct blocked *b)
{
    const struct called *all[BLOCKED_HOLDERS + BLOCKED_ENDS + 2] = {&b->ahead, &b->waits_for};
    int n = 2;
    for (int i = 0; i < BLOCKED_HOLDERS; i++)
        all[n++] = &b->holders[i];
    for (int i = 0; i < BLOCKED_ENDS; i++)
        all[n++] = &b->ends[i];
    jsonw_kobject(w, "jobs_tasks");
    for (int i = 0; i < n; i++) {
        auto_buf struct buf text = BUF_INIT;
        char id[16];
        bool again = false;
        for (int j = 0; j < i; j++)
            again = again || all[j]->id == all[i]->id;
        if (!all[i]->array || all[i]->array == all[i]->id || again) /* still in its array */
            continue;
        snprintf(id, sizeof id, "%u", all[i]->id);
        called_text(all[i], &text);
        jsonw_kstr(w, id, buf_str(&text));
    }
    jsonw_end_object(w);
}

static void
put_blocked(struct jsonw *w, const struct blocked *b)
{
    bool on_card = b->gpu >= 0, memory = b->card_reason == REASON_GPU_MEMORY;
    jsonw_kint_or_null(w, "gpu", b->gpu, on_card);
    jsonw_kint_or_null(w, "free_mib", b->free_mib, on_card && memory);
    jsonw_kint_or_null(w, "short_mib", b->short_mib, on_card && memory);
    if (b->card_reason == REASON_GPU_SHARE)
        put_share(w, b->share_left);
    put_holders(w, b);
    put_needs(w, b);
    jsonw_kint_or_null(w, "stranger_pid", b->stranger_pid,
                       b->by == BLOCKED_BY_STRANGER && b->stranger_pid);
    jsonw_kint_or_null(w, "stranger_mib", b->stranger_mib, b->by == BLOCKED_BY_STRANGER);
    jsonw_kint_or_null(w, "ahead", b->ahead.id, b->ahead.id > 0);
    jsonw_kint_or_null(w, "waits_for", b->waits_for.id, b->waits_for.id > 0);
    put_tasks(w, b);
    jsonw_kint_or_null(w, "limit", b->limit, b->limit > 0);
    jsonw_kint_or_null(w, "xid", b->xid, b->xid > 0);
    jsonw_ktime(w, "since", b->since_us);
    jsonw_ktime(w, "until", b->until_us == INT64_MAX ? 0 : b->until_us);
}

static void
put_learned(struct jsonw *w, const struct job *job)
{
    int32_t mib = job->run && job_state_is_active(job->state) ? job->run->vram_mib
                                                              : job->req.demand.vram_mib;
    if (!job->req.vram_auto)
        return;
    jsonw_kint(w, "auto_runs", job->auto_runs);
    jsonw_kint_or_null(w, "auto_mib", mib, mib > 0);
}

static void
explain_waiting(const struct answer *a, const struct job *job)
{
    const struct advice_facts f = facts_of(a->rpc->inst, job);
    auto_buf struct buf text = BUF_INIT, help = BUF_INIT;
    struct blocked why;
    why_waits(a->rpc->views, job, &why, &text);
    advice_for_waiting(job, &why, &f, &help);
    jsonw_kstr(a->out, "reason", reason_name(why.reason));
    put_text(a->out, "text", &text);
    put_text(a->out, "help", &help);
    put_place_in_line(a, job);
    put_expected_start(a, job);
    put_blocked(a->out, &why);
}

/* --- running jobs --- */

static void
add_cards(struct buf *out, const struct attempt *run)
{
    for (int i = 0; i < run->n_gpus; i++)
        buf_addf(out, "%s%d",
                 i > 0             ? ","
                 : run->n_gpus > 1 ? " on gpus "
                                   : " on gpu ",
                 run->gpus[i]);
}

static void
add_cap(struct buf *out, const struct attempt *run)
{
    char size[24];
    if (run->cap_mib > 0)
        buf_addf(out, ", held to %s of VRAM%s", format_mib(run->cap_mib, size),
                 run->n_gpus > 1 ? " each" : "");
}

/* Adds the CPUs the job is bound to, or that it is not bound where that was to be expected. */
static void
add_bound(const struct rpc *rpc, struct buf *out, const struct job *job)
{
    const struct demand *need = &job->req.demand;
    const struct attempt *run = job->run;
    uint64_t nodes;
    if (run->nodes != 0) {
        buf_adds(out, ", bound to ");
        cpu_nodes_add_text(rpc->attempts, (uint64_t)run->nodes, out);
        return;
    }
    switch (ledger_bind(rpc->inst->ledger, need, run->gpus, run->n_gpus, &nodes)) {
    case BIND_NOT_WANTED:
        break;
    case BIND_UNKNOWN:
        if (need->cpu_bind == CPU_BIND_NODE)
            buf_adds(out,
                     "; not bound to CPUs, as none is known near its GPUs that jobs may use");
        break;
    case BIND_EVERYWHERE:
        if (need->cpu_bind == CPU_BIND_NODE)
            buf_adds(out, "; not bound to CPUs, as the NUMA node of its GPUs has all of them");
        break;
    case BIND_NEAR: /* not bound there; the settings may have changed since */
    case BIND_FULL:
        buf_adds(out,
                 "; not bound to the CPUs near its GPUs: too few cores were free there, or "
                 "binding was off, when it started");
        break;
    }
}

/* 0: unknown */
static int64_t
expected_end_us(const struct job *job)
{
    return job->span_ms > 0 && job->run->started_us > 0
               ? job->run->started_us + job->span_ms * 1000
               : 0;
}

static void
explain_running(const struct answer *a, const struct job *job)
{
    bool on_slurm = job->req.demand.engine == ENGINE_SLURM;
    struct blocked why = {.reason = REASON_NONE};
    auto_buf struct buf text = BUF_INIT;
    char span[24];
    if (job->state == JOB_COMPLETING) {
        buf_adds(&text, "its processes have ended; waiting until its memory is free");
    } else if (job->run->started_us > 0) {
        buf_addf(&text, "running for %s",
                 format_duration((clock_wall_us() - job->run->started_us) / 1000, span));
    } else if (on_slurm) {
        why_waits(a->rpc->views, job, &why, &text);
    } else {
        buf_adds(&text, "is being started");
    }
    add_cards(&text, job->run);
    add_cap(&text, job->run);
    add_bound(a->rpc, &text, job);
    if (on_slurm && job->run->started_us > 0)
        buf_addf(&text, "; %s", slurm_tell(a->rpc->slurm, job));
    jsonw_kstr(a->out, "reason", why.reason == REASON_NONE ? NULL : reason_name(why.reason));
    put_text(a->out, "text", &text);
    jsonw_knull(a->out, "help");
    jsonw_ktime(a->out, "expected_end", expected_end_us(job));
    jsonw_kint_or_null(a->out, "estimate_ms", job->estimate_ms, job->estimate_ms > 0);
    jsonw_kint_or_null(a->out, "limit_ms", job->req.limit_ms, job->req.limit_ms > 0);
}

/* All tasks have left the array; each explains itself. */
static void
explain_array(const struct answer *a, const struct job *job)
{
    auto_buf struct buf text = BUF_INIT;
    buf_addf(&text, "all its tasks have started; %d %s under way", job->tasks->live,
             job->tasks->live == 1 ? "is" : "are");
    jsonw_knull(a->out, "reason");
    put_text(a->out, "text", &text);
    jsonw_knull(a->out, "help");
}

/* --- ended jobs --- */

static void
put_ending(struct jsonw *w, const struct job *job, const struct advice_facts *f)
{
    static const char *const ooms[] = {NULL, "cuda", "host"};
    const struct attempt *run = job->run;
    const struct ending *e = run ? &run->ending : NULL;
    int32_t peak = run ? attempt_peak_mib(run) : -1;
    jsonw_kint(w, "exit_status", job_exit_status(job));
    jsonw_kint_or_null(w, "exit_code", e ? e->code : 0, e && e->outcome == OUTCOME_EXITED);
    jsonw_kint_or_null(w, "signal", e ? e->signal : 0, e && e->signal > 0);
    jsonw_kint_or_null(w, "errno", e ? e->errno_value : 0, e && e->errno_value > 0);
    jsonw_kstr(w, "oom", e ? ooms[e->oom] : NULL);
    jsonw_kbool(w, "at_ceiling", advice_is_at_ceiling(job, f));
    jsonw_kint_or_null(w, "peak_mib", peak, peak >= 0);
    jsonw_kint_or_null(w, "vram_mib", run ? run->vram_mib : 0, run && run->vram_mib > 0);
    jsonw_kint_or_null(w, "card_mib", f->card_mib, f->card_mib > 0);
    jsonw_kint_or_null(w, "run_ms", e ? e->run_ms : 0, e != NULL);
    jsonw_kint_or_null(w, "limit_ms", job->req.limit_ms, job->req.limit_ms > 0);
    jsonw_kstr(w, "by", job->cancelled_by);
}

static void
explain_ended(const struct answer *a, const struct job *job)
{
    const struct advice_facts f = facts_of(a->rpc->inst, job);
    auto_buf struct buf text = BUF_INIT, help = BUF_INIT;
    if (!roles_is_hidden(a->rpc->roles, job->uid)) { /* the text may quote a line of its log */
        job_end_text(job, &text);
        advice_for_ended(job, &f, &help);
    }
    jsonw_knull(a->out, "reason");
    put_text(a->out, "text", &text);
    put_text(a->out, "help", &help);
    put_ending(a->out, job, &f);
}

static void
explain(struct answer *a, const struct job *job)
{
    a->n++;
    jsonw_object(a->out);
    jsonw_kint(a->out, "id", job->id);
    jsonw_kint_or_null(a->out, "array_job", job->array, job->array > 0);
    jsonw_kint_or_null(a->out, "array_task", job->task, job->array > 0);
    bool has_left = job->tasks && array_next(job) < 0 && !job_state_is_final(job->state);
    jsonw_kstr(a->out, "state", job_state_name(has_left ? JOB_RUNNING : job->state));
    jsonw_key(a->out, "command");
    if (roles_is_hidden(a->rpc->roles, job->uid))
        jsonw_null(a->out);
    else
        events_write_command(a->out, job, 200);
    put_learned(a->out, job);
    if (job_state_is_final(job->state))
        explain_ended(a, job);
    else if (has_left)
        explain_array(a, job);
    else if (job_state_is_active(job->state))
        explain_running(a, job);
    else
        explain_waiting(a, job);
    jsonw_end_object(a->out);
}

/* Skips jobs that were live at the beginning: those are explained later, once each. */
static int
on_ended(struct job *job, const char *const *uuids, void *arg)
{
    (void)uuids;
    struct answer *a = arg;
    if (!bsearch(&job->id, a->sorted, a->live.n, sizeof job->id, ids_compare))
        explain(a, job);
    return a->out->full;
}

/* False: there is more to do. */
static bool
begin(struct answer *a, int64_t until_us)
{
    struct rpc *rpc = a->rpc;
    if (a->begun)
        return true;
    if (!a->places)
        a->places = lineup_begin(rpc->inst->planner, rpc->inst->queue, rpc->inst->ledger,
                                 clock_wall_us(), LINEUP_PLACES);
    while (lineup_step(a->places))
        if (clock_boot_us() >= until_us)
            return false;
    if (!select_live_list(rpc->inst, &a->select, &a->live, until_us))
        return false;
    a->sorted = ids_sorted(a->live.ids, a->live.n);
    a->begun = true;
    return true;
}

/* Explains a job that was live at the beginning and may have ended since. */
static void
explain_live(struct answer *a, uint32_t id)
{
    struct err unused;
    const struct job *job = queue_get(a->rpc->inst->queue, id);
    struct job *old = job ? NULL : store_job_load(a->rpc->inst->store, id, &unused);
    job = job ? job : old;
    if (job && select_matches(&a->select, job))
        explain(a, job);
    job_free(old);
}

static int
step(struct rpc *rpc, const struct caller *c, void *arg, struct jsonw *out, int64_t until_us,
     struct err *e)
{
    struct answer *a = arg;
    (void)c;
    a->out = out;
    if (!begin(a, until_us))
        return WORK_MORE;
    if (!a->past_done) {
        int rc = select_past_walk(rpc->inst, &a->select, &a->past, until_us, on_ended, a, e);
        if (rc <= 0)
            return rc < 0 ? -1 : WORK_MORE;
        a->past_done = true;
    }
    while (a->at < a->live.n) {
        explain_live(a, a->live.ids[a->at++]);
        if (out->full || clock_boot_us() >= until_us)
            return WORK_MORE; /* if full, run_slice reports it after each piece */
    }
    if (a->n == 0)
        return select_none(a->params, e);
    jsonw_end_array(out);
    jsonw_end_object(out);
    return WORK_DONE;
}

static void
answer_free(void *arg)
{
    struct answer *a = arg;
    lineup_free(a->places);
    select_live_free(&a->live);
    free(a->sorted);
    select_past_free(&a->past);
    select_free(&a->select);
    free(a);
}

int
method_explain(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
               struct err *e)
{
    static const struct work_kind kind = {.step = step, .free = answer_free};
    struct answer *a = xcalloc(1, sizeof *a);
    a->rpc = rpc;
    a->params = params;
    int rc = select_read(rpc->roles, c->uid, params, &a->select, e);
    a->select.arrays_for_tasks =
        true; /* nothing is changed, so no task becomes a job of its own */
    if (rc == 0 && a->select.everything)
        rc = err_set(e, ERR_USAGE, "name the jobs: 12, 12-20, @, name:x*, or --all");
    if (rc || select_check_ids(rpc->inst, &a->select, e) < 0) {
        answer_free(a);
        return -1;
    }
    jsonw_object(out);
    jsonw_karray(out, "jobs");
    return work_begin(rpc, c, &kind, a, params, out, e);
}
