/* That there is to be a turn: any part of the daemon may say so (turn.h). */
#include "daemon/common/turn_due.h"

#include "daemon/common/daemon.h"
#include "daemon/turn/turn.h"

static bool
takes_turns(const struct daemon *d)
{
    return d->turn && !d->leaving;
}

void
turn_touch(struct daemon *d)
{
    if (takes_turns(d))
        turn_is_due(d->turn);
}

void
turn_touch_unplanned(struct daemon *d)
{
    if (takes_turns(d))
        turn_is_due_unplanned(d->turn);
}

void
turn_touch_unchanged(struct daemon *d)
{
    if (takes_turns(d))
        turn_is_due_unchanged(d->turn);
}

void
turn_retell_waiting(struct daemon *d, uint32_t file)
{
    turn_tell_again(d->turn, file);
}

const struct err *
turn_disk_trouble(const struct daemon *d)
{
    return turn_trouble(d->turn);
}
