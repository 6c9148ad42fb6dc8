/* See clock_steps.h. The offset from the boot clock, which cannot be set, reveals a step: it
 * changes by more than a moment only if the wall clock is set. Time limits of running jobs
 * need no correction, because supervisors count them on the boot clock. Called by turn.c. */
#include "daemon/turn/clock_steps.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "core/plan/fair.h"
#include "core/plan/plan.h"
#include "core/queue/endings.h"
#include "core/queue/queue.h"
#include "daemon/state/state.h"

#define JUMP_US INT64_C(2000000) /* smaller changes are corrections of a drifting clock */

static int64_t
offset_of(const struct state *s)
{
    return s->around->wall_us(s->around->arg) - s->around->boot_us(s->around->arg);
}

void
clocksteps_begin(struct clock_steps *c, const struct state *s)
{
    c->offset_us = c->told_us = offset_of(s);
}

static void
shift(int64_t *at_us, int64_t by_us)
{
    if (*at_us)
        *at_us += by_us;
}

/* Time limits count on the boot clock from the start, so a step of the wall clock moves the
 * expected end. */
static void
shift_run(struct job *job, int64_t by_us)
{
    if (job->run && job_state_is_active(job->state))
        job->run->clock_set_us += by_us;
}

/* Values below 0 are durations. The value is stored, so its shifted one is too. */
static void
shift_lined(struct state *s, struct job *job, int64_t by_us)
{
    if (job->lined_us <= 0)
        return;
    job->lined_us += by_us;
    state_save(s, job, SAVE_JOB);
}

/* True if the job waits for its retry, as opposed to a begin time set by its user. */
static bool
waits_to_retry(const struct job *job)
{
    return job->begin_us && job->begin_us != job->req.begin_us &&
           (job->retries_used > 0 || job->misfires > 0);
}

/* Takes the job out of the queue and puts it back, because its place may depend on
 * these times. */
static void
shift_job(struct state *s, struct job *job, int64_t by_us)
{
    struct queue *q = s->queue;
    queue_remove(q, job->id);
    shift(&job->blocked_since_us, by_us);
    shift(&job->limited_since_us, by_us);
    shift(&job->first_since_us, by_us);
    shift(&job->joined_us, by_us);
    shift_lined(s, job, by_us);
    if (waits_to_retry(job)) {
        job->begin_us += by_us;
        state_save(s, job, SAVE_JOB);
    }
    if (job->run && job->run->started_us)
        shift_run(job, by_us);
    queue_add(q, job);
}

static bool
is_jump(int64_t by_us)
{
    return by_us >= JUMP_US || by_us <= -JUMP_US;
}

int64_t
clocksteps_offset_us(const struct clock_steps *c)
{
    return c->told_us;
}

static void
begin_at(struct state *s, struct job *job, int64_t at_us)
{
    queue_remove(s->queue, job->id);
    job->begin_us = at_us;
    queue_add(s->queue, job);
    state_save(s, job, SAVE_JOB);
}

/* For retries stored in an earlier boot: whether the clock has been set since is unknown. */
void
clocksteps_bound_retries(struct state *s)
{
    int64_t last_us = state_wall_us(s) + RETRY_BACKOFF_MAX_US;
    size_t n;
    auto_free struct job **jobs =
        queue_list_by_id(s->queue, 1U << JOB_PENDING | 1U << JOB_HELD, &n);
    for (size_t i = 0; i < n; i++)
        if (waits_to_retry(jobs[i]) && jobs[i]->begin_us > last_us)
            begin_at(s, jobs[i], last_us);
}

void
clocksteps_was(struct clock_steps *c, struct state *s, int64_t offset_us)
{
    int64_t by_us = c->offset_us - offset_us;
    if (!is_jump(by_us)) {
        c->told_us = offset_us;
        return;
    }
    for (struct job *job = queue_active(s->queue); job; job = queue_active_next(job))
        shift_run(job, by_us);
    size_t n;
    auto_free struct job **jobs =
        queue_list_by_id(s->queue, 1U << JOB_PENDING | 1U << JOB_HELD, &n);
    for (size_t i = 0; i < n; i++) {
        shift_lined(s, jobs[i], by_us);
        if (waits_to_retry(jobs[i]))
            begin_at(s, jobs[i], jobs[i]->begin_us + by_us);
    }
    planner_clock_set(s->planner, by_us);
    log_warn("event=clock-was-set by_s=%lld", (long long)(by_us / 1000000));
}

void
clocksteps_follow(struct clock_steps *c, struct state *s)
{
    int64_t offset_us = offset_of(s);
    int64_t by_us = offset_us - c->offset_us;
    c->offset_us = offset_us;
    if (!is_jump(by_us))
        return;
    c->told_us = offset_us;
    size_t n;
    auto_free struct job **jobs = queue_list_by_id(s->queue, QUEUE_ALL, &n);
    for (size_t i = 0; i < n; i++)
        shift_job(s, jobs[i], by_us);
    fair_shift(s->fair, by_us);
    planner_clock_set(s->planner, by_us);
    log_warn("event=clock-set by_s=%lld", (long long)(by_us / 1000000));
}
