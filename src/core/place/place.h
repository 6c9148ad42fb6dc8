/* Which GPUs one job gets, or why none: one request against what is free. Called by plan.c for
 * the first jobs of lines, and by the daemon at submission (place_feasible) and for
 * explanations. Changes nothing: the caller books the placement. */
#ifndef CORE_PLACE_PLACE_H
#define CORE_PLACE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/request.h"
#include "core/queue/blocked.h"
#include "core/queue/job.h"

struct buf;
struct card;
struct ledger;

struct placement {
    uint8_t n;
    uint8_t gpus[GPU_MAX]; /* ascending, or in the order of the requested ids */
};

/* True with *out set, or false with *why set. why may be NULL. */
bool place_job(const struct demand *d, const struct ledger *l, struct placement *out,
               struct blocked *why);

/* The same, but uses only cards of the set, and only those on which the job would also fit in
 * `beside`: the ledger as of a reservation's start (NULL: not checked). */
bool place_job_within(const struct demand *d, const struct ledger *l, uint64_t cards,
                      const struct ledger *beside, struct placement *out, struct blocked *why);

/* Cards of the set on which the job would have room in the future ledger. Only room is known
 * of the future: guards and states are today's. */
uint64_t place_cards_beside(const struct demand *d, const struct ledger *beside,
                            uint64_t cards);

/* Whether what the job would hold on a card fits there, regardless of states and guards. The
 * card may be a copy that describes one of the ledger's in the future. */
bool place_card_has_room(const struct demand *d, const struct ledger *l, const struct card *c);

/* Cards the demand may ever use, free or not: by ids, devices, type and size; all of one
 * vendor if it wants several. */
uint64_t place_cards_of(const struct demand *d, const struct ledger *l);

/* Whether the job could start if nothing ran here, neither ours nor other processes. Otherwise
 * appends a sentence, with the nearest request that would fit, to why, which may be NULL. */
bool place_feasible(const struct demand *d, const struct ledger *l, struct buf *why);

/* "12", or "12_3" for a task. Appended. */
void called_text(const struct called *job, struct buf *out);

/* "GpuMemory: needs 18.0 GiB + 512 MiB margin on one GPU; gpu 1 has 12.3 GiB free (6.2 GiB
 * short), held by job 7". Appended; nothing for NONE. */
void blocked_text(const struct blocked *b, const struct demand *d, struct buf *out);
/* "; job 4, with the same request, is first", if there is such a job. Appended after
 * blocked_text. */
void blocked_text_ahead(const struct blocked *b, struct buf *out);

#endif
