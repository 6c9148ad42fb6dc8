/* What would help a job that waits, or one that has ended badly: words for `berth explain`,
 * made from the numbers that the planner and the accounts wrote down. Called by the daemon;
 * decides nothing. Pure. */
#ifndef CORE_PLAN_ADVICE_H
#define CORE_PLAN_ADVICE_H

#include <stdint.h>

#include "core/queue/job.h"

struct blocked;
struct buf;

/* What the words may use beside the job itself. 0: not known. */
struct advice_facts {
    int64_t card_mib;    /* size of the smallest card it ran on */
    int64_t largest_mib; /* of the machine's largest card */
    int32_t tolerance_permille;
};

/* For a job that waits, as plan_explain has it; nothing when only time helps. Appended. */
void advice_for_waiting(const struct job *job, const struct blocked *why,
                        const struct advice_facts *f, struct buf *out);

/* For a job that has ended; nothing when all went well. Appended. */
void advice_for_ended(const struct job *job, const struct advice_facts *f, struct buf *out);

/* It failed with its memory at the ceiling of its card, though nothing in its log says so. */
bool advice_is_at_ceiling(const struct job *job, const struct advice_facts *f);

#endif
