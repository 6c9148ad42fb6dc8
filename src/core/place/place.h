/* Which cards one job gets, or why none: one request against what is free. Called by plan.c
 * for heads of lines, by the daemon at submission (place_feasible) and for explanations.
 * Changes nothing: the caller books what it takes. */
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
    uint8_t gpus[GPU_MAX]; /* ascending, or as asked by exact ids */
};

/* True with *out filled, or false with *why. why may be NULL. */
bool place_job(const struct demand *d, const struct ledger *l, struct placement *out,
               struct blocked *why);

/* The same, but only cards of the set, and only those on which the job would also fit in
 * beside (NULL: no matter): the ledger as it will be when a reservation falls due. */
bool place_job_within(const struct demand *d, const struct ledger *l, uint64_t cards,
                      const struct ledger *beside, struct placement *out, struct blocked *why);

/* Cards of the set on which it would have room in the ledger as it will be. Of the future only
 * room is known: guards and states are today's. */
uint64_t place_cards_beside(const struct demand *d, const struct ledger *beside,
                            uint64_t cards);

/* Whether what the job is to hold on a card fits there; states and guards aside. The card may
 * be a copy that says how one of the ledger's will be. */
bool place_card_has_room(const struct demand *d, const struct ledger *l, const struct card *c);

/* Cards the demand may use at all, whatever is free: ids, devices, type and size; of one vendor
 * if it wants several. */
uint64_t place_cards_of(const struct demand *d, const struct ledger *l);

/* Whether it could start if nothing ran here and no stranger was about. Words (with the
 * nearest thing that would fit) are appended to why, which may be NULL. */
bool place_feasible(const struct demand *d, const struct ledger *l, struct buf *why);

/* "12", or "12_3" for a task. Appended. */
void called_text(const struct called *job, struct buf *out);

/* "GpuMemory: needs 18.0 GiB + 512 MiB margin on one GPU; gpu 1 has 12.3 GiB free (6.2 GiB
 * short), held by job 7". Appended to out; nothing for NONE. */
void blocked_text(const struct blocked *b, const struct demand *d, struct buf *out);
/* "; job 4, with the same request, is first", where another is. Appended behind that. */
void blocked_text_ahead(const struct blocked *b, struct buf *out);

#endif
