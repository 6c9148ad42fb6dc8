/* The state of one attempt, shared by attempt.c (start, loop), stop.c (from the request to end
 * to the record) and daemon_link.c (messages to daemons). */
#ifndef SHEPHERD_ATTEMPT_ATTEMPT_PRIV_H
#define SHEPHERD_ATTEMPT_ATTEMPT_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "shepherd/attempt/kill.h"
#include "shepherd/attempt/outcome.h"
#include "shepherd/begin/command.h"
#include "shepherd/begin/loglimit.h"
#include "shepherd/common/attempt_spec.h"
#include "sys/exitrec.h"

struct attach;
struct ctl;

#define MS_US INT64_C(1000)
#define S_US  INT64_C(1000000)

/* RUNNING until the command has exited, its limit is reached or a user cancels it; STOPPING
 * (TERM was sent, the grace runs) while a process of it is left; KILLING in passes; REMOVING
 * while podman removes what it could not when it was killed; ENDED once waitpid says that
 * nothing is left. */
enum phase { PHASE_RUNNING, PHASE_STOPPING, PHASE_KILLING, PHASE_REMOVING, PHASE_ENDED };

/* Zero-initialised by attempt_run, except the descriptors. */
struct shepherd {
    struct spec spec;
    struct command command;
    struct ctl *ctl;
    struct attach *attach; /* NULL: the job is not interactive */
    struct exitrec record; /* complete in PHASE_ENDED */
    struct facts facts;
    struct loglimit log, errors;
    enum phase phase;
    int sig_fd, timer_fd;
    bool ready;          /* the spec is read, and signals are set up */
    bool noted;          /* noted in the lock file while a daemon was there to read it */
    bool written;        /* the record is in its own file */
    bool recorded;       /* a daemon has it */
    bool screen_told;    /* has been asked to end */
    bool reaps_on;       /* more children may have ended than were reaped in this turn */
    bool unit_term;      /* systemd has ended this process's unit with TERM */
    char term_by[64];    /* other sender of TERM to this process; "": none */
    pid_t removal_pid;   /* child that removes the container; -1: done, or not needed */
    struct kill_own own; /* which processes to signal */
    bool done;           /* nothing keeps the supervisor any longer */
    unsigned passes;     /* of killing */
    bool cut_off;        /* podman was killed, perhaps while removing the container */
    int64_t wake_us;     /* boot clock: when this phase acts next; 0: never */
    int64_t warn_us;     /* boot clock: when to warn the command of its limit; 0: never */
    int64_t notice_us;   /* boot clock: when to announce the limit on a terminal; 0: never */
    int64_t armed_us;    /* timer_fd's current setting */
    int64_t phase_us;    /* start of this phase */
    int64_t backoff_us;
    int64_t listen_us; /* boot clock: deadline for making ctl.sock; 0: it exists */
};

#endif
