/* Why a pending job does not start: a value that place and plan write, and sentences and
 * listings read. */
#ifndef CORE_QUEUE_BLOCKED_H
#define CORE_QUEUE_BLOCKED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/queue/job.h"

enum blocked_by { BLOCKED_BY_NOTHING, BLOCKED_BY_JOB, BLOCKED_BY_STRANGER };

#define BLOCKED_HOLDERS 3 /* jobs that a sentence names */
#define BLOCKED_ENDS    8 /* the same of those whose ends it waits for */

/* A job by its number, and as users write it where that differs. Zero: none. */
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
    /* Its holders, largest first (GpuShare: those with a share) */
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
    char health_text[72]; /* GpuSick, GpuCap: why; "" */
    int64_t since_us;     /* GpuPaused, GpuSick, Probe: wall time of that state; 0: not known */
    struct called ahead;  /* the job of the same kind that is first; none: this is the first */
    int64_t until_us;     /* BeginTime; Reservation: when waits_for is expected to start, 0 or
                             INT64_MAX: not known */
    int32_t failed;       /* BeginTime: the attempt that failed, and the pause after it is what
                             it waits for; 0: for the time that was asked for */
    bool until_firm;      /* Reservation: that start is promised (firm.c) */
    int32_t share_left;   /* GpuShare: permille of that card's compute */
    uint8_t guard;        /* GpuBusy by a guard: 'u' used, 'l' load; 0: none */
    int32_t guard_has;    /* permille measured there */
    int64_t limit;        /* UserLimit, QueueLimit, ArrayLimit: the limit that is reached;
                             Held: 1 when an admin holds it */
    uint8_t limit_of;     /* 'r' running jobs, 'g' GPUs, 'v' VRAM (MiB) */
    struct called waits_for; /* Dependency, Reservation: that job; else for which gpu is kept */
    int32_t waits_more;      /* Dependency: other jobs that it waits for as well */
    uint8_t waits_how;       /* Dependency: enum dep_type */
    bool waits_single;       /* Dependency: it is a singleton, and that job has its name */
    const char *trouble;     /* Disk, Machine, Probe: what is wrong; borrowed, while it lasts */

    /* What would have to happen, where that is more than one card says (plan_needs.c): once
     * these have ended there is room on n_freed cards beside the n_room; what is missing then
     * has to be had of to_free, which something else keeps from it: the card named above. */
    bool told_needs;
    struct called ends[BLOCKED_ENDS]; /* the one expected to end first comes first */
    int16_t n_ends;                   /* all of them, named or not */
    int16_t n_freed;
    uint64_t to_free; /* cards; 0: nothing is missing then */
};

#endif
