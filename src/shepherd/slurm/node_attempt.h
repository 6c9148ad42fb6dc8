/* An attempt on a cluster's node, from the mark in its folder to its supervisor's leave: what
 * the daemon is to a supervisor at home. */
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
    int talk;      /* to its supervisor; -1: it knows all that we had to say */
    uint32_t job;
    int32_t attempt;
    int64_t limit_ms, grace_ms; /* limit 0: none */
    pid_t supervisor;           /* 0: none was forked */
    struct frame in;
    off_t signals;           /* so many bytes of them were passed on */
    int64_t pulse, pulse_us; /* how many, and when the next is due (boot clock) */
    struct measured seen;
    int status; /* of the command, as a shell has it; -1: not known */
};

/* Opens its folder and reads what is to run. -1 with the reason. */
int node_attempt_open(struct node_attempt *a, int parent, const char *folder, struct err *e);
void node_attempt_close(struct node_attempt *a);

/* Makes the mark, which only one of all Slurm jobs can; more (may be "") stands behind the time
 * and the node in it. 1: it was made before; -1: it is not to run here. */
int node_attempt_mark(const struct node_attempt *a, const char *more, struct err *e);

/* Forks the supervisor, with these variables ("NAME=value", up to NULL) in the environment that
 * the command's is made of. -1: it could not be, with e->errnum. */
int node_attempt_start(struct node_attempt *a, char *const *vars, struct measure *m,
                       struct err *e);

/* Writes the end of one that was stopped before it began: 0, or -1. */
int node_attempt_end_unbegun(const struct node_attempt *a, struct err *e);
/* The same of one whose supervisor could not be forked. */
int node_attempt_end_unstarted(const struct node_attempt *a, int errnum, struct err *e);

/* Its supervisor has left, with this status of waitpid: where it never came to begin, and could
 * not say so, writes that end. */
void node_attempt_left(const struct node_attempt *a, int wait_status);

/* Whether the daemon has asked for its end. */
bool node_attempt_is_stopped(const struct node_attempt *a);
/* Passes on to the supervisor that the daemon has asked for its end, behind the signals that
 * were asked for before; false: it has not. */
bool node_attempt_pass_on_stop(struct node_attempt *a);
/* Has it stopped to run again, as `by` says. */
void node_attempt_requeue(const struct node_attempt *a, const char *by);

void node_attempt_read(struct node_attempt *a); /* talk is readable */
/* Every ten seconds: says that it is alive, and looks whether it is to end, and for signals. */
void node_attempt_pulse(struct node_attempt *a, int64_t now_us);

#define NODE_PULSE_MS 10000

#endif
