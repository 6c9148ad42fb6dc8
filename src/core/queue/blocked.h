/* Why a pending job does not start: a value written by place and plan, and read for sentences
 * and listings. */
#ifndef CORE_QUEUE_BLOCKED_H
#define CORE_QUEUE_BLOCKED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/queue/job.h"

enum blocked_by { BLOCKED_BY_NOTHING, BLOCKED_BY_JOB, BLOCKED_BY_STRANGER };

#define BLOCKED_HOLDERS 3 /* jobs named in a sentence */
#define BLOCKED_ENDS    8 /* the same for jobs whose ends it waits for */

/* A job by its id and, where it differs, the name users know. Zero: none. */
struct called {
    uint32_t id;
    uint32_t array; /* the array it is a task of; 0: none */
    int32_t task;
    int32_t line; /* a line of a jobs file that is not a job yet; 0: a job */
};

/* The reason, with the numbers for a sentence. Plain value; zero: nothing to report. place.c
 * writes the parts about GPUs and host, plan.c the rest. */
struct blocked {
    enum reason reason;
    int16_t gpu;             /* the nearest candidate; -1: none */
    int16_t n_room;          /* cards with room, of the number wanted */
    enum reason card_reason; /* that card's reason; Resources sums up several */
    enum blocked_by by;
    /* Jobs on that card, largest first (GpuShare: those with a share). */
    struct called holders[BLOCKED_HOLDERS];
    int16_t n_holders;    /* number of all of them */
    int32_t stranger_pid; /* 0: no pid known */
    int32_t stranger_mib; /* external use on that card */
    int64_t need_mib;     /* needed there, without the margin */
    int64_t free_mib;     /* free on that card */
    int64_t short_mib;    /* missing there */
    int32_t margin_mib;
    int64_t have;            /* Cpus, Memory: how much is free */
    uint8_t gpu_state;       /* enum gpu_state of that card */
    int32_t xid;             /* GpuSick: the driver's XID number; 0 */
    char health_text[72];    /* GpuSick, GpuCap: why; "" */
    int64_t since_us;        /* GpuPaused, GpuSick, Probe: wall clock since when; 0: unknown */
    struct called ahead;     /* the first job of its line; none: this is the first */
    int64_t until_us;        /* BeginTime; Reservation: expected start of waits_for, 0 or
                                INT64_MAX: unknown */
    int32_t failed;          /* BeginTime: the failed attempt after which it pauses; 0: it waits
                                for its requested time */
    bool until_firm;         /* Reservation: that start is promised (firm.c) */
    int32_t share_left;      /* GpuShare: free permille of that card's compute */
    uint8_t guard;           /* GpuBusy by a guard: 'u' used memory, 'l' load; 0: none */
    int32_t guard_has;       /* measured there, in permille */
    int64_t limit;           /* UserLimit, QueueLimit, ArrayLimit: the limit reached; Held: 1 if
                                by an admin */
    uint8_t limit_of;        /* 'r' running jobs, 'g' GPUs, 'v' VRAM (MiB) */
    struct called waits_for; /* Dependency, Reservation; else the job that gpu is kept for */
    int32_t waits_more;      /* Dependency: number of other jobs it waits for */
    uint8_t waits_how;       /* Dependency: enum dep_type */
    bool waits_single;       /* Dependency: it is a singleton, and that job has its name */
    const char *trouble;     /* Disk, Machine, Probe: what is wrong; borrowed while it lasts */

    /* What must happen, if it takes more than one card (plan_needs.c): when the jobs in `ends`
     * have ended, n_freed cards besides the n_room have room; the rest must come from to_free,
     * which something else keeps from the job: see the card above. */
    bool told_needs;
    struct called ends[BLOCKED_ENDS]; /* sorted by expected end */
    int16_t n_ends;                   /* number of all of them */
    int16_t n_freed;
    uint64_t to_free; /* cards; 0: none needed */
};

#endif
