/* Handles the daemon's events of gpusched's jobs: start, memory use, out of memory, end. Each
 * round it also checks running jobs for memory use and time limits. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/table/render.h"
#include "compat/gpusched/gpusched.h"
#include "wire/client.h"

#define VERBOSE_STEP_MIB 256
#define LOST_MAX         3

/* --- one attempt --- */

static int64_t
member_mib(const json_t *by_card, int card)
{
    char name[12];

    snprintf(name, sizeof name, "%d", card);
    return answer_int(by_card, name, -1);
}

static void
take_peaks(struct gs_run *run, const json_t *peaks)
{
    for (int i = 0; i < run->n_gpus; i++) {
        int64_t mib = member_mib(peaks, run->gpus[i]);

        if (mib > run->peak_mib[i])
            run->peak_mib[i] = mib;
    }
}

/* gpus: [0,1] or [{"index":0},..] */
static void
take_cards(struct gs_run *run, const json_t *gpus)
{
    size_t i;
    json_t *gpu;

    run->n_gpus = 0;
    json_array_foreach(gpus, i, gpu)
    {
        const json_t *index = json_is_object(gpu) ? json_object_get(gpu, "index") : gpu;

        if (run->n_gpus == GPU_MAX)
            break;
        run->last_mib[run->n_gpus] = run->peak_mib[run->n_gpus] = -1;
        run->gpus[run->n_gpus++] = (int)json_integer_value(index);
    }
}

/* --- `started` records, in order of start --- */

/* Events of starts come in order, process ids only as supervisors become ready. A start whose
 * id is known waits for those of earlier jobs. */
static void
note_starts(struct gpusched *g)
{
    size_t n = 0;

    while (n < g->n_starting && g->starting[n]->run->pgid > 0)
        gs_note_started(g, g->starting[n++]);
    if (n == 0)
        return;
    g->n_starting -= n;
    memmove(g->starting, g->starting + n, g->n_starting * sizeof(struct gs_job *));
}

/* The job ends or is pending again: note its start first, if its process id is known. */
static void
note_start_now(struct gpusched *g, struct gs_job *job)
{
    size_t i = 0;

    while (i < g->n_starting && g->starting[i] != job)
        i++;
    if (i == g->n_starting)
        return;
    if (job->run->pgid > 0)
        gs_note_started(g, job);
    g->n_starting--;
    memmove(g->starting + i, g->starting + i + 1,
            (g->n_starting - i) * sizeof(struct gs_job *));
    note_starts(g);
}

static struct gs_run *
begin_run(struct gpusched *g, struct gs_job *job, const json_t *source)
{
    struct gs_run *run = xcalloc(1, sizeof *run);

    run->attempt = answer_int(source, "attempt", 1);
    run->vram_mib = (double)answer_int(source, "vram_mib", 0);
    run->started_boot_us = clock_boot_us();
    run->said_peak = -1;
    take_cards(run, json_object_get(source, "gpus"));
    run->timeout_s = job->spec ? job->spec->timeout_s : 0;
    job->run = run;
    job->was_running = false;
    g->running = xgrow(g->running, g->n_running, &g->cap_running, sizeof *g->running);
    run->place = g->n_running;
    g->running[g->n_running++] = job;
    gs_touch(g, job);
    return run;
}

static void
end_run(struct gpusched *g, struct gs_job *job)
{
    struct gs_job *last = g->running[--g->n_running];

    note_start_now(g, job);
    g->running[job->run->place] = last;
    last->run->place = job->run->place;
    free(job->run);
    job->run = NULL;
    gs_touch(g, job);
}

static const char *
cards_of(const struct gs_run *run, struct buf *out)
{
    for (int i = 0; i < run->n_gpus; i++)
        buf_addf(out, i ? ",%d" : "%d", run->gpus[i]);
    return buf_str(out);
}

static void
say_started(struct gpusched *g, const struct gs_job *job)
{
    const struct gs_run *run = job->run;
    auto_buf struct buf cards = BUF_INIT, declared = BUF_INIT;

    if (run->vram_mib > 0)
        buf_addf(&declared, ", declared %.0f MiB/gpu", run->vram_mib);
    else
        buf_adds(&declared, ", undeclared (exclusive idle GPU)");
    gs_say(g, "job %lld started on gpu [%s] (%zu/%zu dispatched%s) — %s", (long long)job->no,
           cards_of(run, &cards), g->n_results + g->n_running, g->specs.n, buf_str(&declared),
           job->command);
}

/* --- events --- */

static void
on_started(struct gpusched *g, struct gs_job *job, const json_t *ev)
{
    if (job->run && job->run->attempt >= answer_int(ev, "attempt", 1))
        return;
    if (job->run)
        end_run(g, job);
    begin_run(g, job, ev);
    g->starting = xgrow(g->starting, g->n_starting, &g->cap_starting, sizeof *g->starting);
    g->starting[g->n_starting++] = job;
    say_started(g, job);
}

static void
note_pid(struct gpusched *g, struct gs_job *job, int64_t pid)
{
    if (job->run->journaled || pid <= 0)
        return;
    job->run->pgid = pid;
    note_starts(g);
}

static void
on_launched(struct gpusched *g, struct gs_job *job, const json_t *ev)
{
    if (!job->run || job->run->attempt != answer_int(ev, "attempt", 1))
        return;
    job->run->started_boot_us = clock_boot_us();
    note_pid(g, job, answer_int(ev, "pid", 0));
}

static void
on_usage(struct gpusched *g, struct gs_job *job, const json_t *ev)
{
    if (!job->run)
        return;
    take_peaks(job->run, json_object_get(ev, "peak_mib"));
    gs_check_exceeds(g, job);
}

static void
set_unwanted(struct gpusched *g, struct gs_job *job, bool unwanted)
{
    if (unwanted && !job->unwanted)
        g->n_unwanted++;
    else if (!unwanted && job->unwanted)
        g->n_unwanted--;
    job->unwanted = unwanted;
    g->drop_due |= unwanted;
}

/* Pending again: after an OOM with a larger demand, or because it was requeued. */
static void
on_requeued(struct gpusched *g, struct gs_job *job, const json_t *ev)
{
    int64_t next = answer_int(ev, "vram_mib", 0);
    int64_t allowed = answer_int(ev, "allowed", 1) + (job->oom_base > 0 ? job->oom_base : 0);
    double declared = job->run ? job->run->vram_mib : 0;
    auto_buf struct buf bump = BUF_INIT, why = BUF_INIT;

    if (!job->run)
        return;
    note_start_now(g, job);
    on_usage(g, job, ev);
    end_run(g, job);
    /* Its line was removed while the job ran. */
    set_unwanted(g, job, !job->spec);
    if (!answer_bool(ev, "oom")) {
        gs_note_interrupted(g, job);
        return;
    }
    gs_note_oom(g, job, next);
    if (next && declared > 0)
        buf_addf(&bump, " with vram %.0f → %lld MiB", declared, (long long)next);
    else if (next)
        buf_addf(&bump, " with vram n/a → %lld MiB", (long long)next);
    gs_say(g, "↻ job %lld hit CUDA OOM (attempt %lld/%lld) — requeued%s", (long long)job->no,
           (long long)job->attempts, (long long)allowed, buf_str(&bump));
    if (job->spec && gs_is_infeasible(g, (double)next, job->spec->gpus, &why)) {
        gs_mark_infeasible(g, job, buf_str(&why));
        g->sync_due = true;
    }
}

/* The supervisor vanished or the machine went down: run the job again, as the original would,
 * but at most LOST_MAX times. */
static bool
is_run_again(struct gpusched *g, struct gs_job *job)
{
    if (++job->lost > LOST_MAX)
        return false;
    gs_note_interrupted(g, job);
    gs_say(g, "job %lld was interrupted mid-run by a previous scheduler's death — re-queuing",
           (long long)job->no);
    g->sync_due = true;
    return true;
}

/* A job stopped by Ctrl-C runs again next time; one that had already ended does not. */
static bool
is_interrupted(struct gpusched *g, struct gs_job *job, const char *state)
{
    bool lost = strcmp(state, "LOST") == 0;

    if (g->leaving)
        return lost || strcmp(state, "CANCELLED") == 0;
    return lost && is_run_again(g, job);
}

/* Ended without running: its line was removed, a user cancelled it, or it can never start. */
static void
end_unstarted(struct gpusched *g, struct gs_job *job, const json_t *ev)
{
    const char *state = answer_str(ev, "state");

    if (!job->spec || job->terminal)
        return;
    if (strcmp(state, "CANCELLED") == 0) {
        gs_say(g, "job %lld cancelled before start: %s", (long long)job->no, job->command);
        gs_note_done(g, job, "cancelled", 0, NULL, -1);
        gs_add_result(g, job, 0, 0, "cancelled");
    } else {
        gs_mark_infeasible(g, job, answer_str(ev, "text"));
    }
}

static void
on_ended(struct gpusched *g, struct gs_job *job, const json_t *ev)
{
    set_unwanted(g, job, false);
    if (!job->run) {
        if (!g->leaving)
            end_unstarted(g, job, ev);
        return;
    }
    note_start_now(g, job);
    on_usage(g, job, ev);
    if (!is_interrupted(g, job, answer_str(ev, "state")))
        gs_finish(g, job, ev);
    end_run(g, job);
}

static void
take_event(struct gpusched *g, const json_t *ev)
{
    static const struct {
        const char *kind;
        void (*take)(struct gpusched *g, struct gs_job *job, const json_t *ev);
    } kinds[] = {
        {"started", on_started},   {"launched", on_launched}, {"usage", on_usage},
        {"requeued", on_requeued}, {"ended", on_ended},
    };
    const char *kind = answer_str(ev, "kind");
    struct gs_job *job = compat_job_of(&g->session, answer_int(ev, "job", 0));

    for (size_t i = 0; job && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind, kinds[i].kind) == 0)
            kinds[i].take(g, job, ev);
    }
}

void
gs_take_events(void *gpusched)
{
    struct gpusched *g = gpusched;
    auto_json json_t *events = compat_events(&g->session);
    size_t i;
    json_t *ev;

    json_array_foreach(events, i, ev) take_event(g, ev);
    gs_flush(g);
}

/* --- adopting --- */

void
gs_adopt(void *gpusched, void *gs_job, const json_t *object)
{
    struct gpusched *g = gpusched;
    struct gs_job *job = gs_job;
    const char *state = answer_str(object, "state");
    int64_t started = answer_time_us(object, "started");
    auto_buf struct buf cards = BUF_INIT;
    struct gs_run *run;

    /* It has no result, so its line runs again; if it had started, gs_is_orphan reports
     * that. */
    if (strcmp(state, "CANCELLED") == 0 || strcmp(state, "LOST") == 0 ||
        strcmp(state, "INFEASIBLE") == 0) {
        job->running_pgid = 0;
        return;
    }
    if (job->run)
        return;
    if (job->spec)
        gs_seen(g, job, job->spec->command);
    run = begin_run(g, job, object);
    run->pgid = answer_int(object, "pid", 0);
    run->journaled = true;
    take_peaks(run, json_object_get(object, "peak_mib"));
    if (started > 0)
        run->started_boot_us += started - clock_wall_us();
    if (render_state_is_final(state)) {
        gs_finish(g, job, object);
        end_run(g, job);
        return;
    }
    if (job->spec) {
        int64_t base = gs_oom_allowed(g, job->spec) - answer_int(object, "oom_retries", 0);

        job->oom_base = base > 0 ? base : 0;
    }
    gs_say(g, "job %lld is still running on gpu [%s] — following it again: %s",
           (long long)job->no, cards_of(run, &cards), job->command);
}

/* --- each round --- */

static void
say_usage(struct gpusched *g, struct gs_job *job)
{
    struct gs_run *run = job->run;
    int64_t peak = gs_run_peak(run, NULL);
    auto_buf struct buf now = BUF_INIT;

    if (!g->opt.verbose || peak <= 0 ||
        (run->said_peak >= 0 && peak < run->said_peak + VERBOSE_STEP_MIB))
        return;
    run->said_peak = peak;
    for (int i = 0; i < run->n_gpus; i++)
        buf_addf(&now, "%sgpu%d:%lld MiB", i ? ", " : "", run->gpus[i],
                 (long long)(run->last_mib[i] > 0 ? run->last_mib[i] : 0));
    gs_say(g, "job %lld vram now %s (peak %lld MiB)", (long long)job->no, buf_str(&now),
           (long long)peak);
}

/* Boot time at which the limit is reached, or the grace after it ends; INT64_MAX: never. */
static int64_t
late_us(const struct gs_run *run)
{
    if (run->killed_boot_us)
        return run->escalated ? INT64_MAX : run->killed_boot_us + GS_GRACE_US;
    return run->timeout_s > 0 ? run->started_boot_us + (int64_t)(run->timeout_s * 1e6)
                              : INT64_MAX;
}

/* Report the limit; the daemon enforces it. */
static void
say_late(struct gpusched *g, struct gs_job *job)
{
    struct gs_run *run = job->run;
    int64_t now = clock_boot_us();

    if (now < late_us(run))
        return;
    if (run->killed_boot_us) {
        run->escalated = true;
        gs_warn(g, "job %lld did not exit after SIGTERM — SIGKILL", (long long)job->no);
        return;
    }
    run->timed_out = true;
    run->killed_boot_us = now;
    gs_warn(g, "job %lld TIMEOUT after %.0fs (limit %.0fs) — SIGTERM", (long long)job->no,
            (double)(now - run->started_boot_us) / 1e6, run->timeout_s);
}

static void
take_row(struct gpusched *g, const json_t *row)
{
    struct gs_job *job = compat_job_of(&g->session, json_integer_value(json_array_get(row, 0)));
    const char *state = json_string_value(json_array_get(row, 4));

    if (!job || !job->run)
        return;
    for (int i = 0; i < job->run->n_gpus; i++)
        job->run->last_mib[i] = member_mib(json_array_get(row, 1), job->run->gpus[i]);
    take_peaks(job->run, json_array_get(row, 2));
    note_pid(g, job, json_integer_value(json_array_get(row, 3)));
    if (state && strcmp(state, "RUNNING") == 0) /* for ended jobs, their event reports it */
        say_late(g, job);
    gs_check_exceeds(g, job);
    say_usage(g, job);
}

/* Skips limits that had passed at the last look: those jobs have ended by now, or the next
 * round reports them. */
int64_t
gs_late_due(const struct gpusched *g)
{
    int64_t due = INT64_MAX;

    for (size_t i = 0; i < g->n_running; i++) {
        int64_t late = late_us(g->running[i]->run);

        if (late > g->looked_us && late < due)
            due = late;
    }
    return due;
}

int
gs_look_at_running(struct gpusched *g, struct err *e)
{
    json_t *ids = json_array(), *row;
    auto_json json_t *result = NULL;
    size_t i;

    g->looked_us = clock_boot_us();
    for (i = 0; i < g->n_running; i++)
        json_array_append_new(ids, json_integer(g->running[i]->id));
    if (compat_call_for(&g->session, "jobs", ids,
                        json_pack("{s:b,s:[sssss]}", "all", 1, "fields", "id", "use_mib",
                                  "peak_mib", "pid", "state"),
                        &result, e) < 0)
        return -1;
    json_array_foreach(json_object_get(result, "rows"), i, row) take_row(g, row);
    return 0;
}
