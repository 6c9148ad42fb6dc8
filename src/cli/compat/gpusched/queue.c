/* The lines of gpusched's jobs file against its journal and the daemon's queue: who is stopped,
 * who waits, who can never run. "Pending" is what the file has and neither runs nor is over;
 * the daemon is told the whole of it, in the file's order, whenever that has changed. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/answer.h"
#include "cli/compat/gpusched/gpusched.h"
#include "cli/compat/paths.h"
#include "cli/compat/pytext.h"
#include "cli/render.h"
#include "spec/attr.h"
#include "sys/procs.h"
#include "wire/client.h"

#define FILE_MAX_BYTES (60UL * 1024 * 1024)
#define PID_SLACK_US   5000000 /* between what /proc says and what a file system says */

/* ---------------------------------------------------------- the jobs file */

static int
read_text(const char *path, struct buf *text, struct buf *words)
{
    struct err e = {0};
    struct stat st;

    if (stat(path, &st) < 0 || access(path, R_OK) < 0) {
        py_add_oserror(words, errno, path);
        return -1;
    }
    if (S_ISDIR(st.st_mode)) {
        py_add_oserror(words, EISDIR, path);
        return -1;
    }
    if (file_read(path, FILE_MAX_BYTES, text, &e) < 0) {
        buf_adds(words, e.text);
        return -1;
    }
    return 0;
}

static void
complain(struct gpusched *g, const struct buf *words)
{
    if (strcmp(buf_str(words), buf_str(&g->said_broken)) == 0)
        return;
    buf_clear(&g->said_broken);
    buf_adds(&g->said_broken, buf_str(words));
    gs_warn(g, "jobs file unreadable, keeping previous queue: %s", buf_str(words));
}

/* The lines become the queue. */
static void
take_specs(struct gpusched *g, struct gs_jobs *specs)
{
    struct gs_job *job, *next;

    HASH_ITER(hh, g->jobs, job, next) job->spec = NULL;
    gs_jobs_free(&g->specs);
    g->specs = *specs;
    for (size_t i = 0; i < g->specs.n; i++) {
        g->specs.at[i].job = gs_job_of(g, &g->specs.at[i]);
        g->specs.at[i].job->spec = &g->specs.at[i];
    }
    g->sync_due = true;
}

int
gs_read_file(struct gpusched *g, bool first, struct buf *words)
{
    auto_buf struct buf text = BUF_INIT;
    struct gs_jobs specs;

    if (read_text(g->opt.jobs_path, &text, words) < 0) {
        if (!first)
            complain(g, words);
        return -1;
    }
    if (!first && text.len == 0 && g->last_text.len > 0 && !g->empty_seen) {
        g->empty_seen = true;
        return 0;
    }
    g->empty_seen = false;
    if (!first && text.len == g->last_text.len &&
        memcmp(buf_str(&text), buf_str(&g->last_text), text.len) == 0) {
        buf_clear(&g->said_broken);
        return 0;
    }
    if (gs_jobs_parse(buf_str(&text), text.len, &specs, words) < 0) {
        if (!first)
            complain(g, words);
        return -2;
    }
    buf_clear(&g->said_broken);
    take_specs(g, &specs);
    buf_clear(&g->last_text);
    buf_add(&g->last_text, text.data, text.len);
    return 0;
}

/* ----------------------------------------------------------- what can run */

int
gs_read_cards(struct gpusched *g, struct buf *why, struct err *e)
{
    auto_json json_t *result = NULL;
    const json_t *gpus;
    size_t i;
    json_t *gpu;
    int n = 0;

    if (compat_call(&g->session, "gpus", NULL, &result, e) < 0)
        return -1;
    gpus = json_object_get(result, "gpus");
    json_array_foreach(gpus, i, gpu)
    {
        int64_t index = answer_int(gpu, "index", -1), total = answer_int(gpu, "total_mib", 0);

        if (index < 0 || index >= GPU_MAX || strcmp(answer_str(gpu, "state"), "lost") == 0)
            continue;
        g->totals[index] = total > 0 || g->totals[index] < 0 ? total : g->totals[index];
        n++;
    }
    if (n > 0)
        return n;
    buf_adds(why, answer_str(result, "probe_error"));
    if (why->len == 0)
        buf_adds(why, "this machine shows no GPU");
    return -2;
}

bool
gs_is_infeasible(const struct gpusched *g, double vram_mib, int64_t gpus, struct buf *why)
{
    double need = vram_mib + (double)g->opt.margin_mib;
    int64_t usable = 0, fitting = 0;

    for (int i = 0; i < GPU_MAX; i++) {
        if (g->totals[i] < 0 || (g->opt.gpus_said && !(g->opt.devices >> i & 1)))
            continue;
        usable++;
        fitting += (double)g->totals[i] >= need;
    }
    if (gpus > usable)
        buf_addf(why, "needs %lld GPUs but only %lld are usable", (long long)gpus,
                 (long long)usable);
    else if (vram_mib > 0 && fitting < gpus)
        buf_addf(why,
                 "declared %.0f MiB + %lld MiB margin exceeds total capacity of %lld required "
                 "GPU(s)",
                 vram_mib, (long long)g->opt.margin_mib, (long long)(gpus - fitting));
    else
        return false;
    return true;
}

void
gs_mark_infeasible(struct gpusched *g, struct gs_job *job, const char *why)
{
    gs_warn(g, "job %lld INFEASIBLE — %s; marking failed: %s", (long long)job->no, why,
            job->command);
    gs_note_done(g, job, "infeasible", 1, NULL, -1);
    gs_add_result(g, job, 1, 0, "infeasible");
}

/* ------------------------------------------------------- going through it */

static int
cancel_lines(struct gpusched *g, struct err *e)
{
    json_t *ids = json_array();

    for (size_t i = 0; i < g->specs.n; i++) {
        const struct gs_spec *spec = &g->specs.at[i];
        struct gs_job *job = spec->job;

        if (!spec->cancel)
            continue;
        gs_seen(g, job, spec->command);
        if (job->run && !job->run->cancelled) {
            gs_warn(g, "job %lld CANCELLED by user — SIGTERM to its process group",
                    (long long)job->no);
            job->run->cancelled = true;
            job->run->killed_boot_us = clock_boot_us();
            json_array_append_new(ids, json_integer(job->id));
        } else if (!job->run && !job->terminal && !job->was_running) {
            gs_say(g, "job %lld cancelled before start: %s", (long long)job->no, spec->command);
            gs_note_done(g, job, "cancelled", 0, NULL, -1);
            gs_add_result(g, job, 0, 0, "cancelled");
        }
    }
    return compat_cancel(&g->session, ids, e);
}

/* A leader that is younger than the journal that names it is another's, with the number again.
 */
static bool
is_group_alive(const struct gpusched *g, int64_t pgid)
{
    struct proc leader;

    if (pgid <= 1 || pgid > INT32_MAX || kill((pid_t)-pgid, 0) < 0)
        return false;
    return proc_read((pid_t)pgid, &leader) < 0 ||
           proc_began_us(&leader) < g->journal_us + PID_SLACK_US;
}

/* Begun by another gpusched that has died. True: it is still there, and nothing is started. */
static bool
is_orphan(struct gpusched *g, struct gs_job *job)
{
    if (!job->was_running)
        return false;
    if (!is_group_alive(g, job->running_pgid)) {
        gs_note_interrupted(g, job);
        gs_say(g,
               "job %lld was interrupted mid-run by a previous scheduler's death — re-queuing",
               (long long)job->no);
        g->sync_due = true;
        return false;
    }
    if (!job->orphan_said)
        gs_warn(g,
                "job %lld is still running as an ORPHAN of a previous scheduler (pgid %lld) — "
                "not re-dispatching. Its exit code is unrecoverable; wait for it or kill it: "
                "kill -TERM -%lld",
                (long long)job->no, (long long)job->running_pgid, (long long)job->running_pgid);
    job->orphan_said = true;
    return true;
}

/* Whether the line is one that waits. */
static bool
is_pending(struct gpusched *g, const struct gs_spec *spec)
{
    struct gs_job *job = spec->job;

    gs_seen(g, job, spec->command);
    if (job->run || is_orphan(g, job) || spec->cancel)
        return false;
    if (!job->terminal)
        return true;
    if (job->before && !job->skip_said)
        gs_say(g, "job %lld already completed ok — skipping (journal): %s", (long long)job->no,
               spec->command);
    job->skip_said = true;
    return false;
}

void
gs_list_pending(struct gpusched *g)
{
    g->pending = xrealloc(g->pending, (g->specs.n + 1) * sizeof(struct gs_spec *));
    g->n_pending = 0;
    for (size_t i = 0; i < g->specs.n; i++) {
        if (is_pending(g, &g->specs.at[i]))
            g->pending[g->n_pending++] = &g->specs.at[i];
    }
}

static double
demand_of(const struct gs_spec *spec)
{
    return spec->job->next_vram ? (double)spec->job->next_vram : spec->vram_mib;
}

static void
drop_infeasible(struct gpusched *g)
{
    size_t kept = 0;

    for (size_t i = 0; i < g->n_pending; i++) {
        struct gs_spec *spec = g->pending[i];
        auto_buf struct buf why = BUF_INIT;

        if (gs_is_infeasible(g, demand_of(spec), spec->gpus, &why))
            gs_mark_infeasible(g, spec->job, buf_str(&why));
        else
            g->pending[kept++] = spec;
    }
    g->n_pending = kept;
}

/* ---------------------------------------------------------- to the daemon */

/* <log_dir>/job007_gpu0-1.log; the daemon knows the cards. */
static char *
log_pattern(const struct gpusched *g, const struct gs_job *job)
{
    auto_free char *name = xasprintf("job%03lld_gpu%%g.log", (long long)job->no);

    return compat_log_pattern(g->log_root, name);
}

int64_t
gs_oom_allowed(const struct gpusched *g, const struct gs_spec *spec)
{
    return spec->retries > g->opt.oom_retries ? spec->retries : g->opt.oom_retries;
}

static bool
fill_request(void *gpusched, void *gs_job, struct request *r)
{
    const struct gpusched *g = gpusched;
    const struct gs_spec *spec = ((const struct gs_job *)gs_job)->spec;
    double vram = demand_of(spec), limit_ms = ceil(spec->timeout_s * 1000);
    int64_t base = spec->job->oom_base >= 0 ? spec->job->oom_base : spec->job->attempts;
    int64_t retries = gs_oom_allowed(g, spec) - base;

    r->command = xstrdup(spec->command);
    r->log = log_pattern(g, spec->job);
    r->gpus_said = true;
    r->demand.gpus = (int32_t)spec->gpus;
    r->demand.vram_mib = (int32_t)vram;
    if (vram > 0)
        r->demand.margin_mib = (int32_t)g->opt.margin_mib;
    r->demand.idle_mib = (int32_t)(g->opt.idle_mib > 0 ? g->opt.idle_mib : 1);
    r->demand.placement = PLACING_PACK;
    r->demand.exclusive = g->opt.exclusive;
    r->demand.devices = g->opt.devices;
    r->limit_ms = limit_ms < (double)LIMIT_MAX_MS ? (int64_t)limit_ms : 0;
    r->oom_retries = (int32_t)(retries < 0 ? 0 : retries < RETRIES_MAX ? retries : RETRIES_MAX);
    return true;
}

/* The lines that the daemon is to have: those that wait, and those that run, which it would
 * keep anyway. */
static size_t
choose_lines(struct gpusched *g, struct compat_line *lines)
{
    size_t n = 0, at = 0;

    for (size_t i = 0; i < g->specs.n; i++) {
        const struct gs_spec *spec = &g->specs.at[i];
        bool waits = at < g->n_pending && g->pending[at] == spec;

        at += waits;
        if (!waits && (!spec->job->run || spec->cancel))
            continue;
        lines[n++] = (struct compat_line){.key = spec->job->key,
                                          .number = (int)i + 1,
                                          .job = spec->job,
                                          .id = &spec->job->id};
    }
    return n;
}

static void
on_entered(void *gpusched, void *gs_job, const char *state)
{
    struct gs_job *job = gs_job;

    (void)gpusched;
    (void)state;
    if (job->oom_base < 0)
        job->oom_base = job->attempts;
}

/* What the daemon remembers as ended and the journal does not is to run again. */
static enum compat_found
on_found(void *gpusched, void *gs_job, const char *state)
{
    const struct gs_job *job = gs_job;

    (void)gpusched;
    if (job->run || job->terminal)
        return COMPAT_WELL;
    return render_state_is_final(state)    ? COMPAT_AGAIN
           : render_state_is_active(state) ? COMPAT_LOOK
                                           : COMPAT_WELL;
}

struct compat_file
gs_file(struct gpusched *g)
{
    static const char *const kinds[] = {"started",  "launched", "usage",
                                        "requeued", "ended",    NULL};

    return (struct compat_file){.path = g->sync_path,
                                .kinds = kinds,
                                .ctx = g,
                                .fill = fill_request,
                                .take_events = gs_take_events,
                                .entered = on_entered,
                                .found = on_found,
                                .adopt = gs_adopt};
}

static int
sync_lines(struct gpusched *g, struct err *e)
{
    auto_free struct compat_line *lines = xcalloc(g->specs.n + 1, sizeof *lines);
    const struct compat_file file = gs_file(g);

    /* Numbers and skips are in the journal before anything can start. */
    gs_flush(g);
    g->sync_due = false; /* what comes meanwhile may ask for it again */
    if (compat_sync(&g->session, &file, lines, choose_lines(g, lines), e) == 0)
        return 0;
    g->sync_due = true;
    return -1;
}

int
gs_tick(struct gpusched *g, struct err *e)
{
    auto_buf struct buf why = BUF_INIT;

    if (cancel_lines(g, e) < 0)
        return -1;
    gs_list_pending(g);
    if (g->sync_due) {
        if (gs_read_cards(g, &why, e) == -1)
            return -1;
        drop_infeasible(g);
        if (sync_lines(g, e) < 0)
            return -1;
        gs_list_pending(g);
    }
    return 0;
}
