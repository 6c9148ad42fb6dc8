/* Lets any part of the daemon request a turn (turn.h). */
#include "daemon/common/turn_due.h"

#include "daemon/common/instance.h"
#include "daemon/turn/turn.h"

static bool
takes_turns(const struct instance *inst)
{
    return inst->turn && !inst->leaving;
}

void
turn_touch(struct instance *inst)
{
    if (takes_turns(inst))
        turn_is_due(inst->turn);
}

void
turn_touch_unplanned(struct instance *inst)
{
    if (takes_turns(inst))
        turn_is_due_unplanned(inst->turn);
}

void
turn_touch_unchanged(struct instance *inst)
{
    if (takes_turns(inst))
        turn_is_due_unchanged(inst->turn);
}

void
turn_retell_waiting(struct instance *inst, uint32_t file)
{
    turn_tell_again(inst->turn, file);
}

const struct err *
turn_disk_trouble(const struct instance *inst)
{
    return turn_trouble(inst->turn);
}
