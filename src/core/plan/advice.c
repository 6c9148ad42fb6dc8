/* The sentences of advice.h. Each names the option or the verb that would change something; if
 * only waiting helps, there is no advice. */
#include "core/plan/advice.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "core/ledger/cards.h"
#include "core/place/place.h"
#include "core/queue/endings.h"

#define CEILING_PERMILLE 980 /* of a GPU's VRAM: the driver uses the rest */

/* Writes the demand as a person would: in whole GiB, rounded up, unless that wastes much. */
static void
add_vram(struct buf *out, int64_t mib)
{
    if (mib >= 2048)
        buf_addf(out, "--vram %lldG", (long long)((mib + 1023) / 1024));
    else
        buf_addf(out, "--vram %lldM", (long long)mib);
}

/* "berth VERB 12", or with ARRAY_TASK for a task. */
static void
add_verb(struct buf *out, const char *verb, const struct job *job)
{
    if (job->array)
        buf_addf(out, "berth %s %u_%d", verb, job->array, job->task);
    else
        buf_addf(out, "berth %s %u", verb, job->id);
}

static void
add_of(struct buf *out, int64_t mib, int64_t of_mib)
{
    char a[24], b[24];
    buf_addf(out, "%s of %s", format_mib(mib, a), format_mib(of_mib, b));
}

/* --- jobs that wait --- */

static void
for_memory(const struct job *job, const struct blocked *why, struct buf *out)
{
    int64_t fits = why->free_mib - why->margin_mib;
    bool worth = fits * 2 >= job->req.demand.vram_mib; /* far less is another job */
    if (worth && fits > 0 && job->req.demand.gpus == 1) {
        add_vram(out, fits / 1024 ? fits / 1024 * 1024 : fits);
        buf_addf(out, " would fit on gpu %d now", why->gpu);
    } else if (why->by == BLOCKED_BY_STRANGER && why->stranger_pid) {
        buf_addf(out, "end process %d, or ask its owner", why->stranger_pid);
    }
}

static void
for_busy(const struct job *job, const struct blocked *why, struct buf *out)
{
    if (why->guard)
        buf_adds(out, why->guard == 'u' ? "a higher --max-used" : "a higher --max-load");
    else if (demand_is_whole(&job->req.demand) && why->by == BLOCKED_BY_JOB)
        buf_adds(out, "--vram SIZE lets it share a GPU with others");
    else if (why->by == BLOCKED_BY_STRANGER && why->stranger_pid)
        buf_addf(out, "end process %d, or declare --vram to start beside it",
                 why->stranger_pid);
}

static void
for_reservation(const struct job *job, struct buf *out)
{
    if (job->req.limit_ms == 0)
        buf_adds(out, "with a time limit (--time) it could start before the reservation if it "
                      "ends in time");
}

static void
for_card(const struct job *job, const struct blocked *why, struct buf *out)
{
    enum reason card = why->card_reason ? why->card_reason : why->reason;
    if (why->waits_for.id && why->until_us < INT64_MAX)
        for_reservation(job, out);
    if (out->len)
        return;
    if (card == REASON_GPU_MEMORY)
        for_memory(job, why, out);
    else if (card == REASON_GPU_BUSY)
        for_busy(job, why, out);
    else if (card == REASON_GPU_SHARE)
        buf_adds(out, "a smaller --gpus share, or --vram without a share");
    else if (card == REASON_GPU_PAUSED && why->gpu_state == GPU_UP)
        buf_adds(out, "'nvidia-smi -c DEFAULT', by root, lets processes in again");
    else if (card == REASON_GPU_PAUSED && why->gpu >= 0)
        buf_addf(out, "berth resume %d", why->gpu);
    else if (card == REASON_GPU_SICK)
        buf_adds(out, "'berth gpus' says what is wrong with the GPU");
    else if (card == REASON_GPU_CAP && job->req.demand.vram_cap == VRAM_CAP_REQUIRE)
        buf_adds(out, "--vram-cap auto starts it without");
}

void
advice_for_waiting(const struct job *job, const struct blocked *why,
                   const struct advice_facts *f, struct buf *out)
{
    (void)f;
    switch (why->reason) {
    case REASON_RESOURCES:
    case REASON_GPU_MEMORY:
    case REASON_GPU_SHARE:
    case REASON_GPU_BUSY:
    case REASON_GPU_PAUSED:
    case REASON_GPU_SICK:
    case REASON_GPU_MPS:
    case REASON_GPU_CAP:
        for_card(job, why, out);
        return;
    case REASON_HELD:
        if (!why->limit) /* an admin's hold */
            add_verb(out, "release", job);
        return;
    case REASON_CPUS:
        buf_adds(out, "fewer --cpus");
        return;
    case REASON_MEMORY:
        buf_adds(out, "less --mem");
        return;
    case REASON_PROBE:
        buf_adds(out, "'berth doctor' says why the GPUs cannot be read");
        return;
    case REASON_DEPENDENCY:
        buf_adds(out, "berth explain ");
        called_text(&why->waits_for, out);
        return;
    case REASON_DISK:
        buf_adds(out, "free space on that disk, or repair it; then jobs start again");
        return;
    case REASON_MACHINE:
        buf_adds(out, "solve that problem; the start is retried automatically");
        return;
    case REASON_SLURM:
        buf_adds(out, "nothing; it is sent as soon as Slurm takes more jobs");
        return;
    case REASON_RESERVATION:
        for_reservation(job, out);
        return;
    case REASON_ARRAY_LIMIT:
        buf_adds(out, "a larger %N in --array");
        return;
    case REASON_NONE:
    case REASON_PRIORITY:
    case REASON_BEGIN_TIME:
    case REASON_USER_LIMIT:
    case REASON_QUEUE_LIMIT:
        return;
    }
}

/* --- jobs that have ended --- */

bool
advice_is_at_ceiling(const struct job *job, const struct advice_facts *f)
{
    return job->state == JOB_FAILED && job->run && f->card_mib > 0 &&
           job->run->ending.outcome != OUTCOME_NOT_STARTED &&
           (int64_t)attempt_peak_mib(job->run) * 1000 >= f->card_mib * CEILING_PERMILLE;
}

/* "peaked at 23.1 of 24.0 GiB: --vram 26G or --oom-retries 2" */
static void
for_cuda_oom(const struct job *job, const struct advice_facts *f, struct buf *out)
{
    int32_t peak = attempt_peak_mib(job->run), had = job->run->vram_mib;
    int64_t of = had > 0 ? had : f->card_mib;
    int64_t next = account_oom_next_mib(peak, had);
    char ask[24];
    if (job->run->n_gpus == 0) {
        buf_adds(out, "the job had no GPU: request one with --gpus 1");
        return;
    }
    if (peak >= 0 && of > 0) {
        buf_adds(out, "peaked at ");
        add_of(out, peak, of);
        buf_adds(out, ": ");
    }
    if (had > 0 && (f->largest_mib == 0 || next <= f->largest_mib)) {
        buf_addf(out, "--vram %s or --oom-retries 2", format_ask_mib(next, ask));
    } else if (f->card_mib > 0 && f->largest_mib > f->card_mib) {
        char size[24];
        buf_addf(out, "a larger GPU (--min-vram %lldG; the largest here has %s)",
                 (long long)(f->largest_mib / 1024), format_mib(f->largest_mib, size));
    } else {
        buf_adds(out, "a smaller batch, or more GPUs; no GPU here is larger");
    }
}

static void
for_host_oom(const struct job *job, struct buf *out)
{
    int64_t had = job->req.demand.mem_mib;
    if (had > 0)
        buf_addf(out, "--mem %lldG or more", (long long)((had * 5 / 4 + 1023) / 1024));
    else
        buf_adds(out, "request what it needs with --mem");
}

static void
for_limit(const struct job *job, struct buf *out)
{
    char limit[24];
    buf_addf(out, "--time %s, or --on-timeout requeue if it can continue from a checkpoint",
             format_duration(job->req.limit_ms * 2, limit));
    if (!job->req.warn_signal)
        buf_adds(out, "; --signal USR2@60 warns it one minute before");
}

static void
for_not_started(const struct ending *e, struct buf *out)
{
    static const char no_log[] =
        "cannot open the log"; /* message of shepherd/begin/berth_user.c */
    bool is_log = strncmp(e->text, no_log, sizeof no_log - 1) == 0;
    if (is_log && e->errno_value != ENOSPC && e->errno_value != EDQUOT) {
        buf_adds(out, "--log with a file that the job's user may write");
        return;
    }
    switch (e->errno_value) {
    case ENOENT:
        buf_adds(out, "check the name of the program, its PATH and its folder");
        return;
    case EACCES:
    case EPERM:
        buf_adds(out, "is it executable (chmod +x), and may its user reach it?");
        return;
    case ENOEXEC:
        buf_adds(out, "a script needs a first line like #!/bin/sh");
        return;
    case ENOSPC:
    case EDQUOT:
        buf_adds(out, "free space on the disk of its log");
        return;
    default:
        return;
    }
}

static void
for_exit(const struct job *job, struct buf *out)
{
    const struct ending *e = &job->run->ending;
    if (e->outcome == OUTCOME_EXITED && e->code == 127)
        buf_adds(out, "the shell did not find the command; ");
    else if (e->outcome == OUTCOME_EXITED && e->code == 126)
        buf_adds(out, "the shell could not execute it; ");
    else if (e->outcome == OUTCOME_SIGNALED && e->signal == SIGKILL)
        buf_adds(out, "Berth did not kill it: the kernel (out of memory?) or a person did; ");
    add_verb(out, "logs", job);
    buf_adds(out, " shows its output");
}

static void
for_failed(const struct job *job, const struct advice_facts *f, struct buf *out)
{
    const struct ending *e = &job->run->ending;
    if (e->outcome == OUTCOME_NOT_STARTED || e->outcome == OUTCOME_NEVER_RAN) {
        for_not_started(e, out);
    } else if (e->outcome == OUTCOME_EXCEEDED) {
        buf_adds(out, "--oom-retries 2 would run it again with more VRAM");
    } else if (advice_is_at_ceiling(job, f)) {
        buf_adds(out, "its memory was at the GPU's limit (");
        add_of(out, attempt_peak_mib(job->run), f->card_mib);
        buf_adds(out, "): a smaller batch, or a larger GPU");
    } else {
        for_exit(job, out);
    }
}

/* The declaration was wrong: advise for the next run. */
static void
for_completed(const struct job *job, const struct advice_facts *f, struct buf *out)
{
    int32_t peak = attempt_peak_mib(job->run), had = job->run->vram_mib;
    enum verdict v = account_verdict(had, peak, f->tolerance_permille);
    char size[24];
    if (v != VERDICT_UNDER && (v != VERDICT_OVER || had != job->declared_mib))
        return;
    buf_adds(out, "peaked at ");
    add_of(out, peak, had);
    buf_adds(out, " declared: ");
    buf_addf(out, "--vram %s", format_ask_mib(request_vram_for_peak_mib(peak), size));
    buf_adds(out, v == VERDICT_UNDER ? " is what it needs" : " would be enough");
}

void
advice_for_ended(const struct job *job, const struct advice_facts *f, struct buf *out)
{
    if (job->state == JOB_LOST) {
        add_verb(out, "requeue", job);
        buf_adds(out, " runs it again; with --requeue Berth does that itself");
    } else if (job->state == JOB_INFEASIBLE || job->state == JOB_CANCELLED || !job->run) {
        return;
    } else if (job->state == JOB_OUT_OF_MEMORY) {
        if (job->run->ending.oom == OOM_CUDA)
            for_cuda_oom(job, f, out);
        else
            for_host_oom(job, out);
    } else if (job->state == JOB_TIMEOUT) {
        if (job->req.limit_ms > 0)
            for_limit(job, out);
    } else if (job->state == JOB_FAILED) {
        for_failed(job, f, out);
    } else if (job->state == JOB_COMPLETED) {
        for_completed(job, f, out);
    }
}
