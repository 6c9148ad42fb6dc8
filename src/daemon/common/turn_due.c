/* That there is to be a turn: any part of the daemon may say so (turn.h). */
#include "daemon/common/turn_due.h"

#include <uv.h>

#include "base/err.h"
#include "daemon/common/daemon.h"
#include "daemon/common/turn_priv.h"

static void
on_idle(uv_idle_t *idle)
{
    (void)idle;
}

void
turn_touch(struct daemon *d)
{
    if (d->turn)
        d->turn->plan_due = true;
    turn_touch_unplanned(d);
}

void
turn_touch_unplanned(struct daemon *d)
{
    if (!d->turn || d->turn->due || d->leaving)
        return;
    d->turn->due = true;
    uv_idle_start(&d->turn->idle, on_idle);
}

void
turn_touch_unchanged(struct daemon *d)
{
    if (d->turn)
        d->turn->more_due = true;
    turn_touch_unplanned(d);
}

const struct err *
turn_disk_trouble(const struct daemon *d)
{
    return d->turn->trouble.code ? &d->turn->trouble : NULL;
}

void
turn_retell_waiting(struct daemon *d, uint32_t file)
{
    struct turn *t = d->turn;
    *(file ? &t->retold_file[file % RETOLD_FILES] : &t->retold_all) = ++t->retold;
    turn_touch(d);
}
