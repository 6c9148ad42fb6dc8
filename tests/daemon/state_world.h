/* A daemon without processes, sockets or a clock: the state, the planner and a store on a disk
 * of its own, driven in virtual time. What the turn does it does in the same order: facts,
 * plan, commit, and only then launches and good-byes. */
#ifndef TESTS_DAEMON_STATE_WORLD_H
#define TESTS_DAEMON_STATE_WORLD_H

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

#define CARD_MIB 24576
#define ALICE    1000
#define BOB      1001

struct store;

struct world {
    struct state s;
    struct past past;
    struct around around;
    struct limits limits;
    struct plan_rules rules;
    struct store *store;
    char dir[64]; /* of the store */
    int n_cards;
    int64_t now_us;
    uint32_t launched[64]; /* the jobs of starts that are durable, in order */
    int n_launched;
    int n_plans_due; /* changes that asked for a turn with a plan */
    char told[4096]; /* the changes that were read: "entered 1, started 1, " */
};

struct world *world_open(int n_cards);
void world_close(struct world *w);

/* A job of this user's that wants so many cards, not yet submitted. */
struct job *world_job(const struct world *w, uint32_t uid, int gpus);
/* It is submitted, with what it waits for. Its id. */
uint32_t world_submit(struct world *w, struct job *job);
struct job *world_get(const struct world *w, uint32_t id); /* NULL: not in the table */

/* One turn: plan, commit, launches. */
void world_turn(struct world *w);
/* The first half of one: planned, and nothing written. */
void world_plan(struct world *w);
/* The second; 0, or -1 when the disk takes nothing: then it has been taken back. */
int world_commit(struct world *w, bool disk_is_full);

/* A shepherd's words; then the cards are looked at, and have no process of anybody's. */
void world_runs(struct world *w, uint32_t id);
void world_ends(struct world *w, uint32_t id, int code);
void world_is_lost(struct world *w, uint32_t id, enum outcome outcome);
void world_sample(struct world *w);

/* The daemon is killed, and another one takes up what is on the disk. */
void world_crash(struct world *w);

/* The final state of a job as the disk has it; JOB_PENDING: it has not ended. */
enum job_state world_stored(struct world *w, uint32_t id);

/* Since the last time. Their order counts. */
#define assert_told(w, words)                                                                  \
    do {                                                                                       \
        world_read(w);                                                                         \
        assert_string_equal((w)->told, words);                                                 \
        (w)->told[0] = '\0';                                                                   \
    } while (0)
void world_read(struct world *w);

#endif
