/* gpusched's output: lines with a time stamp, how each job ended compared with its
 * declaration, and the summary, which determines the exit status. */
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/ask/answer.h"
#include "cli/common/cli.h"
#include "compat/gpusched/gpusched.h"
#include "compat/py/pytext.h"

#define BOARD_SETTLE_US 200000 /* delay, since events come in bursts */

__attribute__((format(printf, 3, 0))) static void
say(struct gpusched *g, const char *before, const char *fmt, va_list ap)
{
    buf_addc(&g->out, '[');
    py_add_time(&g->out, PY_CLOCK, clock_wall_us());
    buf_addf(&g->out, "] %s", before);
    buf_addv(&g->out, fmt, ap);
    buf_addc(&g->out, '\n');
    if (!g->board_due_us)
        g->board_due_us = clock_boot_us() + BOARD_SETTLE_US;
}

void
gs_say(struct gpusched *g, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(g, "", fmt, ap);
    va_end(ap);
}

void
gs_warn(struct gpusched *g, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(g, "WARN  ", fmt, ap);
    va_end(ap);
}

void
gs_flush(struct gpusched *g)
{
    gs_journal_flush(g);
    if (g->out.len > 0)
        (void)cli_put(&g->out);
    buf_clear(&g->out);
}

void
gs_add_result(struct gpusched *g, struct gs_job *job, int64_t code, int64_t peak,
              const char *verdict)
{
    g->results = xgrow(g->results, g->n_results, &g->cap_results, sizeof *g->results);
    g->results[g->n_results++] =
        (struct gs_result){.job = job, .code = code, .peak_mib = peak, .verdict = verdict};
}

int64_t
gs_run_peak(const struct gs_run *run, int *slot)
{
    int64_t peak = 0;

    if (slot)
        *slot = 0;
    for (int i = 0; i < run->n_gpus; i++) {
        if (run->peak_mib[i] <= peak)
            continue;
        peak = run->peak_mib[i];
        if (slot)
            *slot = i;
    }
    return peak;
}

static bool
was_attributed(const struct gs_run *run)
{
    for (int i = 0; i < run->n_gpus; i++) {
        if (run->peak_mib[i] >= 0)
            return true;
    }
    return false;
}

void
gs_check_exceeds(struct gpusched *g, struct gs_job *job)
{
    struct gs_run *run = job->run;
    int slot;
    int64_t peak = gs_run_peak(run, &slot);

    if (run->vram_mib <= 0 || run->over_warned ||
        (double)peak <= run->vram_mib * (1 + g->opt.tolerance))
        return;
    run->over_warned = true;
    gs_warn(g,
            "job %lld EXCEEDS declared VRAM: %lld MiB observed on gpu %d vs %.0f MiB declared "
            "(+%.0f%%) — neighbors may OOM",
            (long long)job->no, (long long)peak, run->gpus[slot], run->vram_mib,
            100 * ((double)peak / run->vram_mib - 1));
}

/* --- end of a job --- */

struct ending {
    const char *status, *verdict; /* for the journal; for the board */
    char label[64];
    int64_t code;
};

/* As in Python's subprocess: the exit code, or the negative signal. */
static int64_t
return_code(const json_t *ended)
{
    int64_t sig = answer_int(ended, "signal", 0);

    if (sig > 0)
        return -sig;
    if (json_is_integer(json_object_get(ended, "exit_code")))
        return answer_int(ended, "exit_code", 0);
    if (json_is_integer(json_object_get(ended, "stop_code")))
        return answer_int(ended, "stop_code", 0);
    return strcmp(answer_str(ended, "state"), "TIMEOUT") == 0 ||
                   strcmp(answer_str(ended, "state"), "CANCELLED") == 0
               ? -15
               : answer_int(ended, "exit_status", 1);
}

static bool
is_cuda_oom(const json_t *ended)
{
    return strcmp(answer_str(ended, "state"), "OUT_OF_MEMORY") == 0 &&
           strncmp(answer_str(ended, "text"), "host", 4) != 0;
}

static const char *
verdict_of(const struct gpusched *g, const struct gs_run *run)
{
    double peak = (double)gs_run_peak(run, NULL);

    if (!was_attributed(run))
        return "unattributed";
    if (run->vram_mib <= 0)
        return "ok";
    if (peak > run->vram_mib * (1 + g->opt.tolerance))
        return "over";
    return peak < run->vram_mib * (1 - g->opt.tolerance) ? "under" : "ok";
}

static struct ending
judge(const struct gpusched *g, const struct gs_run *run, const json_t *ended)
{
    const char *state = answer_str(ended, "state");
    struct ending en = {.code = return_code(ended)};

    if (strcmp(state, "CANCELLED") == 0) {
        en.status = en.verdict = "cancelled";
        snprintf(en.label, sizeof en.label, "CANCELLED");
    } else if (strcmp(state, "TIMEOUT") == 0) {
        en.status = en.verdict = "timeout";
        snprintf(en.label, sizeof en.label, "TIMEOUT");
    } else if (is_cuda_oom(ended)) {
        en.status = en.verdict = "failed_oom";
        snprintf(en.label, sizeof en.label, "OOM (exit %lld, retries exhausted)",
                 (long long)en.code);
    } else if (strcmp(state, "COMPLETED") != 0) {
        en.status = en.verdict = "failed";
        snprintf(en.label, sizeof en.label, "EXIT %lld", (long long)en.code);
    } else {
        en.status = "ok";
        en.verdict = verdict_of(g, run);
        snprintf(en.label, sizeof en.label, "OK");
    }
    return en;
}

static void
add_peaks(struct buf *out, const struct gs_run *run)
{
    const char *comma = "";

    if (!was_attributed(run)) {
        buf_adds(out, "n/a (attribution failed — see README caveats)");
        return;
    }
    for (int i = 0; i < run->n_gpus; i++) {
        if (run->peak_mib[i] <= 0)
            continue;
        buf_addf(out, "%sgpu%d:%lld MiB", comma, run->gpus[i], (long long)run->peak_mib[i]);
        comma = ", ";
    }
}

static void
add_judgement(const struct gpusched *g, const struct gs_run *run, const struct ending *en,
              struct buf *out)
{
    double peak = (double)gs_run_peak(run, NULL), declared = run->vram_mib;

    if (declared <= 0 || !was_attributed(run) || strcmp(en->status, "ok") != 0)
        return;
    buf_addf(out, " | declared %.0f MiB → ", declared);
    if (strcmp(en->verdict, "over") == 0)
        buf_addf(out, "UNDER-DECLARED (+%.0f%%); raise it", 100 * (peak / declared - 1));
    else if (strcmp(en->verdict, "under") == 0)
        buf_addf(out, "over-declared (-%.0f%%); lowering it frees packing headroom",
                 100 * (1 - peak / declared));
    else
        buf_addf(out, "within ±%.0f%%", g->opt.tolerance * 100);
}

/* Report a time limit that was reached between two rounds. */
static void
say_timeout(struct gpusched *g, struct gs_job *job, const json_t *ended)
{
    struct gs_run *run = job->run;
    double elapsed = (double)answer_int(ended, "run_ms", 0) / 1000;

    if (strcmp(answer_str(ended, "state"), "TIMEOUT") != 0 || run->timed_out)
        return;
    run->timed_out = true;
    gs_warn(g, "job %lld TIMEOUT after %.0fs (limit %.0fs) — SIGTERM", (long long)job->no,
            elapsed, run->timeout_s);
}

/* Report a job that the daemon killed after the grace period, before a round saw it. */
static void
say_killed(struct gpusched *g, struct gs_job *job, const struct ending *en)
{
    struct gs_run *run = job->run;

    if ((run->timed_out || run->cancelled) && !run->escalated && en->code == -SIGKILL)
        gs_warn(g, "job %lld did not exit after SIGTERM — SIGKILL", (long long)job->no);
    run->escalated = true;
}

void
gs_finish(struct gpusched *g, struct gs_job *job, const json_t *ended)
{
    const struct gs_run *run = job->run;
    struct ending en = judge(g, run, ended);
    const json_t *measured = json_object_get(ended, "util");
    /* A job that ended before the first sample counts as 0% utilisation. */
    bool has_util = json_is_number(measured) || json_array_size(json_object_get(ended, "gpus"));
    double util = json_is_number(measured) ? json_number_value(measured) : 0;
    const char *why = answer_str(ended, "text");
    auto_buf struct buf line = BUF_INIT;

    say_timeout(g, job, ended);
    say_killed(g, job, &en);
    if (strncmp(why, "could not start", 15) == 0)
        gs_warn(g, "job %lld %s", (long long)job->no, why);
    buf_addf(&line, "job %lld finished [%s] in %.0fs — peak vram ", (long long)job->no,
             en.label, (double)answer_int(ended, "run_ms", 0) / 1000);
    add_peaks(&line, run);
    add_judgement(g, run, &en, &line);
    if (has_util)
        buf_addf(&line, " | avg gpu util %.0f%%", util);
    gs_say(g, "%s", buf_str(&line));
    gs_note_done(g, job, en.status, en.code, run, has_util ? util : -1);
    gs_add_result(g, job, en.code, gs_run_peak(run, NULL), en.verdict);
}

/* --- the summary --- */

/* A job that reached its limit has failed, even if it then exited with 0. */
bool
gs_has_failed(const struct gs_result *r)
{
    return strcmp(r->verdict, "timeout") == 0 ||
           (r->code != 0 && strcmp(r->verdict, "cancelled") != 0);
}

static size_t
count(const struct gpusched *g, const char *verdict)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n_results; i++)
        n += strcmp(g->results[i].verdict, verdict) == 0;
    return n;
}

/* Lines that failed in an earlier run still count as failures, although they are not run
 * again. */
static int64_t
say_failed_before(struct gpusched *g, int64_t highest)
{
    for (size_t i = 0; i < g->specs.n; i++) {
        const struct gs_job *job = g->specs.at[i].job;

        if (!job->before || !job->terminal || job->ok || strcmp(job->status, "cancelled") == 0)
            continue;
        gs_say(g, "  failed before: job %lld (%s, exit %lld) — %s", (long long)job->no,
               job->status, (long long)job->code, job->command);
        highest = job->code > highest ? job->code : highest > 0 ? highest : 1;
    }
    return highest;
}

int
gs_summary(struct gpusched *g)
{
    size_t failed = 0, cancelled = count(g, "cancelled");
    int64_t highest = 0;

    for (size_t i = 0; i < g->n_results; i++) {
        const struct gs_result *r = &g->results[i];

        failed += gs_has_failed(r);
        if (gs_has_failed(r))
            highest = r->code > highest ? r->code : highest > 0 ? highest : 1;
    }
    gs_say(g,
           "all %zu jobs done — %zu ok, %zu failed, %zu cancelled, %zu under-declared vram, "
           "%zu over-declared vram",
           g->n_results, g->n_results - failed - cancelled, failed, cancelled, count(g, "over"),
           count(g, "under"));
    for (size_t i = 0; i < g->n_results; i++) {
        const struct gs_result *r = &g->results[i];

        if (gs_has_failed(r))
            gs_say(g, "  failed: job %lld (%s, exit %lld) — %s", (long long)r->job->no,
                   r->verdict, (long long)r->code, r->job->command);
    }
    highest = say_failed_before(g, highest);
    gs_flush(g);
    return highest < 255 ? (int)highest : 255;
}
