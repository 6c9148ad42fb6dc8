/* Numbers and sentences for how attempts and jobs ended. Called by job.c for retries and by
 * the daemon for reports. Decides no state except which one an ending stands for. */
#include "core/queue/endings.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/libc.h"
#include "base/parse.h"
#include "core/queue/array.h"

const char *
verdict_name(enum verdict v)
{
    static const char *const names[] = {NULL, "within", "under", "over", "unattributed"};
    return names[v];
}

enum verdict
account_verdict(int32_t declared_mib, int32_t peak_mib, int32_t tolerance_permille)
{
    if (declared_mib <= 0)
        return VERDICT_NONE;
    if (peak_mib < 0)
        return VERDICT_UNATTRIBUTED;
    int64_t declared = (int64_t)declared_mib * 1000;
    int64_t band = (int64_t)declared_mib * tolerance_permille;
    int64_t peak = (int64_t)peak_mib * 1000;
    if (peak > declared + band)
        return VERDICT_UNDER;
    return peak < declared - band ? VERDICT_OVER : VERDICT_WITHIN;
}

int32_t
account_percent(int32_t declared_mib, int32_t peak_mib)
{
    int64_t twice = ((int64_t)peak_mib - declared_mib) * 200;
    int64_t half_away = twice < 0 ? -declared_mib : declared_mib;
    return (int32_t)((twice + half_away) / (2 * (int64_t)declared_mib));
}

int32_t
attempt_peak_mib(const struct attempt *a)
{
    int32_t peak = a->sent.key[0] ? a->sent.peak_mib : -1;
    for (int i = 0; i < a->n_gpus; i++) {
        if (a->peak_mib[i] > peak)
            peak = a->peak_mib[i];
    }
    return peak;
}

int32_t
attempt_util(const struct attempt *a)
{
    if (a->util_count <= 0)
        return -1;
    return (int32_t)((a->util_sum + a->util_count / 2) / a->util_count);
}

int32_t
account_oom_next_mib(int32_t peak_mib, int32_t demand_mib)
{
    int64_t base = peak_mib > demand_mib ? peak_mib : demand_mib;
    if (base <= 0)
        return 0;
    int64_t next = (base * 5 + 3) / 4;
    return next > VRAM_MAX_MIB ? VRAM_MAX_MIB : (int32_t)next;
}

int64_t
account_backoff_us(int32_t retry)
{
    int64_t wait = RETRY_BACKOFF_FIRST_US;
    for (int32_t i = 1; i < retry && wait < RETRY_BACKOFF_MAX_US; i++)
        wait *= 2;
    return wait > RETRY_BACKOFF_MAX_US ? RETRY_BACKOFF_MAX_US : wait;
}

struct ending
ending_never_ran(int32_t errnum, int64_t at_us)
{
    return (struct ending){.outcome = OUTCOME_NEVER_RAN,
                           .code = -1,
                           .errno_value = errnum,
                           .ended_us = at_us,
                           .cpu_ms = -1,
                           .max_rss_kib = -1};
}

enum job_state
ending_state(const struct ending *e)
{
    switch (e->outcome) {
    case OUTCOME_EXITED:
        if (e->code == 0)
            return JOB_COMPLETED;
        return e->oom != OOM_NONE ? JOB_OUT_OF_MEMORY : JOB_FAILED;
    case OUTCOME_SIGNALED:
        return e->oom != OOM_NONE ? JOB_OUT_OF_MEMORY : JOB_FAILED;
    case OUTCOME_TIMEOUT:
        return JOB_TIMEOUT;
    case OUTCOME_CANCELLED:
    case OUTCOME_REQUEUED: /* unless it is pending again, as intended */
        return JOB_CANCELLED;
    case OUTCOME_PREEMPTED:
        return JOB_PREEMPTED;
    case OUTCOME_NOT_STARTED:
    case OUTCOME_SETUP_FAILED:
    case OUTCOME_EXCEEDED:
        return JOB_FAILED;
    case OUTCOME_LOST:
    case OUTCOME_NEVER_RAN: /* after enough attempts, with or without a known reason */
        return e->errno_value ? JOB_FAILED : JOB_LOST;
    case OUTCOME_NONE:
        break;
    }
    err_abort("the state of an attempt that has not ended");
}

static int32_t
not_started_status(int32_t errno_value)
{
    switch (errno_value) {
    case EACCES:
    case EPERM:
    case ENOEXEC:
        return 126;
    case ENOENT:
    case ENOTDIR:
        return 127;
    default:
        return 1;
    }
}

static int32_t
ending_status(const struct ending *e)
{
    switch (e->outcome) {
    case OUTCOME_EXITED:
        return e->code & 255;
    case OUTCOME_SIGNALED:
        return (128 + e->signal) & 255;
    case OUTCOME_NOT_STARTED:
        return not_started_status(e->errno_value);
    case OUTCOME_SETUP_FAILED: /* a set-up that exits with 0 did not do its job */
        return e->signal ? (128 + e->signal) & 255 : e->code > 0 ? e->code & 255 : 1;
    case OUTCOME_NONE:
    case OUTCOME_TIMEOUT:
    case OUTCOME_CANCELLED:
    case OUTCOME_REQUEUED:
    case OUTCOME_PREEMPTED:
    case OUTCOME_LOST:
    case OUTCOME_NEVER_RAN:
    case OUTCOME_EXCEEDED:
        break;
    }
    return 1;
}

int32_t
job_exit_status(const struct job *job)
{
    switch (job->state) {
    case JOB_COMPLETED:
        return 0;
    case JOB_FAILED:
    case JOB_OUT_OF_MEMORY:
        if (job->tasks)
            return array_exit_status(job->tasks);
        return job->run ? ending_status(&job->run->ending) : 1;
    case JOB_TIMEOUT:
        return 124;
    case JOB_CANCELLED:
        return STATUS_CANCELLED;
    case JOB_PREEMPTED:
    case JOB_INFEASIBLE:
    case JOB_LOST:
        return 1;
    case JOB_PENDING:
    case JOB_HELD:
    case JOB_STARTING:
    case JOB_RUNNING:
    case JOB_SUSPENDED:
    case JOB_COMPLETING:
        break;
    }
    return -1;
}

static void
add_cause(const struct ending *e, struct buf *out)
{
    if (e->signal) {
        const char *name = libc_signal_name(e->signal);
        buf_addf(out, "killed by signal %d", e->signal);
        if (name)
            buf_addf(out, " (%s)", name);
    } else {
        buf_addf(out, "exit %d", e->code);
    }
}

static void
add_detail(const char *text, struct buf *out)
{
    if (text && text[0])
        buf_addf(out, ": %s", text);
}

/* An attempt that ended by itself. */
static void
add_own_end(const struct ending *e, struct buf *out)
{
    bool bad = e->outcome == OUTCOME_SIGNALED || e->code != 0;
    if (bad && e->oom != OOM_NONE) {
        buf_adds(out, e->oom == OOM_CUDA ? "CUDA out of memory (" : "host out of memory (");
        add_cause(e, out);
        buf_addc(out, ')');
        add_detail(e->text, out);
    } else {
        add_cause(e, out);
        if (bad)
            add_detail(e->text, out);
    }
}

static void
add_setup(const struct ending *e, struct buf *out)
{
    buf_adds(out, "set-up failed: ");
    if (!e->signal && e->code == 0)
        buf_adds(out, "the shell exited before the command (exit 0)");
    else
        add_cause(e, out);
    add_detail(e->text, out);
}

/* It did not end when asked, so it could not save its work. */
static void
add_killed(const struct ending *e, struct buf *out)
{
    if (e->signal == SIGKILL)
        buf_adds(out, ", killed after the grace period");
}

/* Appends what Slurm did. A supervisor's own text begins as `ours` does, and adds nothing. */
static void
add_other_cause(const struct ending *e, const char *ours, struct buf *out)
{
    if (strncmp(e->text, ours, strlen(ours)) != 0)
        add_detail(e->text, out);
}

void
ending_text(const struct ending *e, struct buf *out)
{
    switch (e->outcome) {
    case OUTCOME_NONE:
        break;
    case OUTCOME_EXITED:
    case OUTCOME_SIGNALED:
        add_own_end(e, out);
        break;
    case OUTCOME_PREEMPTED:
        buf_adds(out, "preempted by a job of higher priority");
        add_killed(e, out);
        break;
    case OUTCOME_REQUEUED:
        buf_adds(out, "stopped to run again");
        add_killed(e, out);
        add_other_cause(e, "stopped to run again", out);
        break;
    case OUTCOME_EXCEEDED:
        buf_adds(out, "used more VRAM than it declared");
        add_killed(e, out);
        break;
    case OUTCOME_TIMEOUT:
        buf_adds(out, "time limit reached");
        add_killed(e, out);
        add_other_cause(e, "time limit", out);
        break;
    case OUTCOME_CANCELLED:
        buf_adds(out, "cancelled");
        add_killed(e, out);
        break;
    case OUTCOME_NOT_STARTED:
        buf_adds(out, "could not start");
        add_detail(e->text[0] ? e->text : strerror(e->errno_value), out);
        break;
    case OUTCOME_SETUP_FAILED:
        add_setup(e, out);
        break;
    case OUTCOME_LOST:
        buf_adds(out, "lost");
        add_detail(e->text, out);
        break;
    case OUTCOME_NEVER_RAN:
        if (e->errno_value || e->text[0])
            buf_addf(out, "could not start: %s", e->text);
        else
            buf_adds(out, "its supervisor died before the command started");
        break;
    }
}

/* "used 4.4 GiB of 4.0 GiB declared; declare --vram 5G" */
static void
add_excess(const struct attempt *run, struct buf *out)
{
    int32_t peak = attempt_peak_mib(run);
    char used[24], declared[24], ask[24];
    if (peak <= run->vram_mib || run->vram_mib <= 0) {
        ending_text(&run->ending, out);
        return;
    }
    buf_addf(out, "used %s of %s VRAM declared; declare --vram %s", format_mib(peak, used),
             format_mib(run->vram_mib, declared),
             format_ask_mib(request_vram_for_peak_mib(peak), ask));
    add_killed(&run->ending, out);
}

void
attempt_end_text(const struct attempt *run, struct buf *out)
{
    if (run->ending.outcome == OUTCOME_EXCEEDED)
        add_excess(run, out);
    else
        ending_text(&run->ending, out);
}

static void
add_cancelled(const struct job *job, struct buf *out)
{
    if (job->never_text) {
        buf_adds(out, job->never_text);
        return;
    }
    buf_adds(out, "cancelled");
    if (job->cancelled_by)
        buf_addf(out, " by %s", job->cancelled_by);
    if (!job->attempts)
        buf_adds(out, " before it started");
    else if (job->run && job->run->ending.outcome == OUTCOME_CANCELLED)
        add_killed(&job->run->ending, out);
}

/* "tasks: 97 COMPLETED, 3 FAILED" */
static void
add_tasks(const struct tasks *t, struct buf *out)
{
    const char *before = "tasks: ";
    for (int s = 0; s < JOB_STATES; s++) {
        if (!t->ended[s])
            continue;
        buf_addf(out, "%s%d %s", before, t->ended[s], job_state_name((enum job_state)s));
        before = ", ";
    }
}

void
job_end_text(const struct job *job, struct buf *out)
{
    char duration[24];
    if (!job_state_is_final(job->state))
        return;
    if (job->state == JOB_INFEASIBLE) {
        buf_adds(out, job->never_text ? job->never_text : "it can never start on this machine");
    } else if (job->tasks && !(job->never_text && job->state == JOB_CANCELLED)) {
        add_tasks(job->tasks, out);
    } else if (job->state == JOB_CANCELLED) {
        add_cancelled(job, out);
    } else if (job->state == JOB_TIMEOUT && job->req.limit_ms > 0) {
        buf_addf(out, "time limit of %s reached", format_duration(job->req.limit_ms, duration));
        if (job->run && job->run->ending.outcome == OUTCOME_TIMEOUT)
            add_killed(&job->run->ending, out);
    } else if (job->run) {
        attempt_end_text(job->run, out);
    }
}
