/* Slurm's commands and answers about allocations. slurm_calls.c decides when, and calls these
 * functions. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/common/instance.h"
#include "daemon/slurm/slurm_priv.h"
#include "slurm/allocation_options.h"
#include "wire/places.h"

#define GONE_US (5 * S_US) /* after sending, before its absence counts */

struct alloc *
slurm_next_alloc(const struct slurm *s, int64_t now)
{
    struct alloc *a;
    for (a = s->allocs; a && (a->is_sent || a->was_refused || a->due_us > now);)
        a = a->hh.next;
    return a;
}

int
slurm_send_alloc(struct slurm *s, struct alloc *a, struct buf *args, struct buf *script,
                 struct err *e)
{
    auto_free char *program = places_program("berth-shepherd", e);
    auto_free char *all = shared_folder_path(s->inst, "allocations");
    auto_free char *folder = xasprintf("%s/%s", all, a->key);
    if (!program)
        return -1;
    slurm_add_allocation_options(&a->spec, &s->inst->config, args);
    buf_adds(script, "#!/bin/sh\nexec ");
    text_add_quoted(script, program);
    buf_adds(script, " --slurm-allocation ");
    text_add_quoted(script, folder);
    buf_addc(script, '\n');
    a->is_sent = true;
    a->sent_us = clock_boot_us();
    return 0;
}

void
slurm_alloc_sent(struct slurm *s, struct alloc *a, const char *id, enum slurm_refusal why,
                 const char *words)
{
    if (id) {
        log_info("event=sent allocation=%s slurm_job=%s", a->key, id);
        snprintf(a->id, sizeof a->id, "%.11s", id);
        return;
    }
    log_warn("event=not-sent allocation=%s %.*s", a->key, (int)strcspn(words, "\n"), words);
    if (why == SLURM_NEVER) {
        a->was_refused = true;
        slurm_refuse_like(s, &a->spec, words);
    } else if (why == SLURM_LATER) {
        a->is_sent = false;
        a->due_us = clock_boot_us() + slurm_pause_us(&a->pause_us);
    }
}

void
slurm_allocs_unlist(struct slurm *s)
{
    for (struct alloc *a = s->allocs; a; a = a->hh.next)
        a->is_known = false;
}

/* If Slurm lists two jobs of one allocation, the one that is not over counts. */
void
slurm_alloc_listed(struct slurm *s, const struct slurm_job *j)
{
    struct alloc *a = slurm_alloc_of(s, j->key);
    enum slurm_phase phase = slurm_phase_of(j->state);
    if (!a || (a->is_known && phase == SLURM_IS_OVER))
        return;
    if (a->phase != phase)
        s->poll_pause_us = S_US;
    a->is_known = true;
    a->phase = phase;
    snprintf(a->id, sizeof a->id, "%.11s", j->array);
    snprintf(a->state, sizeof a->state, "%s", j->state);
    snprintf(a->reason, sizeof a->reason, "%s", j->reason);
    if (j->node[0])
        snprintf(a->node, sizeof a->node, "%s", j->node);
}

void
slurm_allocs_polled(struct slurm *s, int64_t now)
{
    for (struct alloc *a = s->allocs; a; a = a->hh.next) {
        bool lives = a->is_known && a->phase != SLURM_IS_OVER;
        if (!a->is_sent || a == s->sending_alloc || a->sent_us > s->call_began_us)
            continue;
        /* One sent a moment ago may not be listed yet. */
        bool is_new = !a->is_known && a->sent_us && now - a->sent_us < GONE_US;
        a->gone_us = lives || is_new ? 0 : a->gone_us ? a->gone_us : now;
        a->gone_polls = lives || is_new ? 0 : a->gone_polls + (a->is_known ? 2 : 1);
        if (!lives)
            s->poll_pause_us = S_US;
    }
}

bool
slurm_alloc_is_to_stop(const struct alloc *a, int64_t now)
{
    return a->is_unwanted && !a->is_here && a->id[0] && a->stop_us <= now && a->is_known &&
           a->phase == SLURM_WAITS;
}
