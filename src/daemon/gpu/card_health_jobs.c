/* What a GPU's fault means for the jobs on it: they continue, and if one of them fails, its
 * ending names the fault. Called by card_faults.c, and by the state (explain_end). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/ledger/ledger.h"
#include "core/queue/job.h"
#include "daemon/gpu/card_health_record.h"
#include "daemon/gpu/machine_cards.h"

static struct blame **
find_blame(struct cards *cards, uint32_t job)
{
    struct blame **at = &cards->health->blames;
    while (*at && (*at)->job != job)
        at = &(*at)->next;
    return at;
}

void
health_own_process(struct cards *cards, int32_t pid, uint32_t job)
{
    cards->health->owners[(uint32_t)pid & (OWNERS_MAX - 1)] = (struct owner){pid, job};
}

uint32_t
health_owner_of(const struct cards *cards, int32_t pid)
{
    const struct owner *o = &cards->health->owners[(uint32_t)pid & (OWNERS_MAX - 1)];
    return o->pid == pid ? o->job : 0;
}

/* Only the first error is kept: it is the cause of what follows. */
bool
health_blame_job(struct cards *cards, const struct job *job, const char *text)
{
    struct blame **at = find_blame(cards, job->id);
    if (*at)
        return false;
    *at = xcalloc(1, sizeof **at);
    (*at)->job = job->id;
    snprintf((*at)->text, sizeof(*at)->text, "%s", text);
    return true;
}

/* A GPU of the attempt that became faulty while the attempt ran, or -1. */
static int
faulty_card(const struct cards *cards, const struct attempt *run)
{
    for (int i = 0; i < run->n_gpus; i++) {
        const struct record *r = &cards->health->records[run->gpus[i]];
        if (r->last_us > 0 && r->last_us >= run->started_us)
            return run->gpus[i];
    }
    return -1;
}

/* True if the job failed by itself. */
static bool
has_failed(const struct ending *e)
{
    return e->outcome == OUTCOME_SIGNALED || (e->outcome == OUTCOME_EXITED && e->code != 0);
}

void
health_job_over(struct cards *cards, struct job *job)
{
    struct ending *e = &job->run->ending;
    struct blame **at = find_blame(cards, job->id), *blame = *at;
    int card = faulty_card(cards, job->run);
    if (has_failed(e) && e->oom == OOM_NONE && card >= 0)
        snprintf(e->text, sizeof e->text, "GPU fault on gpu %d: %.120s", card,
                 cards->health->records[card].last_text);
    else if (has_failed(e) && e->oom == OOM_NONE && blame)
        snprintf(e->text, sizeof e->text, "%s", blame->text);
    if (blame) {
        *at = blame->next;
        free(blame);
    }
}
