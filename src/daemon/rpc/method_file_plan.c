/* `file.plan`: where and when the lines of a jobs file would start if they were queued now
 * behind the pending jobs: for --dry-run. Nothing is changed. A long file is processed in
 * pieces (long_work.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/counted_text.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "core/ledger/ledger.h"
#include "core/plan/plan.h"
#include "core/queue/queue.h"
#include "daemon/common/instance.h"
#include "daemon/request/file_sync.h"
#include "daemon/request/file_upload.h"
#include "daemon/rpc/long_work.h"
#include "daemon/rpc/methods.h"
#include "daemon/rpc/rpc.h"
#include "daemon/slurm/slurm_engine.h"
#include "daemon/state/depend_turns.h"
#include "daemon/state/estimates.h"
#include "daemon/state/learned_demands.h"
#include "daemon/state/state.h"
#include "daemon/state/unique.h"
#include "slurm/allocation_options.h"
#include "slurm/backlog.h"
#include "slurm/sent_options.h"
#include "spec/fingerprint.h"
#include "store/store.h"

#define STARTS_MAX 1000  /* expected starts of jobs already pending */
#define AHEAD_US   20000 /* CPU time for the forecast beyond what would start at once */
#define GLANCE     64    /* lines between two checks of the clock */

/* An id for a line's trial job that no other booking uses. */
static uint32_t
plan_id(size_t line)
{
    return LEDGER_TRIAL - 1 - (uint32_t)line;
}

/* For messages: maps such an id back to the line number in the file. */
static void
call_line(const struct sync *s, struct called *job)
{
    size_t line = LEDGER_TRIAL - 1 - job->id; /* plan_id's inverse */
    if (job->id && job->id < LEDGER_TRIAL && line < s->n)
        job->line = s->lines[line].number;
}

static void
call_lines(const struct sync *s, struct blocked *why)
{
    for (int i = 0; i < BLOCKED_HOLDERS; i++)
        call_line(s, &why->holders[i]);
    call_line(s, &why->ahead);
    call_line(s, &why->waits_for);
}

/* --- the fate of a line --- */

struct fate {
    bool is_new; /* it would become a job: determined once, since turns between the phases may
                    change it */
    const struct asked_start *start; /* NULL: no forecast was made */
    bool awaits;                     /* other jobs have to end first */
    char *never;                     /* owned; why it would be cancelled, or NULL */
};

struct look {
    struct rpc *rpc;
    struct sync own;
    struct sync *sync; /* own */
    const char *cwd;
    struct forecast_run *run; /* forecast of the queue with these lines in it */
    struct fate *fates;       /* one per line */
    size_t n_fates;
    bool has_read; /* the lines have been read */
    bool is_fresh; /* ignore what is known of its lines */
    bool any_unique;
    struct same *all, *seen; /* owned; one per line, and a hash of those so far */
    int64_t ahead_us;        /* CPU time the forecast has taken */
    int phase;
    size_t at; /* position in the phase */
};

/* The job that a line would become; the caller frees it. */
static struct job *
job_of(const struct look *k, const struct line *line)
{
    struct job *job = job_new();
    request_free(&job->req);
    request_copy(&job->req, &line->req);
    job->uid = k->sync->uid;
    job->cwd = shared_new(job->req.chdir ? job->req.chdir : k->cwd);
    return job;
}

/* Fills in the demand learned for vram=auto, and then determines whether the line would become
 * a job. */
static void
learn(struct look *k, size_t i)
{
    struct line *line = &k->sync->lines[i];
    k->any_unique = k->any_unique || line->req.unique;
    if (line->req.vram_auto) {
        struct job *job = job_of(k, line);
        learned_apply(k->sync->state, job);
        line->req.demand.vram_mib = job->req.demand.vram_mib;
        job_free(job);
    }
    k->fates[i].is_new = file_is_new(k->sync, line);
}

/* Checks the states of ended lines and other jobs it depends on. A dependency on a new line
 * only means that it waits. */
static void
look_at_deps(struct look *k, size_t at)
{
    const struct sync *s = k->sync;
    struct line *line = &s->lines[at];
    struct fate *fate = &k->fates[at];
    if (!fate->is_new)
        return;
    for (int i = 0; i < line->req.n_deps; i++) {
        struct dep *dep = &line->req.deps[i];
        const struct line *to = line->links[i] >= 0 ? &s->lines[line->links[i]] : NULL;
        struct request one = {.deps = dep, .n_deps = 1};
        struct err e;
        if (to && k->fates[line->links[i]].is_new) {
            fate->awaits = true;
            continue;
        }
        if (to)
            depend_on_line(s->state, dep, to->known->job, to->known->state);
        if (!depend_has_ended(s->state, dep))
            fate->awaits = true;
        else if (!fate->never && depend_check(s->state, &one, &e) < 0)
            fate->never = xstrdup(e.text);
    }
}

/* The lines so far, by fingerprint. */
struct same {
    char print[FINGERPRINT_HEX + 1];
    int32_t line;
    UT_hash_handle hh;
};

static void
look_for_same(struct look *k, size_t i)
{
    const struct line *line = &k->sync->lines[i];
    struct fate *fate = &k->fates[i];
    struct same *own, *x;
    struct err e;
    if (!k->any_unique || fate->never || !fate->is_new)
        return;
    k->all = k->all ? k->all : xcalloc(k->sync->n, sizeof *k->all);
    own = &k->all[i];
    struct job *job = job_of(k, line);
    unique_mark(job);
    HASH_FIND_STR(k->seen, job->fingerprint, x);
    if (x && line->req.unique)
        fate->never = xasprintf(
            "line %d has the same command in the same folder, and this one is unique", x->line);
    else if (unique_check(k->sync->state, job, &e) < 0)
        fate->never = xstrdup(e.text);
    if (!x) {
        snprintf(own->print, sizeof own->print, "%s", job->fingerprint);
        own->line = line->number;
        HASH_ADD_STR(k->seen, print, own);
    }
    job_free(job);
}

/* Adds the line to the forecast as a job at the end of the queue. */
static void
ask_about(struct look *k, size_t i)
{
    const struct line *line = &k->sync->lines[i];
    const struct fate *fate = &k->fates[i];
    struct rpc *rpc = k->rpc;
    if (!fate->is_new || line->req.hold || line->req.cancel || fate->awaits || fate->never)
        return;
    struct job *job = job_of(k, line);
    job->id = plan_id(i);
    job->order = UINT64_MAX / 2 + i; /* behind all pending jobs */
    job->submitted_us = clock_wall_us();
    job->begin_us = line->req.begin_us;
    estimate_refresh(rpc->inst->state, job);
    forecast_run_add(k->run, job);
    job_free(job);
}

/* --- the answer --- */

/* False: it could start. */
static bool
write_infeasible(const struct look *k, struct jsonw *out, const struct line *line)
{
    auto_buf struct buf text = BUF_INIT;
    struct err e = {0};
    if (line->req.demand.engine == ENGINE_SLURM && slurm_is_usable(k->rpc->inst, &e) < 0)
        buf_adds(&text, e.text);
    else if (state_could_start(k->sync->state, k->sync->uid, &line->req.demand, &text))
        return false;
    jsonw_kstr(out, "state", job_state_name(JOB_INFEASIBLE));
    jsonw_kstr(out, "text", buf_str(&text));
    return true;
}

static void
write_waits(const struct look *k, struct jsonw *out, const struct line *line,
            const struct asked_start *start)
{
    struct blocked why = start ? start->why : (struct blocked){.reason = REASON_NONE};
    auto_buf struct buf text = BUF_INIT;
    if (write_infeasible(k, out, line))
        return;
    jsonw_kstr(out, "state", job_state_name(JOB_PENDING));
    if (why.reason != REASON_NONE) {
        call_lines(k->sync, &why);
        blocked_text(&why, &line->req.demand, &text);
        blocked_text_ahead(&why, &text);
        jsonw_kstr(out, "reason", reason_name(why.reason));
        jsonw_kstr(out, "text", buf_str(&text));
    }
    jsonw_ktime(out, "expected_start", !start || start->at_us == INT64_MAX ? 0 : start->at_us);
}

static void
write_awaits(const struct sync *s, struct jsonw *out, const struct line *line)
{
    auto_buf struct buf text = BUF_INIT;
    buf_adds(&text, "Dependency: runs after ");
    for (int i = 0; i < line->req.n_deps; i++) {
        const struct dep *dep = &line->req.deps[i];
        buf_adds(&text, i ? ", " : "");
        if (line->links[i] >= 0)
            buf_addf(&text, "line %d", s->lines[line->links[i]].number);
        else if (dep->task >= 0)
            buf_addf(&text, "job %u_%d", dep->job, dep->task);
        else
            buf_addf(&text, "job %u", dep->job);
    }
    jsonw_kstr(out, "state", job_state_name(JOB_PENDING));
    jsonw_kstr(out, "reason", reason_name(REASON_DEPENDENCY));
    jsonw_kstr(out, "text", buf_str(&text));
}

static void
write_placed(struct jsonw *out, const struct asked_start *start)
{
    const struct placement *where = &start->where;
    jsonw_kstr(out, "state", job_state_name(JOB_STARTING));
    jsonw_karray(out, "gpus");
    for (int i = 0; i < where->n; i++)
        jsonw_int(out, where->gpus[i]);
    jsonw_end_array(out);
    jsonw_ktime(out, "expected_start", start->at_us);
}

/* Writes the sbatch options the line would get, or those of an allocation large enough for
 * it. */
static void
write_options(const struct look *k, struct jsonw *out, const struct line *line)
{
    auto_buf struct buf options = BUF_INIT;
    const struct config *c = &k->rpc->inst->config;
    struct backlog_line asked;
    struct allocation_spec spec;
    bool is_packed = slurm_is_to_pack(&line->req.demand, c);
    slurm_line_of_request(&line->req, line->req.demand.vram_mib, &asked);
    allocation_spec_for(c, &asked, &spec);
    if (is_packed)
        slurm_add_allocation_options(&spec, c, &options);
    else
        slurm_add_options(&line->req, true, c, &options);
    jsonw_kbool(out, "packed", is_packed);
    jsonw_karray(out, "sbatch");
    for (const char *o = options.data; o < options.data + options.len; o += strlen(o) + 1)
        jsonw_str(out, o);
    jsonw_end_array(out);
}

static void
write_known(const struct look *k, struct jsonw *out, const struct line *line)
{
    jsonw_kint(out, "id", line->known->job);
    if (line->known->state != JOB_INFEASIBLE || !write_infeasible(k, out, line))
        jsonw_kstr(out, "state", job_state_name(line->known->state));
}

static void
write_line(const struct look *k, struct jsonw *out, size_t i)
{
    const struct line *line = &k->sync->lines[i];
    struct fate *fate = &k->fates[i];
    fate->start = forecast_run_asked(k->run, plan_id(i));
    jsonw_object(out);
    jsonw_kstr(out, "key", line->key);
    jsonw_kint(out, "line", line->number);
    if (line->req.demand.vram_mib > 0)
        jsonw_kint(out, "vram_mib", line->req.demand.vram_mib);
    if (line->req.demand.engine == ENGINE_SLURM)
        write_options(k, out, line);
    if (!fate->is_new) {
        write_known(k, out, line);
    } else if (line->req.cancel || fate->never) {
        jsonw_kstr(out, "state", job_state_name(JOB_CANCELLED));
        jsonw_kstr(out, "text", line->req.cancel ? NULL : fate->never);
    } else if (line->req.demand.engine == ENGINE_SLURM && write_infeasible(k, out, line)) {
        /* nothing to add: write_infeasible wrote that there is no Slurm */
    } else if (line->req.hold) {
        jsonw_kstr(out, "state", job_state_name(JOB_HELD));
    } else if (fate->awaits) {
        write_awaits(k->sync, out, line);
    } else if (fate->start && fate->start->at_once) {
        write_placed(out, fate->start);
    } else {
        write_waits(k, out, line, fate->start);
    }
    jsonw_end_object(out);
}

/* --- the phases --- */

typedef int (*phase_fn)(struct look *k, struct jsonw *out, int64_t until_us, struct err *e);

/* Reads its lines and the number of the file. */
static int
read_all(struct look *k, const struct caller *c, int64_t until_us, struct err *e)
{
    struct sync *s = k->sync;
    int rc = file_upload_read(k->rpc->uploads, c, s, s->params, until_us, e);
    if (rc != WORK_DONE)
        return rc;
    k->has_read = true;
    if (k->is_fresh)
        return WORK_DONE;
    return store_file_find(s->store, s->uid, s->path, &s->file, e) < 0 ? -1 : WORK_DONE;
}

/* Calls fn for each line. */
static int
each_line(struct look *k, void (*fn)(struct look *, size_t), int64_t until_us)
{
    while (k->at < k->sync->n) {
        fn(k, k->at++);
        if (k->at % GLANCE == 0 && clock_boot_us() >= until_us)
            return WORK_MORE;
    }
    return WORK_DONE;
}

static int
load(struct look *k, struct jsonw *out, int64_t until_us, struct err *e)
{
    (void)out;
    int rc = k->is_fresh ? WORK_DONE : file_load_known(k->sync, until_us, e);
    return rc == WORK_DONE ? file_resolve_deps(k->sync, until_us, e) : rc;
}

static int
learn_all(struct look *k, struct jsonw *out, int64_t until_us, struct err *e)
{
    (void)out, (void)e;
    if (!k->fates)
        k->fates = xcalloc(k->sync->n + 1, sizeof *k->fates);
    k->n_fates = k->sync->n;
    return each_line(k, learn, until_us);
}

static int
look_at_all_deps(struct look *k, struct jsonw *out, int64_t until_us, struct err *e)
{
    (void)out, (void)e;
    return each_line(k, look_at_deps, until_us);
}

static int
look_for_all_same(struct look *k, struct jsonw *out, int64_t until_us, struct err *e)
{
    (void)out, (void)e;
    return each_line(k, look_for_same, until_us);
}

static int
ask_about_all(struct look *k, struct jsonw *out, int64_t until_us, struct err *e)
{
    const struct rpc *rpc = k->rpc;
    (void)out, (void)e;
    if (!k->run)
        k->run = forecast_run_begin(rpc->inst->planner, rpc->inst->queue, rpc->inst->ledger,
                                    clock_wall_us(), STARTS_MAX);
    return each_line(k, ask_about, until_us);
}

/* Runs the daemon's own forecast with these lines in the queue. Its first instant shows what
 * would start at once; how far it goes beyond that is limited by time. */
static int
look_ahead(struct look *k, struct jsonw *out, int64_t until_us, struct err *e)
{
    int64_t begun_us = clock_thread_us();
    bool more = true;
    (void)out, (void)e;
    while (more && clock_boot_us() < until_us) {
        more = forecast_run_step(k->run);
        int64_t now_us = clock_thread_us();
        if (forecast_run_has_begun(k->run))
            k->ahead_us += now_us - begun_us;
        begun_us = now_us;
        more = more && k->ahead_us < AHEAD_US;
    }
    return more ? WORK_MORE : WORK_DONE;
}

static int
write_all(struct look *k, struct jsonw *out, int64_t until_us, struct err *e)
{
    (void)e;
    if (k->at == 0) {
        jsonw_object(out);
        jsonw_karray(out, "lines");
    }
    while (k->at < k->sync->n) {
        write_line(k, out, k->at++);
        if (out->full || (k->at % GLANCE == 0 && clock_boot_us() >= until_us))
            return WORK_MORE; /* if full, run_slice reports it after each piece */
    }
    jsonw_end_array(out);
    jsonw_end_object(out);
    return WORK_DONE;
}

static int
clear(struct look *k, struct jsonw *out, int64_t until_us, struct err *e)
{
    (void)out, (void)e;
    while (forecast_run_shrink(k->run))
        if (clock_boot_us() >= until_us)
            return WORK_MORE;
    return file_sync_clear(k->sync, until_us);
}

static int
step(struct rpc *rpc, const struct caller *c, void *arg, struct jsonw *out, int64_t until_us,
     struct err *e)
{
    static const phase_fn phases[] = {
        load,          learn_all,  look_at_all_deps, look_for_all_same,
        ask_about_all, look_ahead, write_all,        clear};
    struct look *k = arg;
    (void)rpc;
    int read = k->has_read ? WORK_DONE : read_all(k, c, until_us, e);
    if (read != WORK_DONE)
        return read;
    while (k->phase < (int)(sizeof phases / sizeof phases[0])) {
        int rc = phases[k->phase](k, out, until_us, e);
        if (rc != WORK_DONE)
            return rc;
        k->phase++;
        k->at = 0;
    }
    return WORK_DONE;
}

/* Step of a request that holds only part of the file. */
static int
keep_step(struct rpc *rpc, const struct caller *c, void *arg, struct jsonw *out,
          int64_t until_us, struct err *e)
{
    struct look *k = arg;
    return file_upload_part(rpc->uploads, c, k->sync, until_us, out, e);
}

static void
look_free(void *arg)
{
    struct look *k = arg;
    file_upload_leave(k->rpc->uploads, k->sync);
    struct expected_start *unused = NULL;
    for (size_t i = 0; i < k->n_fates; i++)
        free(k->fates[i].never);
    if (k->run)
        (void)forecast_run_end(k->run, &unused);
    free(unused);
    HASH_CLEAR(hh, k->seen);
    free(k->all);
    free(k->fates);
    file_sync_free(k->sync);
    free(k);
}

int
method_file_plan(struct rpc *rpc, struct caller *c, json_t *params, struct jsonw *out,
                 struct err *e)
{
    static const struct work_kind all = {.step = step, .free = look_free, .past = true};
    static const struct work_kind part = {.step = keep_step, .free = look_free};
    const char *cwd = json_string_value(json_object_get(params, "cwd"));
    struct look *k = xcalloc(1, sizeof *k);
    k->own = (struct sync){.admission = rpc->admission,
                           .state = rpc->inst->state,
                           .store = rpc->inst->store,
                           .uid = c->uid,
                           .params = params};
    k->rpc = rpc;
    k->sync = &k->own;
    k->cwd = cwd ? cwd : "/";
    k->is_fresh = json_is_true(json_object_get(params, "fresh"));
    if (file_upload_check(rpc->uploads, c, k->sync, params, e) < 0) {
        look_free(k);
        return -1;
    }
    return work_begin(rpc, c, k->sync->has_more ? &part : &all, k, params, out, e);
}
