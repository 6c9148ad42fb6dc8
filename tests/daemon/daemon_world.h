/* A daemon without processes, sockets or a clock: the state, the planner, the turn and a store
 * on a disk of its own, driven in virtual time. In the places of attempts, clients and the rest
 * there is one part that writes down what the turn has it do. */
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
#define RETRY_US INT64_C(2000000) /* the turn's, after a failed commit */

struct store;

/* Where a daemon may die in a turn. */
enum death { DEATH_NONE, DEATH_BEFORE_COMMIT, DEATH_AFTER_COMMIT, DEATH_AFTER_ANSWERS };

struct world {
    struct state s;
    struct past past;
    struct around around;
    struct limits limits;
    struct plan_rules rules;
    struct store *store;
    char dir[64]; /* of the store */
    struct virtual_host host;
    struct turn *turn;
    int n_cards, uuids[GPU_MAX]; /* "GPU-N"; another daemon finds them so */
    int64_t now_us;              /* the wall clock, ahead of the boot clock by: */
    int64_t clock_ahead_us;
    uint32_t launched[64]; /* the jobs of starts that are durable, in order */
    int n_launched;
    int n_plans_due;  /* changes that asked for a turn with a plan */
    size_t n_told;    /* so many of the changes there are in: */
    char told[4096];  /* the changes that were read: "entered 1, started 1, " */
    char steps[8192]; /* what the turn had its part do: "settle, read entered 1, " */

    /* What happens in the next turns. */
    bool plans_not;                        /* now is no time for a plan */
    uint32_t cannot_prepare;               /* this job's start */
    uint32_t cannot_launch;                /* this job */
    bool notes_at_write, notes_at_publish; /* a change of the newest job: held, released */
    enum death death;
    int dies_at, n_steps; /* the daemon dies behind that step; 0: behind none */
    jmp_buf died;
};

struct world *world_open(int n_cards);
void world_close(struct world *w);

/* A job of this user's that wants so many cards, not yet submitted. */
struct job *world_job(const struct world *w, uint32_t uid, int gpus);
/* It is submitted, with what it waits for. Its id. */
uint32_t world_submit(struct world *w, struct job *job);
struct job *world_get(const struct world *w, uint32_t id); /* NULL: not in the table */

/* One turn, whose commit succeeds. */
void world_turn(struct world *w);
void world_turn_without_plan(struct world *w);
/* One while the disk takes nothing; until the next call that passes time no plan is made. */
void world_turn_on_full_disk(struct world *w);
/* One in which the daemon dies; only world_crash may follow, behind looks at its memory. */
void world_turn_dies(struct world *w, enum death death);
/* The same behind the step of this number, from 1 on. False: there are not as many. */
bool world_turn_dies_at(struct world *w, int step);
/* Time passes: the turn's timers that are over by then have their say. */
void world_pass(struct world *w, int64_t us);

/* A shepherd's words; then the cards are looked at, and have no process of anybody's. */
void world_runs(struct world *w, uint32_t id);
void world_ends(struct world *w, uint32_t id, int code);
void world_is_lost(struct world *w, uint32_t id, enum outcome outcome);
void world_sample(struct world *w);

/* The daemon is killed, and another one takes up what is on the disk. */
void world_crash(struct world *w);
/* The same in two: between them only the disk is left. */
void world_dies(struct world *w);
void world_starts(struct world *w);

/* The final state of a job as the disk has it; JOB_PENDING: it has not ended. */
enum job_state world_stored(struct world *w, uint32_t id);

/* So many events of this kind are stored. */
int world_n_events(struct world *w, const char *kind);

/* The steps of turns since the last time, in their order. */
#define assert_steps(w, words)                                                                 \
    do {                                                                                       \
        assert_string_equal((w)->steps, words);                                                \
        (w)->steps[0] = '\0';                                                                  \
    } while (0)

/* Since the last time. Their order counts. */
#define assert_told(w, words)                                                                  \
    do {                                                                                       \
        world_read(w);                                                                         \
        assert_string_equal((w)->told, words);                                                 \
        (w)->told[0] = '\0';                                                                   \
    } while (0)
void world_read(struct world *w);

#endif
