/* The readers of a turn's changes (state/changes.h), in this order. A reader takes what it
 * cares about and changes nothing of the jobs. What the commit writes it takes from the marks
 * of the jobs and from the events that are made here; hooks follow from those. */
#include "daemon/turn/pass_on.h"

#include "daemon/attempt/supervisor_watch.h"
#include "daemon/common/counters.h"
#include "daemon/common/daemon.h"
#include "daemon/gpu/vram_wait.h"
#include "daemon/rpc/waiters.h"
#include "daemon/slurm/slurm_engine.h"
#include "daemon/turn/event_text.h"
#include "daemon/turn/event_unstored.h"

/* Looked up for each reader: one that notes a change itself may have moved the list. */
static struct change *
change_at(const struct changes *c)
{
    return &c->list[c->n_read];
}

void
pass_on_changes(struct daemon *d)
{
    struct changes *c = &d->state.changes;
    for (; c->n_read < c->n; c->n_read++) {
        watch_read_change(d, change_at(c)); /* stops */
        slurm_read_change(d, change_at(c)); /* stops there */
        vram_wait_read(d, change_at(c));    /* samples */
        tally_read(d, change_at(c));
        waits_read(d, change_at(c));
        event_launched_read(d, change_at(c));
        event_read(d, change_at(c));
    }
}
