/* What turn.c, turn_plan.c, turn_waiting.c, turn_events.c and promises_kept.c
 * share. */
#ifndef DAEMON_TURN_TURN_PRIV_H
#define DAEMON_TURN_TURN_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "core/plan/plan.h"
#include "daemon/turn/clock_steps.h"
#include "daemon/turn/turn.h"

struct state;
struct store;

#define RETOLD_FILES 64

struct turn {
    struct state *state;
    struct store *store;
    struct turn_host host;
    struct turn_part *parts; /* owned */
    size_t n_parts;
    bool due;
    bool plan_due;      /* something has happened since the last plan */
    bool more_due;      /* it is to go on: it has not come to all lines, or a sample has */
    bool again;         /* the plan wants another turn behind this one */
    bool upkeep_set;    /* its timer */
    bool ended_some;    /* since the last quiet moment */
    int64_t idle_us;    /* boot clock: when that was */
    struct err trouble; /* with the disk; ERR_NONE: it takes what we write */
    struct clock_steps clock;
    uint32_t *waits; /* jobs that the plan has found not to start */
    size_t n_waits;
    /* Followers come, counted; the last of all jobs and, by a remainder, of each file. */
    uint32_t retold, retold_all, retold_file[RETOLD_FILES];
    struct kept_promise kept[PROMISES_MAX]; /* by starts of this turn */
    size_t n_kept;
    char *promised; /* owned; promises_kept.c's: as last committed; NULL: not read yet */
};

int64_t turn_now_us(const struct turn *t); /* boot clock */
void turn_set_timer(const struct turn *t, enum turn_timer which, int64_t ms);
void turn_stop_timer(const struct turn *t, enum turn_timer which);

/* Makes the plan and carries it out. False: now is no time for one. With one, the reasons of
 * the heads that stay in line are known. */
bool turn_plan(struct turn *t);
/* Heads of lines that have just been found not to start, in the order of the queue; and forgets
 * them. */
void turn_tell_why_waiting(struct turn *t);

/* Every part reads the changes that have come since the last time. */
void turn_events_read(struct turn *t);
/* Stores the events and turns each into the line that followers get. */
void turn_events_write(struct turn *t);
/* After a failed commit: events of what was taken back go, the others wait for the commit that
 * succeeds. */
void turn_events_keep_true(struct turn *t);
void turn_events_publish(struct turn *t); /* and forgets them */

/* Every part that has something to do in this step does it, in the order of the table. */
#define PARTS(t, step, ...)                                                                    \
    do {                                                                                       \
        for (const struct turn_part *part_ = (t)->parts; part_ < (t)->parts + (t)->n_parts;    \
             part_++)                                                                          \
            if (part_->step)                                                                   \
                part_->step(part_->arg, ##__VA_ARGS__);                                        \
    } while (0)

#endif
