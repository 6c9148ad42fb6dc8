/* What an attempt's end is called: from what waitpid said and why it was stopped to the words
 * and numbers of the exit record. */
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

/* What made the shepherd stop the command, if anything did. */
enum cause {
    CAUSE_NONE,
    CAUSE_LIMIT,
    CAUSE_CANCEL,
    CAUSE_PREEMPT,
    CAUSE_REQUEUE,
    CAUSE_EXCEED,
    CAUSE_SHUTDOWN,
    CAUSE_UNIT_STOPS, /* the unit that jobs run in is being stopped: mostly, the machine is */
};

/* What the processes of a job used that were waited for: each with those that it had waited for
 * itself. getrusage would count all children that this process ever had. */
struct used {
    bool any;
    int64_t cpu_us, max_rss_kib;
};

/* What the kernel counted of an attempt. */
struct counted {
    bool is_set;
    int64_t cpu_ms, max_rss_kib; /* -1: not known */
    int64_t oom_kills;           /* for want of host memory */
    bool own_oom;                /* for the limit of its own group */
};

/* The facts. Plain value; pointers borrowed. */
struct facts {
    const struct spec *spec;
    const struct command *command;
    enum cause cause;
    char by[96]; /* who cancelled or requeued; or sent the signal that stopped the shepherd */
    bool command_gone;  /* waited for, so status is real */
    bool screen_closed; /* its screen session was, and it got a HUP */
    bool was_killed;    /* the command did not end within its grace */
    int status;         /* waitpid's */
    struct groups groups;
    struct mps_client mps; /* its control daemon of MPS, if it has one */
    struct used used;
    struct counted counted; /* before we started something of our own in its groups */
    char stuck[128];        /* words about what KILL did not end; "" */
};

/* Adds what wait4 said of one process that has ended. */
void outcome_add_usage(struct facts *f, const struct rusage *ru);

/* Takes down what was counted so far: what runs later, to end the attempt, is not the job's. */
void outcome_count(struct facts *f);

/* Fills everything but started_us and ending.ended_us. Reads the log's end where the cause may
 * be found there. A command that never started (pid -1) is NOT_STARTED with its words. */
void outcome_fill(const struct facts *f, int64_t now_boot_us, struct exitrec *out);

#endif
