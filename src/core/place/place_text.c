/* The sentence for a struct blocked. Called for listings and explanations; uses only the
 * numbers that place.c and plan.c recorded. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/parse.h"
#include "core/ledger/cards.h"
#include "core/place/place_priv.h"

static void
add_size(struct buf *out, const char *before, int64_t mib, const char *after)
{
    char text[24];
    buf_addf(out, "%s%s%s", before, format_mib(mib, text), after);
}

/* 500: "0.5" */
static void
add_part(struct buf *out, int32_t permille)
{
    int digits = permille % 100 == 0 ? 1 : permille % 10 == 0 ? 2 : 3;
    buf_addf(out, "%.*f", digits, permille / 1000.0);
}

/* 935: "93.5 %" */
static void
add_percent(struct buf *out, int32_t permille)
{
    buf_addf(out, "%d", permille / 10);
    if (permille % 10)
        buf_addf(out, ".%d", permille % 10);
    buf_adds(out, " %");
}

static void
add_time(struct buf *out, const char *before, int64_t wall_us)
{
    char when[32];
    int64_t whole_us = wall_us / 1000000 * 1000000; /* people need no fraction of a second */
    buf_addf(out, "%s%s", before, clock_rfc3339(whole_us, when));
}

/* " called 'a100' with 40.0 GiB or more, of gpus 0-3" */
static void
add_kind(const struct demand *d, struct buf *out)
{
    if (d->gpu_type[0])
        buf_addf(out, " called '%s'", d->gpu_type);
    if (d->min_vram_mib > 0)
        add_size(out, " of ", d->min_vram_mib, " or more");
    if (d->min_cc > 0)
        buf_addf(out, " of compute capability %.1f or more", d->min_cc / 10.0);
    if (d->devices && !d->n_ids) {
        buf_adds(out, " among ");
        gpu_set_text(d->devices, out);
    }
}

/* "one GPU", "each of 2 GPUs", "gpu 3", "each of gpus 3,1" */
static void
add_where(const struct demand *d, struct buf *out)
{
    int want = demand_n_gpus(d);
    if (d->n_ids == 1) {
        buf_addf(out, "gpu %d", d->ids[0]);
    } else if (d->n_ids) {
        for (int i = 0; i < d->n_ids; i++)
            buf_addf(out, "%s%d", i ? "," : "each of gpus ", d->ids[i]);
    } else if (want == 1) {
        buf_adds(out, "one GPU");
    } else {
        buf_addf(out, "each of %d GPUs", want);
    }
    add_kind(d, out);
}

/* "needs 0.5 of a GPU", "... with 6.0 GiB + 512 MiB margin" */
static void
add_want_share(const struct blocked *b, const struct demand *d, struct buf *out)
{
    buf_adds(out, "needs ");
    add_part(out, d->share_permille);
    buf_adds(out, d->n_ids ? " of " : " of a GPU");
    if (d->n_ids)
        buf_addf(out, "gpu %d", d->ids[0]);
    add_kind(d, out);
    if (d->vram_mib > 0)
        add_size(out, " with ", d->vram_mib, "");
    else if (b->need_mib > 0)
        add_size(out, " (", b->need_mib, " there)");
    if (b->margin_mib > 0)
        add_size(out, " + ", b->margin_mib, " margin");
}

static void
add_want_whole(const struct demand *d, struct buf *out)
{
    int want = demand_n_gpus(d);
    if (d->n_ids) {
        buf_adds(out, "wants ");
        add_where(d, out);
        buf_adds(out, " idle");
        return;
    }
    if (want == 1)
        buf_adds(out, "wants an idle GPU");
    else
        buf_addf(out, "wants %d idle GPUs", want);
    add_kind(d, out);
}

static void
add_want(const struct blocked *b, const struct demand *d, struct buf *out)
{
    if (demand_is_whole(d)) {
        add_want_whole(d, out);
        return;
    }
    if (d->share_permille > 0) {
        add_want_share(b, d, out);
    } else {
        add_size(out, "needs ", d->vram_mib, "");
        add_size(out, " + ", b->margin_mib, " margin on ");
        add_where(d, out);
    }
    if (d->exclusive)
        buf_adds(out, demand_n_gpus(d) == 1 ? ", alone" : ", alone on each");
}

static void
add_stranger(const struct blocked *b, struct buf *out)
{
    add_size(out, "", b->stranger_mib, " in use outside Berth");
    if (b->stranger_pid)
        buf_addf(out, " (pid %d)", b->stranger_pid);
}

void
called_text(const struct called *job, struct buf *out)
{
    if (job->line)
        buf_addf(out, "%d", job->line);
    else if (job->array)
        buf_addf(out, "%u_%d", job->array, job->task);
    else
        buf_addf(out, "%u", job->id);
}

/* "job 7", "jobs 4, 7, 9 and 2 more" */
static void
add_jobs(const struct called *jobs, int cap, int n, struct buf *out)
{
    int named = n < cap ? n : cap;
    bool alike = true; /* else each is called a job or a line */
    for (int i = 1; i < named; i++)
        alike = alike && !jobs[i].line == !jobs[0].line;
    for (int i = 0; i < named; i++) {
        buf_adds(out, i == 0 ? "" : i == n - 1 ? " and " : ", ");
        if (i == 0 || !alike)
            buf_addf(out, "%s%s ", jobs[i].line ? "line" : "job", alike && n > 1 ? "s" : "");
        called_text(&jobs[i], out);
    }
    if (n > named)
        buf_addf(out, " and %d more", n - named);
}

static void
add_holders(const struct blocked *b, struct buf *out)
{
    buf_adds(out, "held by ");
    add_jobs(b->holders, BLOCKED_HOLDERS, b->n_holders, out);
}

/* "when jobs 12 and 15 end" */
static void
add_ends(const struct blocked *b, struct buf *out)
{
    buf_adds(out, " when ");
    add_jobs(b->ends, BLOCKED_ENDS, b->n_ends, out);
    buf_adds(out, b->n_ends > 1 ? " end" : " ends");
}

static void
add_card_memory(const struct blocked *b, struct buf *out)
{
    buf_addf(out, "gpu %d has ", b->gpu);
    add_size(out, "", b->free_mib, " free");
    add_size(out, " (", b->short_mib, " short)");
    if (b->by == BLOCKED_BY_NOTHING)
        return;
    buf_adds(out, ", ");
    if (b->by == BLOCKED_BY_JOB)
        add_holders(b, out);
    else
        add_stranger(b, out);
}

static void
add_card_share(const struct blocked *b, struct buf *out)
{
    buf_addf(out, "gpu %d has ", b->gpu);
    if (b->share_left > 0)
        add_part(out, b->share_left);
    else
        buf_adds(out, "none");
    buf_adds(out, " left, ");
    add_holders(b, out);
}

static void
add_card_guard(const struct blocked *b, const struct demand *d, struct buf *out)
{
    bool is_load = b->guard == 'l';
    buf_addf(out, is_load ? "gpu %d is " : "gpu %d has ", b->gpu);
    add_percent(out, b->guard_has);
    buf_adds(out, is_load ? " busy" : " of its memory in use");
    buf_adds(out, "; the job wants below ");
    add_percent(out, is_load ? d->max_load_permille : d->max_used_permille);
}

static void
add_card_busy(const struct blocked *b, struct buf *out)
{
    buf_addf(out, "gpu %d ", b->gpu);
    if (b->by == BLOCKED_BY_JOB) {
        buf_adds(out, "is ");
        add_holders(b, out);
    } else {
        buf_adds(out, "has ");
        add_stranger(b, out);
    }
}

/* "gpu 0 serves one user at a time (MPS), and is held by job 3" */
static void
add_card_mps(const struct blocked *b, struct buf *out)
{
    buf_addf(out, "gpu %d serves one user at a time (MPS), and is ", b->gpu);
    add_holders(b, out);
}

/* "gpu 2 is sick since 2026-11-21T05:01:10Z: XID 79: it fell off the bus" */
static void
add_card_state(const struct blocked *b, struct buf *out)
{
    if (b->gpu_state == GPU_UP) {
        buf_addf(out, "gpu %d accepts no processes (compute mode 'prohibited')", b->gpu);
        return;
    }
    buf_addf(out, "gpu %d is %s", b->gpu, gpu_state_name((enum gpu_state)b->gpu_state));
    if (b->since_us)
        add_time(out, " since ", b->since_us);
    if (b->card_reason != REASON_GPU_SICK)
        return;
    if (b->xid)
        buf_addf(out, ": XID %d", b->xid);
    if (b->health_text[0])
        buf_addf(out, ": %s", b->health_text);
}

static void
add_probe(const struct blocked *b, struct buf *out)
{
    if (b->gpu < 0) {
        if (b->trouble)
            buf_addf(out, "the GPUs cannot be read: %s", b->trouble);
        else
            buf_adds(out, "the GPUs have not been read yet");
        return;
    }
    buf_addf(out, "no recent data from gpu %d", b->gpu);
    if (b->since_us)
        add_time(out, " since ", b->since_us);
}

/* The obstacle on the nearest card. */
static void
add_card(const struct blocked *b, const struct demand *d, struct buf *out)
{
    if (b->gpu < 0)
        return;
    buf_adds(out, "; ");
    if (b->card_reason == REASON_GPU_MEMORY)
        add_card_memory(b, out);
    else if (b->card_reason == REASON_GPU_SHARE)
        add_card_share(b, out);
    else if (b->card_reason == REASON_GPU_BUSY && b->guard)
        add_card_guard(b, d, out);
    else if (b->card_reason == REASON_GPU_BUSY)
        add_card_busy(b, out);
    else if (b->card_reason == REASON_GPU_MPS)
        add_card_mps(b, out);
    else if (b->card_reason == REASON_PROBE)
        add_probe(b, out);
    else if (b->card_reason == REASON_GPU_CAP)
        buf_addf(out, "gpu %d cannot enforce its VRAM now: %s", b->gpu, b->health_text);
    else
        add_card_state(b, out);
}

/* "; 2 of them have room, 1 more when job 12 ends, 1 more when gpu 3 is freed" */
static void
add_needs(const struct blocked *b, int want, struct buf *out)
{
    int missing = want - b->n_room - b->n_freed, kept = __builtin_popcountll(b->to_free);
    if (b->n_freed > 0) {
        buf_addf(out, "%s %d%s", b->n_room > 0 ? "," : "; none has room,", b->n_freed,
                 b->n_room > 0 ? " more" : "");
        add_ends(b, out);
    }
    if (missing <= 0 || kept == 0 || b->n_room + b->n_freed == 0)
        return;
    buf_addf(out, ", %d more when ", missing);
    if (missing < kept)
        buf_addf(out, "%d of ", missing);
    gpu_set_text(b->to_free, out);
    buf_adds(out, kept > 1 && missing > 1 ? " are freed" : " is freed");
}

/* The job that has the reservation. */
static void
add_reserved(const struct blocked *b, struct buf *out)
{
    buf_adds(out, b->waits_for.line ? "line " : "job ");
    called_text(&b->waits_for, out);
    if (b->until_firm)
        add_time(out, ", which is promised its start by ", b->until_us);
    else if (b->until_us > 0 && b->until_us < INT64_MAX)
        add_time(out, ", which is expected to start at ", b->until_us);
    else if (b->reason == REASON_RESERVATION)
        buf_adds(out, ", for which GPUs are reserved");
}

static void
add_resources(const struct blocked *b, const struct demand *d, struct buf *out)
{
    add_want(b, d, out);
    if (b->n_room > 0)
        buf_addf(out, "; %d of them %s room", b->n_room, b->n_room == 1 ? "has" : "have");
    if (b->told_needs)
        add_needs(b, demand_n_gpus(d), out);
    if (!b->told_needs || b->to_free || b->n_freed == 0)
        add_card(b, d, out);
    if (!b->waits_for.id)
        return;
    buf_addf(out, "; gpu %d is reserved for ", b->gpu);
    add_reserved(b, out);
}

static void
add_host(const struct blocked *b, const struct demand *d, struct buf *out)
{
    if (b->reason == REASON_CPUS) {
        buf_addf(out, "needs %d core%s; %lld %s free", demand_cpus(d),
                 demand_cpus(d) == 1 ? "" : "s", (long long)b->have,
                 b->have == 1 ? "is" : "are");
    } else {
        add_size(out, "needs ", d->mem_mib, " of host memory; ");
        add_size(out, "", b->have, " are free");
    }
    if (b->n_ends > 0) {
        buf_adds(out, ", enough");
        add_ends(b, out);
    }
}

static void
add_dependency(const struct blocked *b, struct buf *out)
{
    static const char *const to[] = {
        [DEP_SUCCESS] = "succeed", [DEP_ANY] = "end", [DEP_FAILED] = "fail"};
    buf_adds(out, "waits for job ");
    called_text(&b->waits_for, out);
    if (b->waits_single) {
        buf_adds(out, " to end, which has the same name");
        return;
    }
    buf_addf(out, " to %s", to[b->waits_how]);
    if (b->waits_more > 0)
        buf_addf(out, ", and for %d more", b->waits_more);
}

static void
add_limit(const struct blocked *b, struct buf *out)
{
    if (b->reason == REASON_ARRAY_LIMIT) {
        buf_addf(out, "%lld task%s of the array %s, the maximum at the same time",
                 (long long)b->limit, b->limit == 1 ? "" : "s", b->limit == 1 ? "runs" : "run");
        return;
    }
    buf_adds(out, b->reason == REASON_USER_LIMIT ? "would exceed the user's limit of "
                                                 : "would exceed the limit for all users of ");
    if (b->limit_of == 'v')
        add_size(out, "", b->limit, " of VRAM");
    else
        buf_addf(out, "%lld %s%s", (long long)b->limit,
                 b->limit_of == 'g' ? "GPU" : "running job", b->limit == 1 ? "" : "s");
}

static void
add_sentence(const struct blocked *b, const struct demand *d, struct buf *out)
{
    switch (b->reason) {
    case REASON_NONE:
        break;
    case REASON_PRIORITY:
        buf_adds(out, "its turn has not come yet");
        break;
    case REASON_RESOURCES:
    case REASON_GPU_MEMORY:
    case REASON_GPU_SHARE:
    case REASON_GPU_BUSY:
    case REASON_GPU_PAUSED:
    case REASON_GPU_SICK:
    case REASON_GPU_MPS:
    case REASON_GPU_CAP:
        add_resources(b, d, out);
        break;
    case REASON_PROBE:
        add_probe(b, out);
        break;
    case REASON_CPUS:
    case REASON_MEMORY:
        add_host(b, d, out);
        break;
    case REASON_HELD:
        buf_adds(out, b->limit ? "held by an admin, and only an admin can release it"
                               : "held by a user; 'berth release' releases it");
        break;
    case REASON_DEPENDENCY:
        add_dependency(b, out);
        break;
    case REASON_RESERVATION:
        buf_adds(out, "would delay ");
        add_reserved(b, out);
        break;
    case REASON_ARRAY_LIMIT:
    case REASON_USER_LIMIT:
    case REASON_QUEUE_LIMIT:
        add_limit(b, out);
        break;
    case REASON_BEGIN_TIME:
        if (b->failed)
            buf_addf(out, "pause after attempt %d, which failed; attempt %d ", b->failed,
                     b->failed + 1);
        add_time(out, "not before ", b->until_us);
        break;
    case REASON_DISK:
        buf_addf(out, "no job can be started, because nothing can be written: %s", b->trouble);
        break;
    case REASON_MACHINE:
        buf_addf(out, "it cannot be started now: %s", b->trouble ? b->trouble : "trouble");
        break;
    case REASON_SLURM:
        buf_adds(out, b->trouble ? b->trouble : "it has not been sent to Slurm yet");
        break;
    }
}

void
blocked_text(const struct blocked *b, const struct demand *d, struct buf *out)
{
    if (b->reason == REASON_NONE)
        return;
    buf_addf(out, "%s: ", reason_name(b->reason));
    add_sentence(b, d, out);
}

void
blocked_text_ahead(const struct blocked *b, struct buf *out)
{
    if (!b->ahead.id)
        return;
    buf_adds(out, b->ahead.line ? "; line " : "; job ");
    called_text(&b->ahead, out);
    buf_adds(out, ", with the same request, is first");
}
