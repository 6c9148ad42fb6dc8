/* An attempt on a cluster's node, from the mark in its folder to the exit of its supervisor.
 * This process is to the supervisor what the daemon is on its own machine. */
#ifndef SHEPHERD_SLURM_NODE_ATTEMPT_H
#define SHEPHERD_SLURM_NODE_ATTEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shepherd/slurm/measure.h"
#include "wire/frame.h"

struct err;
struct pollfd;

struct node_attempt {
    int dir, lock; /* -1: not open */
    int talk;      /* to its supervisor; -1: nothing more to tell it */
    uint32_t job;
    int32_t attempt;
    int64_t limit_ms, grace_ms; /* limit_ms 0: none */
    pid_t supervisor;           /* 0: not forked */
    struct frame in;
    off_t signals;           /* bytes of the signals file already passed on */
    int64_t pulse, pulse_us; /* number of pulses, and when the next is due (boot clock) */
    struct measured seen;
    int status; /* exit status of the command as in a shell; -1: not known */
};

/* Opens the attempt's folder and reads its spec. -1 with the reason. */
int node_attempt_open(struct node_attempt *a, int parent, const char *folder, struct err *e);
void node_attempt_close(struct node_attempt *a);

/* Makes the mark, which only one of all Slurm jobs can. more (may be "") is appended to its
 * time and node. 1: it exists already; -1: the attempt must not run here. */
int node_attempt_mark(const struct node_attempt *a, const char *more, struct err *e);

/* Forks the supervisor, with these variables ("NAME=value", NULL-terminated) in the
 * environment from which the command's is made. -1 if it cannot be forked, with e->errnum. */
int node_attempt_start(struct node_attempt *a, char *const *vars, struct measure *m,
                       struct err *e);

/* Writes the record of an attempt stopped before it began: 0, or -1. */
int node_attempt_end_unbegun(const struct node_attempt *a, struct err *e);
/* Writes the record of an attempt whose supervisor could not be forked. */
int node_attempt_end_unstarted(const struct node_attempt *a, int errnum, struct err *e);

/* Call when its supervisor has exited with this waitpid status: writes the record if the
 * supervisor never began and could not report it itself. */
void node_attempt_left(const struct node_attempt *a, int wait_status);

/* True if the daemon has asked for the attempt's end. */
bool node_attempt_is_stopped(const struct node_attempt *a);
/* Passes a stop request of the daemon on to the supervisor, after earlier signal requests;
 * false: there is none. */
bool node_attempt_pass_on_stop(struct node_attempt *a);
/* Stops the attempt to run again, on behalf of `by`. */
void node_attempt_requeue(const struct node_attempt *a, const char *by);

void node_attempt_read(struct node_attempt *a); /* call when talk is readable */
/* Every ten seconds: writes a sign of life, and checks for a stop request and signals. */
void node_attempt_pulse(struct node_attempt *a, int64_t now_us);

#define NODE_PULSE_MS 10000

#endif
