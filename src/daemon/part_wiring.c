/* See part_wiring.h. Called by berthd.c when it creates the parts. */
#include "daemon/part_wiring.h"

#include "daemon/attempt/attempts.h"
#include "daemon/attempt/cpu_nodes.h"
#include "daemon/attempt/job_confines.h"
#include "daemon/attempt/job_environ.h"
#include "daemon/attempt/job_mps.h"
#include "daemon/attempt/supervisor_watch.h"
#include "daemon/daemon.h"
#include "daemon/gpu/machine_cards.h"
#include "daemon/nursery/nursery_link.h"
#include "daemon/outbox/outbox.h"
#include "sys/nursery_packets.h"

/* --- the courier --- */

static void
write_account(void *arg, struct jsonw *w)
{
    const struct daemon *d = arg;
    confines_write_account(&d->inst, w);
}

static void
write_groups(void *arg, const struct job *job, const char *name, struct jsonw *w)
{
    const struct daemon *d = arg;
    confines_write_groups(d->attempts, job, name, w);
}

static int
add_environment(void *arg, const struct delivery *x, struct buf *out, struct err *e)
{
    const struct daemon *d = arg;
    const struct hook_environ hook = {
        .job = x->job, .hook = x->kind, .line = x->event, .apart = x->apart};
    return environ_add_hook(d->attempts, &hook, out, e);
}

static int
start_delivery(void *arg, int order, struct err *e)
{
    const struct daemon *d = arg;
    return nursery_call(d->attempts->nursery, NURSERY_DELIVER, order, order, e);
}

struct courier_host
courier_host_of(struct daemon *d)
{
    return (struct courier_host){.arg = d,
                                 .write_account = write_account,
                                 .write_groups = write_groups,
                                 .add_environment = add_environment,
                                 .start = start_delivery};
}

/* --- the GPUs --- */

static const struct confinement *
place_of_attempts(void *arg)
{
    const struct daemon *d = arg;
    return nursery_place(d->attempts->nursery);
}

static uint32_t
job_of_supervisor(void *arg, pid_t pid)
{
    const struct daemon *d = arg;
    return watch_job_of_shepherd(d->attempts, pid);
}

static bool
said_by_mps(void *arg, int card, struct mps_state *out)
{
    const struct daemon *d = arg;
    return mps_said(&d->inst, card, out);
}

static void
add_capped(void *arg, struct buf *out)
{
    const struct daemon *d = arg;
    watch_add_capped(d->attempts, out);
}

static void
on_hello(void *arg, const json_t *hello)
{
    const struct daemon *d = arg;
    cpu_nodes_take(d->attempts, hello);
}

static void
on_sample(void *arg)
{
    const struct daemon *d = arg;
    mps_look_at_times(d->attempts);
}

static void
on_excess(void *arg, struct job *job)
{
    const struct daemon *d = arg;
    watch_exceeded(d->attempts, job);
}

struct cards_host
cards_host_of(struct daemon *d)
{
    return (struct cards_host){.arg = d,
                               .place = place_of_attempts,
                               .job_of_supervisor = job_of_supervisor,
                               .mps_said = said_by_mps,
                               .add_capped = add_capped,
                               .on_hello = on_hello,
                               .on_sample = on_sample,
                               .on_excess = on_excess};
}
