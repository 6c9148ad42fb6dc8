/* Advice for a job that waits or has failed: sentences for `berth explain`, made from the
 * numbers that the planner and the accounts recorded. Called by the daemon; decides nothing.
 * Pure. */
#ifndef CORE_PLAN_ADVICE_H
#define CORE_PLAN_ADVICE_H

#include <stdint.h>

#include "core/queue/job.h"

struct blocked;
struct buf;

/* Facts used besides the job itself. 0: unknown. */
struct advice_facts {
    int64_t card_mib;    /* size of the smallest GPU it ran on */
    int64_t largest_mib; /* size of the machine's largest GPU */
    int32_t tolerance_permille;
};

/* For a job that waits for the reason of plan_explain; nothing if only time helps.
 * Appended. */
void advice_for_waiting(const struct job *job, const struct blocked *why,
                        const struct advice_facts *f, struct buf *out);

/* For a job that has ended; nothing if all went well. Appended. */
void advice_for_ended(const struct job *job, const struct advice_facts *f, struct buf *out);

/* Whether the job failed with its memory at the ceiling of its GPU, although its log does not
 * say so. */
bool advice_is_at_ceiling(const struct job *job, const struct advice_facts *f);

#endif
