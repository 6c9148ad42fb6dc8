/* Reports, after a turn's plan and commit, why jobs keep waiting. */
#include <stdlib.h>

#include "base/err.h"
#include "core/plan/plan.h"
#include "core/queue/queue.h"
#include "daemon/state/state.h"
#include "daemon/turn/turn_priv.h"

static int
compare_heads(const void *a, const void *b)
{
    const struct job *x = *(struct job *const *)a, *y = *(struct job *const *)b;
    return x->order < y->order ? -1 : x->order > y->order;
}

static bool
is_told(const struct turn *t, const struct job *job)
{
    uint32_t since = t->retold_file[job->file % RETOLD_FILES];
    return job->waiting_told >= (since > t->retold_all ? since : t->retold_all);
}

void
turn_tell_why_waiting(struct turn *t)
{
    size_t n = 0;
    struct job **heads = xcalloc(t->n_waits + 1, sizeof(struct job *));
    for (size_t i = 0; i < t->n_waits; i++) {
        const struct job *job = queue_get(t->state->queue, t->waits[i]);
        const struct kind *kind = job ? job->kind : NULL;
        /* A job that was passed over only because it waits for a commit is planned in the
         * next turn. */
        if (kind && !is_told(t, kind->head) && kind->blocked.reason != REASON_NONE) {
            kind->head->waiting_told = t->retold;
            heads[n++] = kind->head;
        }
    }
    if (n > 0)
        qsort(heads, n, sizeof(struct job *), compare_heads);
    for (size_t i = 0; i < n; i++)
        PARTS(t, tell_waiting, heads[i]);
    free(heads);
    free(t->waits);
    t->waits = NULL;
    t->n_waits = 0;
}

void
turn_tell_again(struct turn *t, uint32_t file)
{
    *(file ? &t->retold_file[file % RETOLD_FILES] : &t->retold_all) = ++t->retold;
    turn_is_due(t);
}
