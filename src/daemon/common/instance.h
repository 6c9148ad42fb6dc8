/* What nearly every part of the daemon needs: where this instance is, what its settings say,
 * and what is true of its jobs. Owned and filled in by berthd.c; the parts borrow it. What one
 * part keeps for itself, or needs from another part, is not here. */
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
    char name[20];               /* random, kept in the store: part of every attempt's mark */
    int jobs_fd;                 /* the folder with the folders of attempts on this machine */
    struct shared_folder shared; /* and where those on Slurm are */
    int64_t started_us;          /* wall clock */
    int64_t started_boot_us;
    struct clock_watch clock;

    struct store *store;
    struct state *state; /* what is true of the jobs; these are parts of it: */
    struct queue *queue;
    struct ledger *ledger;
    struct planner *planner;

    struct turn *turn;  /* turn_due.h */
    struct jsonw event; /* event_say.c: the one that is being written */

    bool ready;    /* recovery is over: jobs may start */
    bool stopping; /* no new work is started; leaves when `stop_when_empty` allows */
    bool stop_when_empty;
    bool stop_asked; /* by a user: no client is to wait for the next daemon */
    bool leave_when_idle;
    bool leaving;
};

#endif
