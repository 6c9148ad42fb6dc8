/* Rounds of the loop, timed: see pace.h. rpc_client.c, long_work.c and turn.c say what they
 * spent. */
#include "daemon/common/pace.h"

#include <stdlib.h>
#include <uv.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "daemon/common/counters.h"
#include "daemon/common/daemon.h"

#define SAY_AGAIN_US INT64_C(1000000) /* a flood of requests must not flood the log */

struct pace {
    uv_prepare_t prepare;
    void (*next)(struct daemon *);
    int64_t began_us, cpu_us; /* of this round */
    uint64_t idle_ns;         /* asleep, up to its beginning */
    const char *what;         /* what took most of it */
    uid_t uid;
    int64_t most_us;
    int64_t said_us;
};

static void
say(struct pace *p, int64_t us, int64_t cpu_us)
{
    bool again = p->began_us - p->said_us < SAY_AGAIN_US;
    (again ? log_debug
           : log_info)("event=slow-turn ms=%lld cpu_ms=%lld most=%s most_ms=%lld user=%s",
                       (long long)us / 1000, (long long)cpu_us / 1000, p->what ? p->what : "-",
                       (long long)p->most_us / 1000,
                       p->what && p->uid != UINT32_MAX ? daemon_user_name(p->uid) : "-");
    if (!again)
        p->said_us = p->began_us;
}

/* Before the loop sleeps. */
static void
on_prepare(uv_prepare_t *handle)
{
    struct daemon *d = handle->data;
    struct pace *p = d->pace;
    int64_t now_us = clock_boot_us(), cpu_us = clock_thread_us();
    uint64_t idle_ns = uv_metrics_idle_time(d->loop);
    int64_t held_us = now_us - p->began_us - (int64_t)(idle_ns - p->idle_ns) / 1000;
    if (p->began_us) {
        tally_round(d, held_us);
        if (held_us > PACE_SLOW_US)
            say(p, held_us, cpu_us - p->cpu_us);
    }
    p->next(d);
    p->began_us = now_us;
    p->cpu_us = cpu_us;
    p->idle_ns = idle_ns;
    p->what = NULL;
    p->most_us = 0;
}

void
pace_start(struct daemon *d, void (*next)(struct daemon *))
{
    struct pace *p = d->pace = xcalloc(1, sizeof *p);
    p->next = next;
    uv_prepare_init(d->loop, &p->prepare);
    p->prepare.data = d;
    uv_prepare_start(&p->prepare, on_prepare);
    uv_unref((uv_handle_t *)&p->prepare);
}

static void
on_closed(uv_handle_t *handle)
{
    struct daemon *d = handle->data;
    free(d->pace); /* the handle is part of it */
    d->pace = NULL;
}

void
pace_close(struct daemon *d)
{
    if (d->pace)
        uv_close((uv_handle_t *)&d->pace->prepare, on_closed);
}

void
pace_spent(struct daemon *d, const char *what, uid_t uid, int64_t us)
{
    struct pace *p = d->pace;
    if (!p || us <= p->most_us)
        return;
    p->most_us = us;
    p->what = what;
    p->uid = uid;
}
