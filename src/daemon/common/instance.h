/* What nearly every part of the daemon needs: the instance's places, its settings, and the
 * state of its jobs. Owned and filled in by berthd.c; the parts borrow it. Data of a single
 * part, or what it needs from another part, is not here. */
#ifndef DAEMON_COMMON_INSTANCE_H
#define DAEMON_COMMON_INSTANCE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/jsonw.h"
#include "daemon/common/clock_watch.h"
#include "daemon/common/shared_folder.h"
#include "spec/config.h"
#include "wire/places.h"

struct ledger;
struct planner;
struct queue;
struct state;
struct store;
struct turn;

struct instance {
    uv_loop_t *loop;
    struct config config;
    struct places places;
    char name[20];               /* random, in the store: part of every attempt's mark */
    int jobs_fd;                 /* folder of local attempts' folders */
    struct shared_folder shared; /* and of those on Slurm */
    int64_t started_us;          /* wall clock */
    int64_t started_boot_us;
    struct clock_watch clock;

    struct store *store;
    struct state *state; /* state of the jobs; the next three are parts of it: */
    struct queue *queue;
    struct ledger *ledger;
    struct planner *planner;

    struct turn *turn;  /* turn_due.h */
    struct jsonw event; /* event_say.c: the event being written */

    bool ready;    /* recovery is done: jobs may start */
    bool stopping; /* no job starts any more; exits when `stop_when_empty` allows */
    bool stop_when_empty;
    bool stop_asked; /* by a user: clients must not wait for the next daemon */
    bool leave_when_idle;
    bool leaving;
};

#endif
