/* See state.h. */
#include "daemon/state/state.h"

#include "base/counted_text.h"
#include "core/learn/runtimes.h"
#include "daemon/state/depend_turns.h"

void
state_open(struct state *s)
{
    s->history = history_new();
    s->depend = depend_new();
}

void
state_close(struct state *s)
{
    history_free(s->history);
    depend_free(s->depend);
    changes_free(&s->changes);
    shared_free(s->last_cwd);
    shared_free(s->last_user);
    shared_free(s->last_rlimits);
}
