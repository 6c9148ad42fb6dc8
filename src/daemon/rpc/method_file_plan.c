/* `file.plan`: where and when the lines of a jobs file would start, were they queued now behind
 * what waits already: for --dry-run. Nothing is changed. */
#include <stdio.h>
#include <stdlib.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/counted_text.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "core/ledger/ledger.h"
#include "core/plan/plan.h"
#include "core/queue/queue.h"
#include "daemon/daemon.h"
#include "daemon/request/admit.h"
#include "daemon/request/file_sync.h"
#include "daemon/request/file_upload.h"
#include "daemon/rpc/methods.h"
#include "daemon/turn/depend_turns.h"
#include "daemon/turn/estimates.h"
#include "daemon/turn/learned_demands.h"
#include "daemon/turn/unique.h"
#include "spec/fingerprint.h"
#include "store/store.h"

#define STARTS_MAX 1000  /* of jobs that wait already */
#define AHEAD_US   20000 /* about as long as one look at the queue may hold the loop */

/* Jobs of a look ahead have numbers that no other booking has. */
static uint32_t
plan_id(size_t line)
{
    return LEDGER_TRIAL - 1 - (uint32_t)line;
}

/* Such a number means a line of the file to whoever reads the words. */
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

/* --- what would become of a line ---------------------------------------------------------- */

struct fate {
    const struct asked_start *start; /* NULL: it would not stand in a line */
    bool awaits;                     /* others have to end first */
    char *never;                     /* owned; why it would be cancelled; NULL: it would not */
};

struct look {
    struct sync *sync;
    const char *cwd;
    struct forecast_run *run; /* of the queue with these lines in it */
    struct fate *fates;       /* of each line */
};

/* The job that a line would be; the caller frees it. */
static struct job *
job_of(const struct look *k, const struct line *line)
{
    struct job *job = job_new();
    request_free(&job->req);
    request_copy(&job->req, &line->req);
    job->uid = k->sync->caller->uid;
    job->cwd = shared_new(job->req.chdir ? job->req.chdir : k->cwd);
    return job;
}

/* What lines with vram=auto would ask for. */
static void
learn(const struct look *k)
{
    for (size_t i = 0; i < k->sync->n; i++) {
        struct line *line = &k->sync->lines[i];
        if (!line->req.vram_auto)
            continue;
        struct job *job = job_of(k, line);
        learned_apply(k->sync->daemon, job);
        line->req.demand.vram_mib = job->req.demand.vram_mib;
        job_free(job);
    }
}

/* What ended lines and other jobs have come to; of the lines that are new nothing is known but
 * that they are awaited. */
static void
look_at_deps(const struct look *k, struct line *line, struct fate *fate)
{
    const struct sync *s = k->sync;
    for (int i = 0; i < line->req.n_deps; i++) {
        struct dep *dep = &line->req.deps[i];
        const struct line *to = line->links[i] >= 0 ? &s->lines[line->links[i]] : NULL;
        struct request one = {.deps = dep, .n_deps = 1};
        struct err e;
        if (to && file_is_new(s, to)) {
            fate->awaits = true;
            continue;
        }
        if (to)
            dep->job = to->known->job;
        if (!depend_has_ended(s->daemon, dep))
            fate->awaits = true;
        else if (!fate->never && depend_check(s->daemon, &one, &e))
            fate->never = xstrdup(e.text);
    }
}

/* The lines so far by what they run. */
struct same {
    char print[FINGERPRINT_HEX + 1];
    int32_t line;
    UT_hash_handle hh;
};

static void
look_for_same(const struct look *k, const struct line *line, struct fate *fate,
              struct same *own, struct same **seen)
{
    struct job *job = job_of(k, line);
    struct same *x;
    struct err e;
    unique_mark(job);
    HASH_FIND_STR(*seen, job->fingerprint, x);
    if (x && line->req.unique)
        fate->never = xasprintf("the same command in the same folder is line %d already, and "
                                "it is to be unique",
                                x->line);
    else if (unique_check(k->sync->daemon, job, &e))
        fate->never = xstrdup(e.text);
    if (!x) {
        snprintf(own->print, sizeof own->print, "%s", job->fingerprint);
        own->line = line->number;
        HASH_ADD_STR(*seen, print, own);
    }
    job_free(job);
}

static void
look_for_all_same(const struct look *k)
{
    auto_free struct same *all = xcalloc(k->sync->n + 1, sizeof *all);
    struct same *seen = NULL;
    bool any = false;
    for (size_t i = 0; i < k->sync->n; i++)
        any = any || k->sync->lines[i].req.unique;
    for (size_t i = 0; any && i < k->sync->n; i++)
        if (file_is_new(k->sync, &k->sync->lines[i]) && !k->fates[i].never)
            look_for_same(k, &k->sync->lines[i], &k->fates[i], &all[i], &seen);
    HASH_CLEAR(hh, seen);
}

/* As it would stand in a line of the queue. */
static void
ask_about(const struct look *k, size_t i)
{
    const struct request *req = &k->sync->lines[i].req;
    struct job *job = job_of(k, &k->sync->lines[i]);
    job->id = plan_id(i);
    job->order = UINT64_MAX / 2 + i; /* behind all that wait */
    job->submitted_us = clock_wall_us();
    job->begin_us = req->begin_us;
    estimate_refresh(k->sync->daemon, job);
    forecast_run_add(k->run, job);
    job_free(job);
}

/* The daemon's own look ahead, with these lines in the queue. The first plan of it says what
 * would start at once; how far it goes beyond that is bounded by time. */
static void
plan_lines(const struct look *k)
{
    int64_t begun_us = clock_boot_us();
    for (size_t i = 0; i < k->sync->n; i++) {
        const struct line *line = &k->sync->lines[i];
        const struct fate *fate = &k->fates[i];
        if (file_is_new(k->sync, line) && !line->req.hold && !line->req.cancel &&
            !fate->awaits && !fate->never)
            ask_about(k, i);
    }
    while (forecast_run_step(k->run) && clock_boot_us() - begun_us < AHEAD_US)
        ;
    for (size_t i = 0; i < k->sync->n; i++)
        k->fates[i].start = forecast_run_asked(k->run, plan_id(i));
}

/* --- the answer --------------------------------------------------------------------------- */

/* False: it could. */
static bool
write_infeasible(const struct look *k, struct jsonw *out, const struct line *line)
{
    auto_buf struct buf text = BUF_INIT;
    if (admit_could_start(k->sync->daemon, k->sync->caller->uid, &line->req.demand, &text))
        return false;
    jsonw_kstr(out, "state", job_state_name(JOB_INFEASIBLE));
    jsonw_kstr(out, "text", buf_str(&text));
    return true;
}

static void
write_waits(const struct look *k, struct jsonw *out, const struct line *line,
            const struct asked_start *start)
{
    struct blocked why = start->why;
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
    jsonw_ktime(out, "expected_start", start->at_us == INT64_MAX ? 0 : start->at_us);
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
    jsonw_key(out, "gpus");
    jsonw_array(out);
    for (int i = 0; i < where->n; i++)
        jsonw_int(out, where->gpus[i]);
    jsonw_end_array(out);
    jsonw_ktime(out, "expected_start", start->at_us);
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
    const struct fate *fate = &k->fates[i];
    jsonw_object(out);
    jsonw_kstr(out, "key", line->key);
    jsonw_kint(out, "line", line->number);
    if (line->req.demand.vram_mib > 0)
        jsonw_kint(out, "vram_mib", line->req.demand.vram_mib);
    if (!file_is_new(k->sync, line)) {
        write_known(k, out, line);
    } else if (line->req.cancel || fate->never) {
        jsonw_kstr(out, "state", job_state_name(JOB_CANCELLED));
        jsonw_kstr(out, "text", line->req.cancel ? NULL : fate->never);
    } else if (line->req.hold) {
        jsonw_kstr(out, "state", job_state_name(JOB_HELD));
    } else if (fate->awaits) {
        write_awaits(k->sync, out, line);
    } else if (fate->start->at_once) {
        write_placed(out, fate->start);
    } else {
        write_waits(k, out, line, fate->start);
    }
    jsonw_end_object(out);
}

static void
look(struct sync *s, const char *cwd, struct jsonw *out)
{
    struct daemon *d = s->daemon;
    struct expected_start *unused = NULL;
    struct look k = {
        .sync = s,
        .cwd = cwd,
        .run = forecast_run_begin(d->planner, d->queue, d->ledger, clock_wall_us(), STARTS_MAX),
        .fates = xcalloc(s->n + 1, sizeof *k.fates)};
    learn(&k);
    for (size_t i = 0; i < s->n; i++)
        if (file_is_new(s, &s->lines[i]))
            look_at_deps(&k, &s->lines[i], &k.fates[i]);
    look_for_all_same(&k);
    plan_lines(&k);
    jsonw_object(out);
    jsonw_key(out, "lines");
    jsonw_array(out);
    for (size_t i = 0; i < s->n; i++) {
        write_line(&k, out, i);
        free(k.fates[i].never);
    }
    jsonw_end_array(out);
    jsonw_end_object(out);
    free(k.fates);
    (void)forecast_run_end(k.run, &unused);
    free(unused);
}

int
method_file_plan(struct daemon *d, struct caller *c, json_t *params, struct jsonw *out,
                 struct err *e)
{
    struct sync s = {.daemon = d, .caller = c, .uid = c->uid};
    const char *cwd = json_string_value(json_object_get(params, "cwd"));
    int rc = file_upload_take(&s, params, e);
    if (rc > 0) {
        jsonw_object(out);
        jsonw_end_object(out);
        return 0;
    }
    if (rc == 0 && !json_is_true(json_object_get(params, "fresh")))
        rc = store_file_id(d->store, c->uid, s.path, &s.file, e) ||
                     file_load_known(&s, INT64_MAX, e) < 0
                 ? -1
                 : 0;
    if (rc == 0)
        rc = file_resolve_deps(&s, INT64_MAX, e) < 0 ? -1 : 0;
    if (rc == 0)
        look(&s, cwd ? cwd : "/", out);
    file_sync_free(&s);
    return rc;
}
