/* What turn.c, turn_due.c, turn_plan.c, turn_waiting.c and turn_events.c share. */
#ifndef DAEMON_COMMON_TURN_PRIV_H
#define DAEMON_COMMON_TURN_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "base/jsonw.h"
#include "core/plan/plan.h"

struct daemon;

#define RETOLD_FILES 64

struct turn {
    uv_idle_t idle;   /* keeps the loop from sleeping while a turn is due */
    uv_check_t check; /* runs it */
    uv_timer_t retry, checkpoint, wake, rest;
    void (*after)(struct daemon *); /* each turn */
    bool due;
    bool plan_due;   /* something has happened since the last plan */
    bool more_due;   /* it is to go on: it has not come to all lines, or a sample has */
    uint32_t *waits; /* jobs that it has found not to start */
    size_t n_waits;
    /* Followers come, counted; the last of all jobs and, by a remainder, of each file. */
    uint32_t retold, retold_all, retold_file[RETOLD_FILES];
    bool again;          /* the plan wants another turn behind this one */
    struct err trouble;  /* with the disk; ERR_NONE: it takes what we write */
    bool ended_some;     /* since the last quiet moment */
    int64_t idle_us;     /* boot clock: when that was */
    struct jsonw writer; /* of the event being written */
    struct kept_promise kept[PROMISES_MAX]; /* by starts of this turn */
    size_t n_kept;
    char *promised; /* owned; promises_kept.c's: as last committed; NULL: not read yet */
};

/* Makes the plan and carries it out. False: now is no time for one. With one, the reasons of
 * the heads that stay in line are known. */
bool turn_plan(struct daemon *d);
/* Heads of lines that have just been found not to start, in the order of the queue; and forgets
 * them. */
void turn_tell_why_waiting(struct daemon *d);

/* Stores the events and turns each into the line that followers get. */
void turn_events_write(struct daemon *d);
/* After a failed commit: events of what was taken back go, the others wait for the commit that
 * succeeds. */
void turn_events_keep_true(struct daemon *d);
void turn_events_publish(struct daemon *d); /* and forgets them */

#endif
