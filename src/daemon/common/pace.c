/* Times the iterations of the loop: see pace.h. rpc_client.c, long_work.c and turn.c report
 * what they spent. */
#include "daemon/common/pace.h"

#include <stdlib.h>
#include <uv.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "daemon/common/counters.h"
#include "daemon/common/user_names.h"

#define SAY_AGAIN_US INT64_C(1000000) /* keeps a flood of requests from flooding the log */
#define KINDS        16 /* of work per iteration; further ones count as the rest */
#define MOMENT_US    INT64_C(1000)

/* CPU time of one kind of work for one user in this iteration. */
struct spent {
    const char *what;
    uid_t uid;
    int n;
    int64_t cpu_us;
};

struct pace {
    uv_prepare_t prepare;
    uv_loop_t *loop;
    struct tally *tally;
    void (*next)(void *arg);
    void *next_arg;
    int64_t began_us; /* start of this iteration */
    uint64_t idle_ns; /* time asleep until then */
    int64_t mark_us;  /* everything before is counted */
    int64_t cpu_us;   /* the thread's CPU clock when last read */
    int64_t short_us; /* counted since then without reading it */
    struct spent spent[KINDS];
    int n_spent;
    int64_t said_us;
};

static const struct spent *
most_of(const struct pace *p)
{
    const struct spent *most = &p->spent[0];
    for (int i = 1; i < p->n_spent; i++)
        if (p->spent[i].cpu_us > most->cpu_us)
            most = &p->spent[i];
    return most;
}

static int64_t
cpu_of(const struct pace *p)
{
    int64_t us = 0;
    for (int i = 0; i < p->n_spent; i++)
        us += p->spent[i].cpu_us;
    return us;
}

static void
say(struct pace *p, int64_t us, int64_t cpu_us)
{
    bool again = p->began_us - p->said_us < SAY_AGAIN_US;
    const struct spent *most = most_of(p);
    (again ? log_debug
           : log_info)("event=slow-turn ms=%lld cpu_ms=%lld most=%s most_ms=%lld n=%d user=%s",
                       (long long)us / 1000, (long long)cpu_us / 1000, most->what,
                       (long long)most->cpu_us / 1000, most->n,
                       most->uid != UINT32_MAX ? daemon_user_name(most->uid) : "-");
    if (!again)
        p->said_us = p->began_us;
}

/* Before the loop sleeps. */
static void
on_prepare(uv_prepare_t *handle)
{
    struct pace *p = handle->data;
    int64_t now_us = clock_boot_us();
    uint64_t idle_ns = uv_metrics_idle_time(p->loop);
    int64_t held_us = now_us - p->began_us - (int64_t)(idle_ns - p->idle_ns) / 1000;
    pace_spent(p, PACE_REST, UINT32_MAX);
    if (p->began_us) {
        tally_round(p->tally, held_us);
        if (held_us > PACE_SLOW_US)
            say(p, held_us, cpu_of(p));
    }
    p->next(p->next_arg);
    p->began_us = now_us;
    p->idle_ns = idle_ns;
    p->n_spent = 0;
}

struct pace *
pace_new(uv_loop_t *loop, struct tally *tally)
{
    struct pace *p = xcalloc(1, sizeof *p);
    p->loop = loop;
    p->tally = tally;
    uv_prepare_init(loop, &p->prepare);
    p->prepare.data = p;
    return p;
}

void
pace_start(struct pace *p, void (*next)(void *arg), void *arg)
{
    p->next = next;
    p->next_arg = arg;
    uv_prepare_start(&p->prepare, on_prepare);
    uv_unref((uv_handle_t *)&p->prepare);
}

void
pace_close(struct pace *p)
{
    uv_close((uv_handle_t *)&p->prepare, NULL);
}

void
pace_free(struct pace *p)
{
    free(p);
}

static struct spent *
find_kind(struct pace *p, const char *what, uid_t uid)
{
    int n = p->n_spent;
    for (int i = 0; i < n; i++)
        if (p->spent[i].what == what && p->spent[i].uid == uid)
            return &p->spent[i];
    if (n == KINDS)
        return &p->spent[KINDS - 1];
    p->n_spent++;
    p->spent[n] = n < KINDS - 1 ? (struct spent){.what = what, .uid = uid}
                                : (struct spent){.what = PACE_REST, .uid = UINT32_MAX};
    return &p->spent[n];
}

/* CPU time since the last call. Reading the thread's clock is a system call, so it is read
 * only after longer spans, which may include sleep or other processes; a short span takes at
 * most its wall time of CPU, and is counted as that. */
static int64_t
cpu_since(struct pace *p)
{
    int64_t now_us = clock_boot_us(), us = now_us - p->mark_us;
    p->mark_us = now_us;
    if (us < MOMENT_US) {
        p->short_us += us;
        return us;
    }
    int64_t cpu_us = clock_thread_us(), used_us = cpu_us - p->cpu_us - p->short_us;
    p->cpu_us = cpu_us;
    p->short_us = 0;
    return used_us > 0 ? used_us : 0;
}

void
pace_spent(struct pace *p, const char *what, uid_t uid)
{
    if (!p->next)
        return;
    struct spent *s = find_kind(p, what, uid);
    s->cpu_us += cpu_since(p);
    s->n++;
}
