/* A daemon without processes, sockets or a clock: the state, the planner, the turn and a store
 * on a disk of its own, driven in virtual time. One test part replaces attempts, clients and
 * the daemon's other parts, and records the calls that the turn makes to it. */
#ifndef TESTS_DAEMON_DAEMON_WORLD_H
#define TESTS_DAEMON_DAEMON_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "core/ledger/ledger.h"
#include "core/plan/fair.h"
#include "core/plan/limits.h"
#include "core/plan/plan.h"
#include "core/queue/queue.h"
#include "daemon/state/array_turns.h"
#include "daemon/state/depend_turns.h"
#include "daemon/state/job_facts.h"
#include "daemon/state/starts.h"
#include "daemon/state/state.h"
#include "daemon/turn/turn.h"
#include "virtual_host.h"

#define CARD_MIB 24576
#define ALICE    1000
#define BOB      1001
#define RETRY_US INT64_C(2000000) /* the turn's retry delay after a failed commit */

struct store;

/* The point of a turn at which the daemon dies. */
enum death { DEATH_NONE, DEATH_BEFORE_COMMIT, DEATH_AFTER_COMMIT, DEATH_AFTER_ANSWERS };

struct world {
    struct state s;
    struct past past;
    struct around around;
    struct limits limits;
    struct plan_rules rules;
    struct store *store;
    char dir[64]; /* the store's folder */
    struct virtual_host host;
    struct turn *turn;
    int n_cards, uuids[GPU_MAX]; /* uuids: "GPU-N"; what the next daemon finds */
    int64_t now_us;              /* wall clock, ahead of the boot clock by: */
    int64_t clock_ahead_us;
    uint32_t launched[64]; /* jobs whose start is durable, in order */
    int n_launched;
    int n_plans_due;  /* changes that asked for a turn with a plan */
    size_t n_told;    /* number of changes already in `told` */
    char told[4096];  /* the changes read: "entered 1, started 1, " */
    char steps[8192]; /* calls of the turn to the part: "settle, read entered 1, " */

    /* What happens in the next turns. */
    bool plans_not;                        /* no plan may be made now */
    uint32_t cannot_prepare;               /* preparing this job's start fails */
    uint32_t cannot_launch;                /* launching this job fails */
    bool notes_at_write, notes_at_publish; /* change the newest job then: hold, release */
    enum death death;
    int dies_at, n_steps; /* the daemon dies after that step; 0: it does not */
    jmp_buf died;
};

struct world *world_open(int n_cards);
void world_close(struct world *w);

/* Makes a job of this user that wants so many GPUs; it is not submitted yet. */
struct job *world_job(const struct world *w, uint32_t uid, int gpus);
/* Submits the job with its dependencies. Returns its id. */
uint32_t world_submit(struct world *w, struct job *job);
struct job *world_get(const struct world *w, uint32_t id); /* NULL: not in the table */

/* One turn, whose commit succeeds. */
void world_turn(struct world *w);
void world_turn_without_plan(struct world *w);
/* A turn while the disk is full; no plan is made until the next call that passes time. */
void world_turn_on_full_disk(struct world *w);
/* A turn in which the daemon dies; only world_crash may follow, later code would use its
 * memory. */
void world_turn_dies(struct world *w, enum death death);
/* The same after the step of this number, from 1. False: the turn has fewer steps. */
bool world_turn_dies_at(struct world *w, int step);
/* Lets time pass: the turn's timers that expire by then fire. */
void world_pass(struct world *w, int64_t us);

/* Reports of a supervisor; then a sample of the GPUs that shows no process at all. */
void world_runs(struct world *w, uint32_t id);
void world_ends(struct world *w, uint32_t id, int code);
void world_is_lost(struct world *w, uint32_t id, enum outcome outcome);
void world_sample(struct world *w);

/* Kills the daemon and starts another one from what is on disk. */
void world_crash(struct world *w);
/* The same in two calls: between them only the disk remains. */
void world_dies(struct world *w);
void world_starts(struct world *w);

/* The final state of a job as stored on disk; JOB_PENDING: the job has not ended. */
enum job_state world_stored(struct world *w, uint32_t id);

/* The number of stored events of this kind. */
int world_n_events(struct world *w, const char *kind);

/* The turns' steps since the last check, in order. */
#define assert_steps(w, words)                                                                 \
    do {                                                                                       \
        assert_string_equal((w)->steps, words);                                                \
        (w)->steps[0] = '\0';                                                                  \
    } while (0)

/* The changes told since the last check, in order. */
#define assert_told(w, words)                                                                  \
    do {                                                                                       \
        world_read(w);                                                                         \
        assert_string_equal((w)->told, words);                                                 \
        (w)->told[0] = '\0';                                                                   \
    } while (0)
void world_read(struct world *w);

#endif
