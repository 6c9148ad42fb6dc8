/* `file.plan`: where the lines of a jobs file would start, had they been queued: for --dry-run.
 * Nothing is changed. What waits in the real queue is left out: the question is about these. */
#include <stdlib.h>
#include <string.h>

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
#include "daemon/estimate.h"
#include "daemon/file_sync.h"
#include "daemon/learned.h"
#include "daemon/methods.h"
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

static void
write_waits(const struct sync *s, struct jsonw *out, const struct line *line,
            struct ledger *ledger)
{
    struct blocked why = {0};
    struct placement where;
    auto_buf struct buf text = BUF_INIT;
    if (!place_feasible(&line->req.demand, ledger, &text)) {
        jsonw_kstr(out, "state", job_state_name(JOB_INFEASIBLE));
        jsonw_kstr(out, "text", buf_str(&text));
        return;
    }
    jsonw_kstr(out, "state", job_state_name(JOB_PENDING));
    if (!place_job(&line->req.demand, ledger, &where, &why)) {
        call_lines(s, &why);
        blocked_text(&why, &line->req.demand, &text);
        jsonw_kstr(out, "reason", reason_name(why.reason));
        jsonw_kstr(out, "text", buf_str(&text));
    }
}

static void
write_depends(const struct sync *s, struct jsonw *out, const struct line *line)
{
    auto_buf struct buf text = BUF_INIT;
    buf_adds(&text, "Dependency: runs after ");
    for (int i = 0; i < line->req.n_deps; i++) {
        int32_t to = line->links[i];
        if (to >= 0)
            buf_addf(&text, "%sline %d", i ? ", " : "", s->lines[to].number);
        else
            buf_addf(&text, "%sjob %u", i ? ", " : "", line->req.deps[i].job);
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

/* What a line with vram=auto would ask for. */
static void
learn_line(struct sync *s, struct line *line, const char *cwd)
{
    struct job *job = job_new();
    request_free(&job->req);
    request_copy(&job->req, &line->req);
    admit_setup(s->daemon, &job->req);
    job->uid = s->caller->uid;
    job->cwd = shared_new(cwd);
    learned_apply(s->daemon, job);
    line->req.demand.vram_mib = job->req.demand.vram_mib;
    job_free(job);
}

/* The lines as a queue of their own, planned once on a copy of the ledger. What waits in the
 * real queue is left out: the question is where these would start. */
static void
plan_lines(struct sync *s, struct jsonw *out)
{
    struct queue *q = queue_new();
    struct ledger *ledger = ledger_clone(s->daemon->ledger);
    struct placement *placed = xcalloc(s->n + 1, sizeof *placed);
    bool *starts = xcalloc(s->n + 1, sizeof *starts);
    auto_plan struct plan p = PLAN_INIT;
    for (size_t i = 0; i < s->n; i++) {
        struct line *line = &s->lines[i];
        if (line->known || line->req.hold || line->req.cancel || line->req.n_deps)
            continue;
        struct job *job = job_new();
        job->id = plan_id(i);
        job->order = i + 1;
        job->req.demand = line->req.demand;
        job->req.priority = line->req.priority;
        job->req.limit_ms = line->req.limit_ms;
        estimate_refresh(s->daemon, job);
        queue_add(q, job);
    }
    struct planner *planner = planner_new(planner_rules(s->daemon->planner), NULL);
    uint32_t next_id = 0;
    plan_make(planner, q, ledger, 0, &next_id, &p);
    planner_free(planner);
    for (size_t i = 0; i < p.n; i++) {
        size_t at = UINT32_MAX - p.decisions[i].job; /* plan_id's inverse */
        if (p.decisions[i].type == PLAN_START) {
            starts[at] = true;
            placed[at] = p.decisions[i].where;
        }
    }
    for (size_t i = 0; i < s->n; i++) {
        struct line *line = &s->lines[i];
        jsonw_object(out);
        jsonw_kstr(out, "key", line->key);
        jsonw_kint(out, "line", line->number);
        if (line->req.demand.vram_mib > 0)
            jsonw_kint(out, "vram_mib", line->req.demand.vram_mib);
        if (line->known) {
            jsonw_kstr(out, "state", job_state_name(line->known->state));
            jsonw_kint(out, "id", line->known->job);
        } else if (line->req.cancel) {
            jsonw_kstr(out, "state", job_state_name(JOB_CANCELLED));
        } else if (line->req.hold) {
            jsonw_kstr(out, "state", job_state_name(JOB_HELD));
        } else if (line->req.n_deps) {
            write_depends(s, out, line);
        } else if (starts[i]) {
            write_placed(out, &placed[i]);
        } else {
            write_waits(s, out, line, ledger);
        }
        jsonw_end_object(out);
    }
    free(placed);
    free(starts);
    ledger_free(ledger);
    queue_free(q);
}

int
method_file_plan(struct daemon *d, struct caller *c, json_t *params, struct jsonw *out,
                 struct err *e)
{
    struct sync s = {.daemon = d, .caller = c};
    int rc = file_read_lines(&s, params, e);
    if (rc == 0 && !json_is_true(json_object_get(params, "fresh")))
        rc = store_file_id(d->store, c->uid, s.path, &s.file, e) || file_load_known(&s, e) ? -1
                                                                                           : 0;
    if (rc == 0)
        rc = file_resolve_deps(&s, e);
    for (size_t i = 0; rc == 0 && i < s.n; i++)
        if (s.lines[i].req.vram_auto)
            learn_line(&s, &s.lines[i], json_string_value(json_object_get(params, "cwd")));
    if (rc == 0) {
        jsonw_object(out);
        jsonw_key(out, "lines");
        jsonw_array(out);
        plan_lines(&s, out);
        jsonw_end_array(out);
        jsonw_end_object(out);
    }
    file_sync_free(&s);
    return rc;
}
