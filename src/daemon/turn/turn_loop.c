/* See turn_loop.h. Created by turn_wiring.c. */
#include "daemon/turn/turn_loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"

#define FAR_S INT64_C(315360000)

struct turn_loop {
    uv_loop_t *loop;
    struct turn *turn;
    uv_idle_t idle;   /* keeps the loop from sleeping while a turn is due */
    uv_check_t check; /* runs the turn */
    bool due;
    struct timer {
        struct turn_loop *of;
        enum turn_timer which;
        uv_timer_t timer;
    } timers[TURN_TIMERS]; /* all but TURN_NOW */
    uv_poll_t poll;
    int fd; /* timer on the wall clock, cancelled when that is set; -1: none */
};

static void
on_idle(uv_idle_t *idle)
{
    (void)idle;
}

static void
on_check(uv_check_t *check)
{
    const struct turn_loop *l = check->data;
    if (l->due)
        turn_run(l->turn);
}

static void
on_timer(uv_timer_t *timer)
{
    const struct timer *x = timer->data;
    turn_timer_over(x->of->turn, x->which);
}

/* --- steps of the wall clock --- */

static int
arm(int fd)
{
    struct itimerspec far = {.it_value.tv_sec = time(NULL) + FAR_S};
    return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far, NULL);
}

static void
on_clock_set(uv_poll_t *poll, int status, int events)
{
    struct turn_loop *l = poll->data;
    uint64_t times;
    (void)status;
    (void)events;
    if (read(l->fd, &times, sizeof times) < 0 && errno == EAGAIN)
        return;
    (void)arm(l->fd);
    turn_is_due(l->turn);
}

static void
watch_clock(struct turn_loop *l)
{
    l->fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (l->fd >= 0 && arm(l->fd))
        close(TAKE_FD(l->fd));
    if (l->fd < 0) {
        log_info("event=clock-not-watched %s", strerror(errno));
        return;
    }
    uv_poll_init(l->loop, &l->poll, l->fd);
    l->poll.data = l;
    uv_poll_start(&l->poll, UV_READABLE, on_clock_set);
    uv_unref((uv_handle_t *)&l->poll);
}

/* --- creating and closing --- */

struct turn_loop *
turn_loop_new(uv_loop_t *loop)
{
    struct turn_loop *l = xcalloc(1, sizeof *l);
    l->loop = loop;
    uv_idle_init(loop, &l->idle);
    uv_check_init(loop, &l->check);
    l->check.data = l;
    for (enum turn_timer i = TURN_WAKE; i < TURN_TIMERS; i++) {
        struct timer *x = &l->timers[i];
        x->of = l;
        x->which = i;
        uv_timer_init(loop, &x->timer);
        x->timer.data = x;
    }
    uv_check_start(&l->check, on_check);
    uv_unref((uv_handle_t *)&l->check);
    watch_clock(l);
    return l;
}

void
turn_loop_run(struct turn_loop *l, struct turn *t)
{
    l->turn = t;
}

void
turn_loop_close(struct turn_loop *l)
{
    uv_close((uv_handle_t *)&l->idle, NULL);
    uv_close((uv_handle_t *)&l->check, NULL);
    for (enum turn_timer i = TURN_WAKE; i < TURN_TIMERS; i++)
        uv_close((uv_handle_t *)&l->timers[i].timer, NULL);
    if (l->fd >= 0)
        uv_close((uv_handle_t *)&l->poll, NULL);
}

void
turn_loop_free(struct turn_loop *l)
{
    if (l && l->fd >= 0)
        close(l->fd);
    free(l);
}

void
turn_loop_set_timer(struct turn_loop *l, enum turn_timer which, int64_t ms)
{
    if (which == TURN_NOW) {
        l->due = true;
        uv_idle_start(&l->idle, on_idle);
        return;
    }
    /* The plan may have taken long; this timer must count from its end. */
    if (which == TURN_REST)
        uv_update_time(l->loop);
    uv_timer_start(&l->timers[which].timer, on_timer, (uint64_t)ms, 0);
}

void
turn_loop_stop_timer(struct turn_loop *l, enum turn_timer which)
{
    if (which == TURN_NOW) {
        l->due = false;
        uv_idle_stop(&l->idle);
        return;
    }
    uv_timer_stop(&l->timers[which].timer);
}
