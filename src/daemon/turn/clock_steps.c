/* See clock_steps.h. The boot clock, which cannot be set, says by how much: the two drift
 * apart by more than a moment only when one of them is set. Limits of running jobs need
 * nothing of this: shepherds count them on the boot clock. turn.c asks. */
#include "daemon/turn/clock_steps.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "core/plan/fair.h"
#include "core/plan/plan.h"
#include "core/queue/queue.h"
#include "daemon/common/daemon.h"
#include "daemon/common/turn_due.h"

#define JUMP_US INT64_C(2000000) /* less is a clock that is being corrected */
#define FAR_S   INT64_C(315360000)

struct clockset {
    struct daemon *daemon;
    int64_t offset_us; /* of the wall clock from the boot clock, when last looked at */
    int64_t told_us;   /* the same when it was last found set, or as written down before */
    uv_poll_t poll;
    int fd; /* a timer on the wall clock, cancelled when that is set; -1: none is to be had */
};

static int
arm(int fd)
{
    struct itimerspec far = {.it_value.tv_sec = time(NULL) + FAR_S};
    return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far, NULL);
}

static void
on_set(uv_poll_t *poll, int status, int events)
{
    struct clockset *c = poll->data;
    uint64_t times;
    (void)status;
    (void)events;
    if (read(c->fd, &times, sizeof times) < 0 && errno == EAGAIN)
        return;
    (void)arm(c->fd);
    turn_touch(c->daemon);
}

struct clockset *
clockset_new(struct daemon *d)
{
    struct clockset *c = xcalloc(1, sizeof *c);
    c->daemon = d;
    c->offset_us = c->told_us = clock_wall_us() - clock_boot_us();
    c->fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (c->fd >= 0 && arm(c->fd))
        close(TAKE_FD(c->fd));
    if (c->fd < 0) {
        log_info("event=clock-not-watched %s", strerror(errno));
        return c;
    }
    uv_poll_init(d->loop, &c->poll, c->fd);
    c->poll.data = c;
    uv_poll_start(&c->poll, UV_READABLE, on_set);
    uv_unref((uv_handle_t *)&c->poll);
    return c;
}

void
clockset_close(struct clockset *c)
{
    if (c->fd >= 0)
        uv_close((uv_handle_t *)&c->poll, NULL);
}

void
clockset_free(struct clockset *c)
{
    if (c && c->fd >= 0)
        close(c->fd);
    free(c);
}

static void
shift(int64_t *at_us, int64_t by_us)
{
    if (*at_us)
        *at_us += by_us;
}

/* Limits count on the boot clock, from when it started. */
static void
shift_run(struct job *job, int64_t by_us)
{
    if (job->run && job_state_is_active(job->state))
        job->run->clock_set_us += by_us;
}

/* Taken out and put back, as its place may depend on these. */
static void
shift_job(struct queue *q, struct job *job, int64_t by_us)
{
    bool tried_again = job->retries_used > 0 || job->misfires > 0;
    queue_remove(q, job->id);
    shift(&job->blocked_since_us, by_us);
    shift(&job->limited_since_us, by_us);
    shift(&job->first_since_us, by_us);
    if (tried_again)
        shift(&job->begin_us, by_us);
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
clockset_offset_us(const struct daemon *d)
{
    return d->clockset->told_us;
}

void
clockset_was(struct daemon *d, int64_t offset_us)
{
    struct clockset *c = d->clockset;
    int64_t by_us = c->offset_us - offset_us;
    if (!is_jump(by_us)) {
        c->told_us = offset_us;
        return;
    }
    for (struct job *job = queue_active(d->queue); job; job = queue_active_next(job))
        shift_run(job, by_us);
    planner_shift_promises(d->planner, by_us);
    log_warn("event=clock-was-set by_s=%lld", (long long)(by_us / 1000000));
}

void
clockset_follow(struct daemon *d)
{
    struct clockset *c = d->clockset;
    int64_t offset_us = clock_wall_us() - clock_boot_us();
    int64_t by_us = offset_us - c->offset_us;
    c->offset_us = offset_us;
    if (!is_jump(by_us))
        return;
    c->told_us = offset_us;
    size_t n;
    auto_free struct job **jobs = queue_list_by_id(d->queue, QUEUE_ALL, &n);
    for (size_t i = 0; i < n; i++)
        shift_job(d->queue, jobs[i], by_us);
    fair_shift(d->fair, by_us);
    planner_shift_promises(d->planner, by_us);
    log_warn("event=clock-set by_s=%lld", (long long)(by_us / 1000000));
}
