/* Determines an attempt's outcome: from waitpid's status and the reason for stopping it to the
 * fields of the exit record. */
#ifndef SHEPHERD_ATTEMPT_OUTCOME_H
#define SHEPHERD_ATTEMPT_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "shepherd/common/groups.h"
#include "shepherd/common/mps_client.h"

struct command;
struct exitrec;
struct spec;

/* Why the supervisor stopped the command, if it did. */
enum cause {
    CAUSE_NONE,
    CAUSE_LIMIT,
    CAUSE_CANCEL,
    CAUSE_PREEMPT,
    CAUSE_REQUEUE,
    CAUSE_EXCEED,
    CAUSE_SHUTDOWN,
    CAUSE_UNIT_STOPS, /* the unit of jobs is being stopped, mostly for a shutdown */
};

/* Resources used by the job's reaped processes, each including those it reaped itself.
 * getrusage would count all children that this process ever had. */
struct used {
    bool any;
    int64_t cpu_us, max_rss_kib;
};

/* What the kernel counted for an attempt. */
struct counted {
    bool is_set;
    int64_t cpu_ms, max_rss_kib; /* -1: not known */
    int64_t oom_kills;           /* OOM kills for lack of host memory */
    bool own_oom;                /* caused by its own group's limit */
};

/* Everything known about the attempt's end. Plain value; pointers borrowed. */
struct facts {
    const struct spec *spec;
    const struct command *command;
    enum cause cause;
    char by[96];        /* who cancelled or requeued, or signalled the supervisor */
    bool command_gone;  /* reaped, so status is valid */
    bool screen_closed; /* its screen session was closed, and the job got HUP */
    bool was_killed;    /* it did not end within its grace */
    int status;         /* waitpid's */
    struct groups groups;
    struct mps_client mps; /* its MPS control daemon, if any */
    struct used used;
    struct counted counted; /* before we started anything of our own in its groups */
    char stuck[128];        /* describes what KILL did not end; "" */
};

/* Adds wait4's usage of one ended process. */
void outcome_add_usage(struct facts *f, const struct rusage *ru);

/* Records the counters now, because later processes that clean up after the attempt are not
 * the job's. */
void outcome_count(struct facts *f);

/* Fills everything except started_us and ending.ended_us. Reads the log's end if the cause may
 * be found there. A command that never started (pid -1) is NOT_STARTED with its text. */
void outcome_fill(const struct facts *f, int64_t now_boot_us, struct exitrec *out);

#endif
