/* See part_wiring.h. Called by berthd.c where it makes the parts. */
#include "daemon/part_wiring.h"

#include "daemon/attempt/attempts.h"
#include "daemon/attempt/job_confines.h"
#include "daemon/attempt/job_environ.h"
#include "daemon/common/daemon.h"
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
    struct daemon *d = arg;
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
