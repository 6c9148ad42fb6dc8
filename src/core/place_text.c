/* The sentence for a struct blocked. Called for listings and explanations; knows nothing but
 * the numbers that place.c and plan.c wrote down. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/parse.h"
#include "core/gpu.h"
#include "core/ledger.h"
#include "core/place.h"

static void
add_size(struct buf *out, const char *before, int64_t mib, const char *after)
{
    char text[24];
    buf_addf(out, "%s%s%s", before, format_mib(mib, text), after);
}

/* "one GPU", "each of 2 GPUs", "gpu 3", "each of gpus 3,1" */
static void
add_where(const struct demand *d, struct buf *out)
{
    int want = d->n_ids ? d->n_ids : d->gpus;
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
}

static void
add_want(const struct blocked *b, const struct demand *d, struct buf *out)
{
    int want = d->n_ids ? d->n_ids : d->gpus;
    if (d->vram_mib > 0) {
        add_size(out, "needs ", d->vram_mib, "");
        add_size(out, " + ", b->margin_mib, " margin on ");
        add_where(d, out);
        if (d->exclusive)
            buf_adds(out, want == 1 ? ", alone" : ", alone on each");
    } else if (d->n_ids) {
        buf_adds(out, "wants ");
        add_where(d, out);
        buf_adds(out, " idle");
    } else if (want == 1) {
        buf_adds(out, "wants an idle GPU");
    } else {
        buf_addf(out, "wants %d idle GPUs", want);
    }
}

static void
add_stranger(const struct blocked *b, struct buf *out)
{
    add_size(out, "", b->stranger_mib, " in use outside Berth");
    if (b->stranger_pid)
        buf_addf(out, " (pid %d)", b->stranger_pid);
}

static void
add_card_memory(const struct blocked *b, struct buf *out)
{
    buf_addf(out, "gpu %d has ", b->gpu);
    add_size(out, "", b->free_mib, " free");
    add_size(out, " (", b->short_mib, " short)");
    if (b->by == BLOCKED_BY_JOB) {
        buf_addf(out, ", held by job %u", b->job);
    } else if (b->by == BLOCKED_BY_STRANGER) {
        buf_adds(out, ", ");
        add_stranger(b, out);
    }
}

static void
add_card_busy(const struct blocked *b, struct buf *out)
{
    buf_addf(out, "gpu %d ", b->gpu);
    if (b->by == BLOCKED_BY_JOB) {
        buf_addf(out, "is held by job %u", b->job);
    } else {
        buf_adds(out, "has ");
        add_stranger(b, out);
    }
}

/* What stands in the way on the card that comes nearest. */
static void
add_card(const struct blocked *b, struct buf *out)
{
    if (b->gpu < 0)
        return;
    buf_adds(out, "; ");
    if (b->card_reason == REASON_GPU_MEMORY)
        add_card_memory(b, out);
    else if (b->card_reason == REASON_GPU_BUSY)
        add_card_busy(b, out);
    else if (b->card_reason == REASON_PROBE)
        buf_addf(out, "no fresh word from gpu %d", b->gpu);
    else if (b->gpu_state == GPU_UP)
        buf_addf(out, "gpu %d lets no process in (its compute mode)", b->gpu);
    else
        buf_addf(out, "gpu %d is %s", b->gpu, gpu_state_name((enum gpu_state)b->gpu_state));
}

static void
add_resources(const struct blocked *b, const struct demand *d, struct buf *out)
{
    add_want(b, d, out);
    if (b->n_room > 0)
        buf_addf(out, "; %d of them %s room", b->n_room, b->n_room == 1 ? "has" : "have");
    add_card(b, out);
}

static void
add_sentence(const struct blocked *b, const struct demand *d, struct buf *out)
{
    char when[32];
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
        add_resources(b, d, out);
        break;
    case REASON_PROBE:
        if (b->gpu >= 0)
            buf_addf(out, "no fresh word from gpu %d", b->gpu);
        else
            buf_adds(out, "the GPUs have not been read yet");
        break;
    case REASON_CPUS:
        buf_addf(out, "needs %d core%s; %lld are free", demand_cpus(d),
                 demand_cpus(d) == 1 ? "" : "s", (long long)b->have);
        break;
    case REASON_MEMORY:
        add_size(out, "needs ", d->mem_mib, " of host memory; ");
        add_size(out, "", b->have, " are free");
        break;
    case REASON_HELD:
        buf_adds(out, "held by a person; berth release lets it go");
        break;
    case REASON_DEPENDENCY:
        buf_addf(out, "waits for job %u", b->waits_for);
        break;
    case REASON_RESERVATION:
        buf_addf(out, "would delay job %u, which has a reservation", b->waits_for);
        break;
    case REASON_ARRAY_LIMIT:
    case REASON_USER_LIMIT:
    case REASON_QUEUE_LIMIT:
        buf_addf(out, "the limit of %lld is reached", (long long)b->limit);
        break;
    case REASON_BEGIN_TIME:
        buf_addf(out, "not before %s", clock_rfc3339(b->until_us, when));
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
    if (b->ahead)
        buf_addf(out, "; job %u, which asks for the same, is first", b->ahead);
}
