/* Sends gpusched's pending lines and their requests to the daemon, as a whole and in file
 * order, when the tick (gpusched_queue.c) finds changes; infeasible lines are left out. Also
 * recovers jobs of earlier runs: gs_recall. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/crash.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/table/render.h"
#include "compat/engine/compat_paths.h"
#include "compat/gpusched/gpusched.h"
#include "spec/attr.h"
#include "sys/procs.h"
#include "wire/client.h"

#define PID_SLACK_US 5000000 /* between times in /proc and of a file system */

/* --- what can run --- */

bool
gs_is_infeasible(const struct gpusched *g, double vram_mib, int64_t gpus, struct buf *why)
{
    double need = vram_mib + (double)g->opt.margin_mib;
    int64_t usable = 0, fitting = 0;

    for (int i = 0; i < GPU_MAX; i++) {
        if (g->cards.total_mib[i] < 0 || (g->opt.gpus_said && !(g->opt.devices >> i & 1)))
            continue;
        usable++;
        fitting += g->cards.total_mib[i] == 0 || (double)g->cards.total_mib[i] >= need;
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

static double
demand_of(const struct gs_spec *spec)
{
    return spec->job->next_vram ? (double)spec->job->next_vram : spec->vram_mib;
}

static bool
is_to_wait(const struct gs_job *job)
{
    return job->waits && !job->terminal;
}

static void
drop_infeasible(struct gpusched *g)
{
    for (size_t i = 0; i < g->specs.n; i++) {
        struct gs_spec *spec = &g->specs.at[i];
        auto_buf struct buf why = BUF_INIT;

        if (is_to_wait(spec->job) && gs_is_infeasible(g, demand_of(spec), spec->gpus, &why))
            gs_mark_infeasible(g, spec->job, buf_str(&why));
    }
}

/* --- sending --- */

/* <log_dir>/job007_gpu0-1.log; the daemon fills in the GPUs. */
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

bool
gs_fill_request(void *gpusched, void *gs_job, struct request *r)
{
    const struct gpusched *g = gpusched;
    const struct gs_spec *spec = ((const struct gs_job *)gs_job)->spec;
    double vram = demand_of(spec), limit_ms = ceil(spec->timeout_s * 1000);
    int64_t base = spec->job->oom_base >= 0 ? spec->job->oom_base : spec->job->attempts;
    int64_t retries = gs_oom_allowed(g, spec) - base;

    r->command = xstrdup(spec->command);
    r->log = log_pattern(g, spec->job);
    r->gpus_said = true;
    r->demand.gpus = (int32_t)(spec->gpus < GPU_MAX ? spec->gpus : GPU_MAX);
    r->demand.vram_mib = (int32_t)(vram < VRAM_MAX_MIB ? vram : VRAM_MAX_MIB);
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

/* Lines for the daemon: pending ones, and running ones, which it would keep anyway. */
static size_t
choose_lines(struct gpusched *g, struct compat_line *lines)
{
    size_t n = 0;

    for (size_t i = 0; i < g->specs.n; i++) {
        const struct gs_spec *spec = &g->specs.at[i];

        if (!is_to_wait(spec->job) && (!spec->job->run || spec->cancel))
            continue;
        lines[n++] = (struct compat_line){.key = spec->job->key,
                                          .number = (int)i + 1,
                                          .job = spec->job,
                                          .id = &spec->job->id};
    }
    return n;
}

void
gs_entered(void *gpusched, void *gs_job, const char *state)
{
    struct gs_job *job = gs_job;

    (void)gpusched;
    (void)state;
    if (job->oom_base < 0)
        job->oom_base = job->attempts;
}

/* A job that has ended in the daemon but not in the journal runs again. */
enum compat_found
gs_found(void *gpusched, void *gs_job, const char *state)
{
    const struct gs_job *job = gs_job;

    (void)gpusched;
    if (job->run || job->terminal)
        return COMPAT_WELL;
    return render_state_is_final(state)    ? COMPAT_AGAIN
           : render_state_is_active(state) ? COMPAT_LOOK
                                           : COMPAT_WELL;
}

/* --- jobs of an earlier run --- */

/* Jobs that an earlier gpusched started or queued: the daemon is asked about every line that
 * the journal has as unfinished. Running jobs are adopted, ended ones settled with their real
 * result, and nothing runs twice. For jobs started by the original, only the processes can be
 * found. */
void
gs_known(void *gpusched, void *gs_job, const char *state)
{
    struct gs_job *job = gs_job;

    (void)gpusched;
    if (!render_state_is_final(state))
        job->was_running = false;
}

/* True if the daemon is to be asked about the job. Includes jobs without a line: a job whose
 * line is removed continues to run. */
static bool
is_to_recall(const struct gs_job *job)
{
    return job->known && !job->terminal && (job->spec || job->command);
}

static struct compat_line
line_of(struct gs_job *job, size_t number)
{
    return (struct compat_line){
        .key = job->key, .number = (int)number, .job = job, .id = &job->id};
}

int
gs_recall(struct gpusched *g, struct err *e)
{
    auto_free struct compat_line *lines = xcalloc(HASH_COUNT(g->jobs) + 1, sizeof *lines);
    struct gs_job *job, *next;
    size_t n = 0;

    for (size_t i = 0; i < g->specs.n; i++) {
        if (is_to_recall(g->specs.at[i].job))
            lines[n++] = line_of(g->specs.at[i].job, i + 1);
    }
    HASH_ITER(hh, g->jobs, job, next)
    {
        if (!job->spec && is_to_recall(job))
            lines[n++] = line_of(job, g->specs.n + 1);
    }
    return compat_recall(&g->session, lines, n, e);
}

/* If the group's leader started after the last write of the journal, its number was reused. */
static bool
is_group_alive(const struct gpusched *g, int64_t pgid)
{
    struct proc leader;

    if (pgid <= 1 || pgid > INT32_MAX || (kill((pid_t)-pgid, 0) < 0 && errno != EPERM))
        return false;
    return proc_read((pid_t)pgid, &leader) < 0 ||
           proc_began_us(&leader) < g->journal_us + PID_SLACK_US;
}

bool
gs_is_orphan(struct gpusched *g, struct gs_job *job)
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
    job->orphan_said = g->orphans = true;
    return true;
}

/* --- a full disk --- */

/* Report that nothing starts until the daemon can write again; running jobs continue. */
static void
take_trouble(struct gpusched *g, const char *words)
{
    if (strcmp(words, buf_str(&g->trouble)) == 0)
        return;
    if (words[0])
        gs_warn(g, "nothing new starts until there is room: %s", words);
    else
        gs_say(g, "the daemon can write again — going on");
    buf_clear(&g->trouble);
    buf_adds(&g->trouble, words);
}

int
gs_look_at_disk(struct gpusched *g, struct err *e)
{
    auto_json json_t *result = NULL;

    if (g->n_pending == 0 && g->trouble.len == 0)
        return 0;
    if (compat_call(&g->session, "status", NULL, &result, e) < 0)
        return -1;
    take_trouble(g, answer_str(json_object_get(result, "daemon"), "disk_trouble"));
    return 0;
}

int
gs_sync(struct gpusched *g, struct err *e)
{
    auto_free struct compat_line *lines = xcalloc(g->specs.n + 1, sizeof *lines);

    if (compat_cards_read(&g->cards, g->session.link.client, e) < 0)
        return -1;
    drop_infeasible(g);
    /* Numbers and skips must be in the journal before any job starts. */
    gs_flush(g);
    crash_point("gpusched-noted");
    g->sync_due = false; /* changes during the sync make it due again */
    if (compat_sync(&g->session, lines, choose_lines(g, lines), e) == 0) {
        const char *full = compat_full(&g->session);

        if (full)
            gs_warn(g, "lines wait until there is room in the queue: %s", full);
        return 0;
    }
    g->sync_due = true;
    if (e->code != ERR_NO_SPACE)
        return -1;
    take_trouble(g, e->text);
    return 0;
}
