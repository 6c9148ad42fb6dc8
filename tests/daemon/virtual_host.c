/* See virtual_host.h. */
#include "virtual_host.h"

#include <stddef.h>

static void
set_timer(void *arg, enum turn_timer which, int64_t ms)
{
    struct virtual_host *h = arg;
    h->at_us[which] = *h->now_us + ms * 1000;
}

static void
stop_timer(void *arg, enum turn_timer which)
{
    struct virtual_host *h = arg;
    h->at_us[which] = 0;
}

static void
spent(void *arg, const char *what)
{
    (void)arg, (void)what;
}

static bool
upkeep(void *arg)
{
    struct virtual_host *h = arg;
    h->n_upkeeps++;
    return h->upkeep_left > 0 && h->upkeep_left--;
}

static void
after(void *arg, bool saved, int64_t took_us)
{
    struct virtual_host *h = arg;
    (void)took_us;
    h->n_saved += saved;
    h->n_failed += !saved;
}

struct turn_host
virtual_host_of(struct virtual_host *h)
{
    return (struct turn_host){.arg = h,
                              .set_timer = set_timer,
                              .stop_timer = stop_timer,
                              .spent = spent,
                              .upkeep = upkeep,
                              .after = after};
}

bool
virtual_is_due(const struct virtual_host *h)
{
    return h->at_us[TURN_NOW] != 0;
}

void
virtual_fire(struct virtual_host *h, struct turn *t)
{
    bool is_over[TURN_TIMERS] = {false};
    for (enum turn_timer i = TURN_WAKE; i < TURN_TIMERS; i++)
        is_over[i] = h->at_us[i] && h->at_us[i] <= *h->now_us;
    for (;;) {
        enum turn_timer first = TURN_NOW;
        for (enum turn_timer i = TURN_WAKE; i < TURN_TIMERS; i++)
            if (is_over[i] && (first == TURN_NOW || h->at_us[i] < h->at_us[first]))
                first = i;
        if (first == TURN_NOW)
            return;
        is_over[first] = false;
        h->at_us[first] = 0;
        turn_timer_over(t, first);
    }
}
