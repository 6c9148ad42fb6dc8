/* What happens to jobs: see jobs.h. Called by the methods (people), by watch.c (shepherds),
 * by sample.c (measurements) and by turn.c (the plan). The table of what is allowed is the
 * core's; here stands what has to be done about it. */
#include "daemon/jobs.h"

#include <stdlib.h>
#include <uv.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "core/account.h"
#include "core/ledger.h"
#include "core/queue.h"
#include "daemon/daemon.h"
#include "daemon/estimate.h"
#include "daemon/events.h"
#include "daemon/health.h"
#include "daemon/prober.h"
#include "daemon/turn.h"
#include "daemon/waits.h"
#include "daemon/watch.h"
#include "store/store.h"

#define CLEAR_RESAMPLE_MS 200 /* while a job's memory is awaited */

/* Applies an event that this state must allow. */
static void
must_apply(struct job *job, const struct job_event *ev)
{
    const char *why = NULL;
    if (job_apply(job, ev, &why) == JOB_REFUSED)
        err_abort("job %u in %s refuses event %d: %s", job->id, job_state_name(job->state),
                  (int)ev->type, why);
}

static void
ended(struct daemon *d, struct job *job)
{
    log_info("job=%u event=ended state=%s exit_status=%d", job->id, job_state_name(job->state),
             job_exit_status(job));
    if (job->state == JOB_COMPLETED)
        estimate_completed(d, job);
    turn_save(d, job, SAVE_JOB | SAVE_ENDED);
    event_ended(d, job);
}

void
jobs_infeasible(struct daemon *d, struct job *job, const char *text)
{
    const struct job_event ev = {
        .type = JOB_EV_INFEASIBLE, .wall_us = clock_wall_us(), .text = text};
    must_apply(job, &ev);
    queue_refile(d->queue, job);
    ended(d, job);
}

void
jobs_add(struct daemon *d, struct job *job, char **why)
{
    auto_buf struct buf text = BUF_INIT;
    job->id = store_next_job_id(d->store);
    job->order = store_next_order(d->store);
    job->submitted_us = clock_wall_us();
    job->declared_mib = job->req.demand.vram_mib;
    if (job->req.oom_retries < 0)
        job->req.oom_retries = (int32_t)d->config.oom_retries;
    if (job->req.hold)
        job->state = JOB_HELD;
    estimate_enter(d, job);
    queue_add(d->queue, job);
    turn_save(d, job, SAVE_INSERT);
    event_submitted(d, job);
    if (!place_feasible(&job->req.demand, d->ledger, &text)) {
        jobs_infeasible(d, job, buf_str(&text));
        if (why)
            *why = xstrdup(buf_str(&text));
    }
}

void
jobs_event_started(struct daemon *d, struct job *job)
{
    log_debug("job=%u event=started attempt=%d", job->id, job->run->number);
    event_started(d, job);
    if (job->run->n_gpus > 0)
        prober_hurry(d->prober);
}

void
jobs_attempt_started(struct daemon *d, struct job *job, int64_t at_us)
{
    const struct job_event ev = {.type = JOB_EV_STARTED, .wall_us = at_us};
    /* Not saved on its own: the shepherd knows, and the attempt's end writes it. */
    if (job_apply(job, &ev, NULL) == JOB_NEXT)
        queue_refile(d->queue, job);
}

/* --- the end of an attempt
 * -------------------------------------------------------------------- */

static void
finish(struct daemon *d, struct job *job)
{
    int32_t vram_old = job->run->vram_mib;
    health_job_over(d, job);
    const struct job_event ev = {.type = JOB_EV_VRAM_BACK, .wall_us = clock_wall_us()};
    must_apply(job, &ev);
    ledger_release(d->ledger, job->id);
    unsigned what = SAVE_JOB | SAVE_ATTEMPT | SAVE_SETTLED;
    if (job->state == JOB_PENDING) {
        log_info("job=%u event=requeued outcome=%s", job->id,
                 outcome_name(job->run->ending.outcome));
        job->waiting_told = false;
        queue_refile(d->queue, job);
        turn_save(d, job, what);
        if (job->run->ending.outcome != OUTCOME_NEVER_RAN)
            event_requeued(d, job, vram_old);
        return;
    }
    queue_refile(d->queue, job);
    turn_save(d, job, what);
    ended(d, job);
}

void
jobs_check_clear(struct daemon *d, struct job *job, bool force)
{
    if (job->state != JOB_COMPLETING)
        return;
    bool nothing_there = job->run->n_gpus == 0;
    if (nothing_there || ledger_job_is_clear(d->ledger, job->id, job->run->ended_boot_us)) {
        finish(d, job);
    } else if (force) {
        bool silent = prober_unknown_since_us(d->prober) > 0;
        log_warn("job=%u event=vram-wait-over %s", job->id,
                 silent ? "the probe does not say whether its memory is back"
                        : "its memory is still in use; counted as a stranger's from now on");
        finish(d, job);
    }
}

void
jobs_attempt_ended(struct daemon *d, struct job *job, const struct ending *ending)
{
    const struct job_event ev = {
        .type = JOB_EV_ENDED, .wall_us = clock_wall_us(), .ending = ending};
    if (job_apply(job, &ev, NULL) != JOB_NEXT)
        return;
    job->run->ended_boot_us = clock_boot_us();
    queue_refile(d->queue, job);
    jobs_check_clear(d, job, false);
    if (job->state == JOB_COMPLETING) {
        prober_request(d->prober);
        jobs_start_clear_timer(d);
    }
}

static void
on_clear_timer(uv_timer_t *timer)
{
    struct daemon *d = timer->data;
    int64_t now = clock_boot_us();
    struct job *next;
    bool more = false;
    for (struct job *job = queue_active(d->queue); job; job = next) {
        next = queue_active_next(job);
        if (job->state != JOB_COMPLETING)
            continue;
        jobs_check_clear(d, job,
                         now - job->run->ended_boot_us >= d->config.vram_wait_ms * 1000);
        more |= job->state == JOB_COMPLETING;
    }
    if (more) {
        prober_request(d->prober);
        uv_timer_start(timer, on_clear_timer, CLEAR_RESAMPLE_MS, 0);
    }
}

void
jobs_start_clear_timer(struct daemon *d)
{
    d->clear_timer.data = d;
    if (!uv_is_active((uv_handle_t *)&d->clear_timer))
        uv_timer_start(&d->clear_timer, on_clear_timer, CLEAR_RESAMPLE_MS, 0);
}

/* --- people
 * ------------------------------------------------------------------------------------ */

int
jobs_cancel(struct daemon *d, struct job *job, const char *by)
{
    const struct job_event ev = {.type = JOB_EV_CANCEL, .wall_us = clock_wall_us(), .by = by};
    if (job_apply(job, &ev, NULL) != JOB_NEXT) {
        if (job_state_is_final(job->state))
            return -1;
        watch_cancel(d, job); /* once more, perhaps with less grace */
        return 0;
    }
    queue_refile(d->queue, job);
    log_info("job=%u event=cancel by=%s", job->id, by);
    if (job->state == JOB_CANCELLED) {
        ended(d, job);
        return 0;
    }
    turn_save(d, job, SAVE_JOB);
    event_plain(d, "cancelled", job, by);
    watch_cancel(d, job);
    return 0;
}

static int
hold_or_release(struct daemon *d, struct job *job, enum job_event_type type, struct err *e)
{
    const struct job_event ev = {.type = type, .wall_us = clock_wall_us()};
    const char *why = NULL;
    enum job_verdict v = job_apply(job, &ev, &why);
    if (v == JOB_REFUSED)
        return err_set(e, ERR_FAILED, "job %u cannot be %s: %s", job->id,
                       type == JOB_EV_HOLD ? "held" : "released", why);
    if (v == JOB_NEXT) {
        job->waiting_told = false;
        queue_refile(d->queue, job);
        turn_save(d, job, SAVE_JOB);
        event_plain(d, type == JOB_EV_HOLD ? "held" : "released", job, NULL);
    }
    return 0;
}

int
jobs_hold(struct daemon *d, struct job *job, struct err *e)
{
    return hold_or_release(d, job, JOB_EV_HOLD, e);
}

int
jobs_release(struct daemon *d, struct job *job, struct err *e)
{
    return hold_or_release(d, job, JOB_EV_RELEASE, e);
}

void
jobs_retire(struct daemon *d, struct job *job)
{
    waits_job_ended(d, job);
    estimate_leave(d, job);
    job_free(queue_remove(d->queue, job->id));
}
