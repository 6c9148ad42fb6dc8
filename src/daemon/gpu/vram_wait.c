/* See vram_wait.h. A sample that shows the memory as free also ends the wait (samples.c). */
#include "daemon/gpu/vram_wait.h"

#include <uv.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/queue/queue.h"
#include "daemon/common/instance.h"
#include "daemon/gpu/machine_cards.h"
#include "daemon/gpu/prober.h"
#include "daemon/state/changes.h"
#include "daemon/state/job_facts.h"

#define RESAMPLE_MS 200

/* Ends the wait although the memory is still in use. */
static void
end_wait(struct cards *cards, struct job *job)
{
    bool silent = prober_unknown_since_us(cards->prober) > 0;
    log_warn(
        "job=%u event=vram-wait-over %s", job->id,
        silent
            ? "the probe does not report whether its memory was freed"
            : "its memory is still in use; from now on it counts as used by another process");
    jobs_check_clear(cards->inst->state, job, true);
}

static void
on_timer(uv_timer_t *timer)
{
    struct cards *cards = timer->data;
    int64_t now = clock_boot_us();
    struct job *next;
    bool more = false;
    for (struct job *job = queue_active(cards->inst->queue); job; job = next) {
        next = queue_active_next(job);
        if (job->state != JOB_COMPLETING || jobs_check_clear(cards->inst->state, job, false))
            continue;
        if (now - job->run->ended_boot_us >= cards->inst->config.vram_wait_ms * 1000)
            end_wait(cards, job);
        else
            more = true;
    }
    if (more) {
        prober_request(cards->prober);
        uv_timer_start(timer, on_timer, RESAMPLE_MS, 0);
    }
}

void
vram_wait_read(struct cards *cards, const struct change *x)
{
    const struct job *job =
        x->type == CHANGE_STARTED ? queue_get(cards->inst->queue, x->job) : NULL;
    if (job && job->run->n_gpus > 0)
        prober_hurry(cards->prober);
    if (x->type != CHANGE_AWAITED)
        return;
    prober_request(cards->prober);
    if (!uv_is_active((uv_handle_t *)&cards->clear_timer))
        uv_timer_start(&cards->clear_timer, on_timer, RESAMPLE_MS, 0);
}
