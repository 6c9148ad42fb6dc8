/* What attempt.c (start, loop), stop.c (from the wish to end to the record) and daemon_link.c
 * (words to daemons) share of one attempt. */
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

/* RUNNING until the command has gone, its limit is reached or a user cancels it; STOPPING
 * (TERM was sent, grace runs) while something of it is left; KILLING in passes; REMOVING while
 * podman removes what it could not when it was killed; ENDED once waitpid says that nothing is
 * left. */
enum phase { PHASE_RUNNING, PHASE_STOPPING, PHASE_KILLING, PHASE_REMOVING, PHASE_ENDED };

/* Zero-initialised by attempt_run, but for the descriptors. */
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
    bool ready;        /* the spec is read, and signals are taken */
    bool noted;        /* it is in the lock file, and a daemon was there to read it */
    bool written;      /* the record is in its file */
    bool recorded;     /* a daemon has it */
    bool screen_told;  /* to end */
    bool reaps_on;     /* more children may have ended than were waited for in a turn */
    char term_by[64];  /* who has sent this process TERM; "": nobody */
    pid_t removal_pid; /* of what removes its container; -1: that was done, or is not needed */
    struct kill_own own; /* the processes that are signalled */
    bool done;           /* nothing keeps the shepherd any longer */
    unsigned passes;     /* of killing */
    bool cut_off;      /* what podman left was killed, perhaps while it removed the container */
    int64_t wake_us;   /* boot clock: when this phase wants to act; 0: never */
    int64_t warn_us;   /* boot clock: when the command is warned of its limit; 0: no more */
    int64_t notice_us; /* boot clock: when the limit is announced on a terminal; 0: no more */
    int64_t armed_us;  /* what timer_fd is set to */
    int64_t phase_us;  /* when this phase began */
    int64_t backoff_us;
    int64_t listen_us; /* boot clock: when ctl.sock is made at the latest; 0: it is there */
};

#endif
