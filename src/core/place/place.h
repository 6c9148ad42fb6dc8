/* Which cards one job gets, or why none: one request against what is free. Called by plan.c
 * for heads of lines, by the daemon at submission (place_feasible) and for explanations.
 * Changes nothing: the caller books what it takes. */
#ifndef CORE_PLACE_PLACE_H
#define CORE_PLACE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/request.h"
#include "core/queue/job.h"

struct buf;
struct card;
struct ledger;

struct placement {
    uint8_t n;
    uint8_t gpus[GPU_MAX]; /* ascending, or as asked by exact ids */
};

enum blocked_by { BLOCKED_BY_NOTHING, BLOCKED_BY_JOB, BLOCKED_BY_STRANGER };

#define BLOCKED_HOLDERS 3 /* jobs that a sentence names */
#define BLOCKED_ENDS    8 /* the same of those whose ends it waits for */

/* A job by its number, and what people call it where that is something else. Zero: nobody. */
struct called {
    uint32_t id;
    uint32_t array; /* the array that it is a task of; 0: none */
    int32_t task;
    int32_t line; /* not a job yet: a line of a jobs file; 0: a job */
};

/* Why not, with the numbers for a sentence. Plain value; zero is "nothing to say". place.c
 * writes what it is about on cards and host, plan.c the rest. */
struct blocked {
    enum reason reason;
    int16_t gpu;             /* the best candidate, -1: none */
    int16_t n_room;          /* cards that would do, of the demand's gpus */
    enum reason card_reason; /* what that card said; Resources sums up several */
    enum blocked_by by;
    /* Who holds it: the largest of them, the largest first (GpuShare: those with a share) */
    struct called holders[BLOCKED_HOLDERS];
    int16_t n_holders;    /* all of them, named or not */
    int32_t stranger_pid; /* 0: none is known by pid */
    int32_t stranger_mib; /* external use of that card */
    int64_t need_mib;     /* wanted there, without the margin */
    int64_t free_mib;     /* headroom of that card */
    int64_t short_mib;    /* how much is missing there */
    int32_t margin_mib;
    int64_t have;         /* Cpus, Memory: free of it */
    uint8_t gpu_state;    /* enum gpu_state of that card */
    int32_t xid;          /* GpuSick: the driver's number; 0 */
    char health_text[72]; /* GpuSick: why; "" */
    int64_t since_us;     /* GpuPaused, GpuSick, Probe: wall time of that state; 0: not known */
    struct called ahead; /* the job of the same kind that is first; nobody: this is the first */
    int64_t until_us;    /* BeginTime; Reservation: when waits_for is expected to start, 0 or
                            INT64_MAX: not known */
    int32_t share_left;  /* GpuShare: permille of that card's compute */
    uint8_t guard;       /* GpuBusy by a guard: 'u' used, 'l' load; 0: none */
    int32_t guard_has;   /* permille measured there */
    int64_t limit;       /* UserLimit, QueueLimit, ArrayLimit: the limit that is reached;
                            Held: 1 when an admin holds it */
    uint8_t limit_of;    /* 'r' running jobs, 'g' GPUs, 'v' VRAM (MiB) */
    struct called waits_for; /* Dependency, Reservation: that job; else for which gpu is kept */
    int32_t waits_more;      /* Dependency: other jobs that it waits for as well */
    uint8_t waits_how;       /* Dependency: enum dep_type */
    const char *trouble;     /* Disk: what is wrong with it; borrowed, as long as it lasts */

    /* What would have to happen, where that is more than one card says (plan_needs.c): once
     * these have ended there is room on n_freed cards beside the n_room; what is missing then
     * has to be had of to_free, which something else keeps from it: the card named above. */
    bool told_needs;
    struct called ends[BLOCKED_ENDS]; /* who is expected to end first comes first */
    int16_t n_ends;                   /* all of them, named or not */
    int16_t n_freed;
    uint64_t to_free; /* cards; 0: nothing is missing then */
};

/* True with *out filled, or false with *why. why may be NULL. */
bool place_job(const struct demand *d, const struct ledger *l, struct placement *out,
               struct blocked *why);

/* The same, but only cards of the set, and only those on which the job would also fit in
 * beside (NULL: no matter): the ledger as it will be when a reservation falls due. */
bool place_job_within(const struct demand *d, const struct ledger *l, uint64_t cards,
                      const struct ledger *beside, struct placement *out, struct blocked *why);

/* Whether what the job is to hold on a card fits there; states and guards aside. The card may
 * be a copy that says how one of the ledger's will be. */
bool place_card_has_room(const struct demand *d, const struct ledger *l, const struct card *c);

/* Cards the demand may use at all, whatever is free: ids, devices, type and size. */
uint64_t place_cards_of(const struct demand *d, const struct ledger *l);

/* Whether it could start if nothing ran here and no stranger was about. Words (with the
 * nearest thing that would fit) are appended to why, which may be NULL. */
bool place_feasible(const struct demand *d, const struct ledger *l, struct buf *why);

/* "12", or "12_3" for a task. Appended. */
void called_text(const struct called *job, struct buf *out);

/* "GpuMemory: needs 18.0 GiB + 512 MiB margin on one GPU; gpu 1 has 12.3 GiB free (6.2 GiB
 * short), held by job 7". Appended to out; nothing for NONE. */
void blocked_text(const struct blocked *b, const struct demand *d, struct buf *out);
/* "; job 4, which asks for the same, is first", where another is. Appended behind that. */
void blocked_text_ahead(const struct blocked *b, struct buf *out);

#endif
