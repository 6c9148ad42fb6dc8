/* Changes are noted at the time that it is, in the name of the caller being served: see
 * state.h. */
#include "daemon/state/state.h"

int64_t
state_wall_us(const struct state *s)
{
    return s->around->wall_us(s->around->arg);
}

/* Of the others neither a card nor the order in the queue has become another: memory that is
 * waited for, for one, is planned with once a sample has shown that it is back. */
static bool
may_start_more(enum change_type type)
{
    return type != CHANGE_AWAITED && type != CHANGE_CANCEL_MORE && type != CHANGE_LAUNCHED;
}

struct change *
state_note(struct state *s, enum change_type type, const struct job *job)
{
    struct change *x = changes_add(&s->changes, type);
    x->at_us = state_wall_us(s);
    x->is_asked = s->asker.is_known;
    x->by_uid = s->asker.uid;
    if (job) {
        x->job = job->id;
        x->file = job->file;
    }
    changes_wake(&s->changes, may_start_more(type));
    return x;
}

void
state_save(struct state *s, struct job *job, unsigned what)
{
    changes_mark(&s->changes, job, what);
}
