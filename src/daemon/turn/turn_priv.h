/* Shared by turn.c, turn_plan.c, turn_waiting.c, turn_events.c and promises_kept.c. */
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
    bool more_due;      /* the next plan continues: lines are left, or a sample arrived */
    bool again;         /* the plan needs another turn after this one */
    bool upkeep_set;    /* TURN_UPKEEP is running */
    bool ended_some;    /* jobs have ended since the last quiet moment */
    int64_t idle_us;    /* boot clock: the last quiet moment */
    struct err trouble; /* of the disk; ERR_NONE: writes succeed */
    struct clock_steps clock;
    uint32_t *waits; /* jobs that the plan did not start */
    size_t n_waits;
    /* Counter of retell requests, and its value at the last one for all jobs and for each file
     * (number modulo the table's size). */
    uint32_t retold, retold_all, retold_file[RETOLD_FILES];
    struct kept_promise kept[PROMISES_MAX]; /* promises used up by this turn's starts */
    size_t n_kept;
    char *promised; /* owned; promises_kept.c: as last committed; NULL: not loaded yet */
};

int64_t turn_now_us(const struct turn *t); /* boot clock */
void turn_set_timer(const struct turn *t, enum turn_timer which, int64_t ms);
void turn_stop_timer(const struct turn *t, enum turn_timer which);

/* Makes the plan and carries it out. False: no plan can be made now. Afterwards each waiting
 * line's head has its reason. */
bool turn_plan(struct turn *t);
/* Reports why the heads of lines that the plan did not start wait, in queue order, and clears
 * that list. */
void turn_tell_why_waiting(struct turn *t);

/* Passes the changes noted since the last call to every part. */
void turn_events_read(struct turn *t);
/* Stores the events and makes the line of each that followers receive. */
void turn_events_write(struct turn *t);
/* After a failed commit: drops the events of what was taken back; the others stay for the next
 * successful commit. */
void turn_events_keep_true(struct turn *t);
void turn_events_publish(struct turn *t); /* and drops them */

/* Calls this step of every part that has it, in the order of the table. */
#define PARTS(t, step, ...)                                                                    \
    do {                                                                                       \
        for (const struct turn_part *part_ = (t)->parts; part_ < (t)->parts + (t)->n_parts;    \
             part_++)                                                                          \
            if (part_->step)                                                                   \
                part_->step(part_->arg, ##__VA_ARGS__);                                        \
    } while (0)

#endif
