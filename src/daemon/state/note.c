/* Changes are noted at the time that it is, as of who is being served: see state.h. */
#include "daemon/state/state.h"

int64_t
state_wall_us(const struct state *s)
{
    return s->around->wall_us(s->around->arg);
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
    changes_wake(&s->changes, true);
    return x;
}

void
state_save(struct state *s, struct job *job, unsigned what)
{
    changes_mark(&s->changes, job, what);
}
