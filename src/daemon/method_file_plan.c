/* `file.plan`: where the lines of a jobs file would start, had they been queued: for --dry-run.
 * Nothing is changed. What waits in the real queue is left out: the question is about these. */
#include <stdio.h>
#include <stdlib.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/shared.h"
#include "core/ledger.h"
#include "core/plan.h"
#include "core/queue.h"
#include "daemon/admit.h"
#include "daemon/daemon.h"
#include "daemon/depend.h"
#include "daemon/estimate.h"
#include "daemon/file_sync.h"
#include "daemon/file_upload.h"
#include "daemon/learned.h"
#include "daemon/methods.h"
#include "daemon/unique.h"
#include "spec/fingerprint.h"
#include "store/store.h"

/* Jobs of a look ahead have numbers that no real job has, so that bookings cannot meet. */
static uint32_t
plan_id(size_t line)
{
    return UINT32_MAX - (uint32_t)line;
}

/* Such a number means a line of the file to whoever reads the words. */
static void
call_lines(const struct sync *s, struct blocked *why)
{
    for (int i = 0; i < BLOCKED_HOLDERS && why->holders[i].id; i++) {
        size_t line = UINT32_MAX - why->holders[i].id; /* plan_id's inverse */
        if (line < s->n)
            why->holders[i].line = s->lines[line].number;
    }
}

/* --- what would become of a line ---------------------------------------------------------- */

struct fate {
    bool starts; /* at once, there */
    struct placement where;
    bool awaits; /* others have to end first */
    char *never; /* owned; why it would be cancelled; NULL: it would not */
};

struct look {
    struct sync *sync;
    const char *cwd;
    struct ledger *ledger; /* with all booked that would start */
    struct fate *fates;    /* of each line */
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

/* Those that would stand in a line of the queue. */
static void
queue_lines(const struct look *k, struct queue *q)
{
    for (size_t i = 0; i < k->sync->n; i++) {
        const struct line *line = &k->sync->lines[i];
        const struct fate *fate = &k->fates[i];
        if (!file_is_new(k->sync, line) || line->req.hold || line->req.cancel || fate->awaits ||
            fate->never)
            continue;
        struct job *job = job_new();
        job->id = plan_id(i);
        job->order = i + 1;
        job->req.demand = line->req.demand;
        job->req.priority = line->req.priority;
        job->req.limit_ms = line->req.limit_ms;
        estimate_refresh(k->sync->daemon, job);
        queue_add(q, job);
    }
}

/* The lines as a queue of their own, planned once. What waits in the real queue is left out:
 * the question is where these would start. */
static void
plan_lines(const struct look *k)
{
    struct queue *q = queue_new();
    struct planner *planner = planner_new(planner_rules(k->sync->daemon->planner), NULL);
    auto_plan struct plan p = PLAN_INIT;
    uint32_t next_id = 0;
    queue_lines(k, q);
    plan_make(planner, q, k->ledger, 0, &next_id, &p);
    for (size_t i = 0; i < p.n; i++) {
        struct fate *fate = &k->fates[UINT32_MAX - p.decisions[i].job]; /* plan_id's inverse */
        if (p.decisions[i].type == PLAN_START) {
            fate->starts = true;
            fate->where = p.decisions[i].where;
        }
    }
    planner_free(planner);
    queue_free(q);
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
write_waits(const struct look *k, struct jsonw *out, const struct line *line)
{
    struct blocked why = {0};
    struct placement where;
    auto_buf struct buf text = BUF_INIT;
    if (write_infeasible(k, out, line))
        return;
    jsonw_kstr(out, "state", job_state_name(JOB_PENDING));
    if (!place_job(&line->req.demand, k->ledger, &where, &why)) {
        call_lines(k->sync, &why);
        blocked_text(&why, &line->req.demand, &text);
        jsonw_kstr(out, "reason", reason_name(why.reason));
        jsonw_kstr(out, "text", buf_str(&text));
    }
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
write_placed(struct jsonw *out, const struct placement *where)
{
    jsonw_kstr(out, "state", job_state_name(JOB_STARTING));
    jsonw_key(out, "gpus");
    jsonw_array(out);
    for (int i = 0; i < where->n; i++)
        jsonw_int(out, where->gpus[i]);
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
    } else if (fate->starts) {
        write_placed(out, &fate->where);
    } else {
        write_waits(k, out, line);
    }
    jsonw_end_object(out);
}

static void
look(struct sync *s, const char *cwd, struct jsonw *out)
{
    struct look k = {.sync = s,
                     .cwd = cwd,
                     .ledger = ledger_clone(s->daemon->ledger),
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
    ledger_free(k.ledger);
}

int
method_file_plan(struct daemon *d, struct caller *c, json_t *params, struct jsonw *out,
                 struct err *e)
{
    struct sync s = {.daemon = d, .caller = c};
    const char *cwd = json_string_value(json_object_get(params, "cwd"));
    int rc = file_upload_take(&s, params, e);
    if (rc > 0) {
        jsonw_object(out);
        jsonw_end_object(out);
        return 0;
    }
    if (rc == 0 && !json_is_true(json_object_get(params, "fresh")))
        rc = store_file_id(d->store, c->uid, s.path, &s.file, e) || file_load_known(&s, e) ? -1
                                                                                           : 0;
    if (rc == 0)
        rc = file_resolve_deps(&s, e);
    if (rc == 0)
        look(&s, cwd ? cwd : "/", out);
    file_sync_free(&s);
    return rc;
}
