/* Which cards one job gets, or why none: one request against what is free. Called by plan.c
 * for heads of lines, by the daemon at submission (place_feasible) and for explanations.
 * Changes nothing: the caller books what it takes. */
#ifndef CORE_PLACE_H
#define CORE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/request.h"
#include "core/job.h"

struct buf;
struct ledger;

struct placement {
    uint8_t n;
    uint8_t gpus[GPU_MAX]; /* ascending, or as asked by exact ids */
};

enum blocked_by { BLOCKED_BY_NOTHING, BLOCKED_BY_JOB, BLOCKED_BY_STRANGER };

/* Why not, with the numbers for a sentence. Plain value; zero is "nothing to say". */
struct blocked {
    enum reason reason;
    int16_t gpu;             /* the best candidate, -1: none */
    int16_t n_room;          /* cards that would do, of the demand's gpus */
    enum reason card_reason; /* what that card said; Resources sums up several */
    enum blocked_by by;
    uint32_t job;         /* who holds it: the largest holder on that card; 0 */
    int32_t stranger_pid; /* 0: none is known by pid */
    int32_t stranger_mib; /* external use of that card */
    int64_t free_mib;     /* headroom of that card */
    int64_t short_mib;    /* how much is missing there */
    int32_t margin_mib;
    int64_t have;        /* Cpus, Memory: free of it */
    uint8_t gpu_state;   /* enum gpu_state of that card */
    uint32_t ahead;      /* the job of the same kind that is first; 0: this is the first */
    int64_t until_us;    /* BeginTime */
    int32_t share_short; /* GpuShare: permille missing on that card */
    uint8_t guard;       /* GpuBusy by a guard: 'u' used, 'l' load; 0: none */
    int32_t guard_has;   /* permille measured there */
    int64_t limit;       /* UserLimit, QueueLimit, ArrayLimit: the limit that is reached */
    uint8_t limit_of;    /* 'r' running jobs, 'g' GPUs, 'v' VRAM (MiB) */
    uint32_t waits_for;  /* Dependency, Reservation: that job */
};

/* True with *out filled, or false with *why. why may be NULL. */
bool place_job(const struct demand *d, const struct ledger *l, struct placement *out,
               struct blocked *why);

/* The same, but only cards of the set, and only those on which the job would also fit in
 * beside (NULL: no matter): the ledger as it will be when a reservation falls due. */
bool place_job_within(const struct demand *d, const struct ledger *l, uint64_t cards,
                      const struct ledger *beside, struct placement *out, struct blocked *why);

/* Cards the demand may use at all, whatever is free: ids, devices, type and size. */
uint64_t place_cards_of(const struct demand *d, const struct ledger *l);

/* Whether it could start if nothing ran here and no stranger was about. Words (with the
 * nearest thing that would fit) are appended to why, which may be NULL. */
bool place_feasible(const struct demand *d, const struct ledger *l, struct buf *why);

/* "GpuMemory: needs 18.0 GiB + 512 MiB margin on one GPU; gpu 1 has 12.3 GiB free (6.2 GiB
 * short), held by job 7". Appended to out; nothing for NONE. */
void blocked_text(const struct blocked *b, const struct demand *d, struct buf *out);

#endif
