/* A packed attempt: it is in the backlog until an allocation has made its mark, and belongs to
 * that allocation from then on. Called by slurm_settle.c, which reads its folder. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/common/instance.h"
#include "daemon/slurm/slurm_priv.h"
#include "daemon/state/changes.h"
#include "daemon/state/state.h"

#define BLANK_US (30 * S_US) /* for the text of a mark to be written */

/* words: "NODE KEY GPUS". */
bool
slurm_packed_began(struct slurm *s, struct remote *r, const char *words)
{
    char node[65] = "", key[ALLOCATION_KEY_SIZE] = "";
    (void)sscanf(words, "%64s %19s", node, key);
    /* Without a key the mark is being written; it stays so only if its writer died. */
    int64_t now = clock_boot_us();
    r->blank_us = r->blank_us ? r->blank_us : now;
    if (!key[0] && now - r->blank_us < BLANK_US)
        return false;
    r->alloc = slurm_alloc_of(s, key);
    if (r->alloc)
        r->alloc->n_begun++;
    return true;
}

void
slurm_packed_let_go(struct remote *r)
{
    if (r->alloc)
        TAKE(r->alloc)->n_begun--;
}

static void
keep_id(struct slurm *s, const struct alloc *a, struct job *job)
{
    struct sent *sent = &job->run->sent;
    if (!a->id[0] || strcmp(sent->id, a->id) == 0)
        return;
    snprintf(sent->id, sizeof sent->id, "%s", a->id);
    state_save(s->inst->state, job, SAVE_ATTEMPT);
}

void
slurm_packed_look(struct slurm *s, struct remote *r, struct job *job, int64_t now)
{
    const struct alloc *a = r->alloc;
    if (!r->began) {
        r->gone_us = !r->folder_gone ? 0 : r->gone_us ? r->gone_us : now;
        return;
    }
    r->is_known = a && a->is_known;
    if (a) {
        r->phase = a->phase;
        memcpy(r->state, a->state, sizeof r->state);
        memcpy(r->reason, a->reason, sizeof r->reason);
        memcpy(r->node, a->node, sizeof r->node);
        keep_id(s, a, job);
    }
    bool is_gone = !a || r->has_left || slurm_alloc_is_dead(a);
    r->gone_us = !is_gone ? 0 : r->gone_us ? r->gone_us : now;
}
