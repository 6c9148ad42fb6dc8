/* One world of the deterministic simulation: the daemon's state (src/daemon/state) with the
 * core below it, the turn and the store behind it, and beside them what is really on the cards.
 * A history is a seed and a list of step numbers; what a step does follows from both and from
 * the state, so steps can be left out and the rest still means something: that is how a failing
 * history is made small (main.c).
 *
 *   ask.c      people: submissions of every kind, edits, cancels, holds
 *   cards.c    the machine: processes, other programs, samples, ends, GPUs lost and back
 *   turn.c     what the daemon's turn does to the world, and what must be true of it
 *   restart.c  the daemon dies; another one starts from the store
 *   world.c    queries of the state, and the invariants after each step */
#ifndef TESTS_CHAOS_WORLD_H
#define TESTS_CHAOS_WORLD_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../daemon/virtual_host.h"
#include "core/ledger/ledger.h"
#include "core/plan/fair.h"
#include "core/plan/limits.h"
#include "core/plan/plan.h"
#include "core/queue/job.h"
#include "core/queue/queue.h"
#include "daemon/state/state.h"

#define CARDS_MAX 8
#define STRANGERS 3
#define USERS     3
#define MARGIN    512
#define IDLE      1024
#define CPUS      24
#define NODES     3 /* NUMA nodes, each with an equal part of CPUS and CARDS */
#define CC_OF(i)  ((i) % 4 == 3 ? 90 : 80) /* a card's compute capability */
#define MEM_MIB   100000
#define SECOND_US INT64_C(1000000)
#define LIVE_MAX  150 /* jobs alive at once */

/* What a running job really does. */
struct process {
    uint32_t job;
    uint8_t n, gpus[CARDS_MAX];
    int32_t mib[CARDS_MAX];     /* on each card, in truth */
    int32_t sampled[CARDS_MAX]; /* as last sampled */
    int32_t peak[CARDS_MAX];    /* the largest of those */
    int64_t started_us, ends_us;
    bool gone;
};

struct other {
    int32_t pid; /* 0: none */
    int32_t mib, peak;
};

/* What the test remembers of every job ever created, indexed by id. */
struct known {
    uint8_t ended;       /* number of times */
    int64_t promised_us; /* the first promise made to it; 0: none */
};

struct store;

struct world {
    uint64_t seed, rng;
    long step;
    bool calm;    /* no surprises happen, so promises must be kept */
    bool verbose; /* says what each step does */
    int n_cards;
    int32_t total_mib[CARDS_MAX];
    struct state s;
    struct past written; /* what the store should contain */
    struct around around;
    struct queue *q; /* owned by state, as are the next ones */
    struct ledger *l;
    struct fair *fair;
    struct planner *planner;
    struct plan_rules rules;
    struct limits limits;
    struct store *store;
    char *dir; /* the store's folder */
    struct virtual_host host;
    struct turn *turn;
    bool plans_not; /* the next turn makes no plan */
    bool dies;      /* the next turn dies before its commit */
    jmp_buf died;
    struct ledger *replay; /* copy of the ledger from before this turn's plan */
    bool has_planned, some_infeasible, some_unprepared;
    size_t n_answers;
    int64_t now_us;
    uint32_t next_id;   /* next job id */
    struct known *past; /* indexed by job id */
    size_t cap_past;
    size_t n_accepted, n_ended;
    size_t n_promised; /* promises that were kept */
    struct process *procs;
    size_t n_procs, cap_procs;
    struct other others[CARDS_MAX][STRANGERS];
    int32_t next_pid;
    int64_t used[CARDS_MAX];        /* as last sampled */
    int64_t other_peaks[CARDS_MAX]; /* sum of peaks, as last sampled */
    int32_t util[CARDS_MAX];
    enum gpu_state state[CARDS_MAX];
};

struct world *world_new(uint64_t seed, const char *dir, bool verbose);
void world_free(struct world *w);
void world_step(struct world *w, long number);
void world_drain(struct world *w); /* no new work: everything left must end */

/* Report a broken invariant with its text and abort the process. */
void world_fail(const struct world *w, const char *file, int line, const char *what)
    __attribute__((noreturn));
#define CHECK(w, cond)                                                                         \
    do {                                                                                       \
        if (!(cond))                                                                           \
            world_fail(w, __FILE__, __LINE__, #cond);                                          \
    } while (0)
#define CHECK_NULL(w, words)                                                                   \
    do {                                                                                       \
        const char *wrong_ = (words);                                                          \
        if (wrong_)                                                                            \
            world_fail(w, __FILE__, __LINE__, wrong_);                                         \
    } while (0)

void world_say(const struct world *w, const char *form, ...)
    __attribute__((format(printf, 2, 3)));

uint64_t draw(struct world *w, uint64_t below);
bool chance(struct world *w, uint64_t per_cent);

/* world.c: make the state of a starting daemon out of these parts; a job enters it. */
void world_make_state(struct world *w);
struct known *past_of(struct world *w, uint32_t id);
void world_add(struct world *w, struct job *job);
struct job *world_any_job(struct world *w);
struct process *world_process(struct world *w, uint32_t job);

/* ask.c */
void ask_submit(struct world *w);
void ask_array(struct world *w);
void ask_change(struct world *w);
void ask_event(struct world *w);

/* cards.c */
struct ledger *cards_ledger(struct world *w); /* a new one, as the machine stands */
void cards_stir_processes(struct world *w);
void cards_stir_strangers(struct world *w);
void cards_end_one(struct world *w);
void cards_end_due(struct world *w); /* time limits, and in a calm world ordinary ends too */
void cards_clear_ended(struct world *w);
void cards_sample(struct world *w);
void cards_change(struct world *w);
void cards_all_up(struct world *w);
int64_t cards_true_external(const struct world *w, const struct ledger *l, int card);
int64_t cards_true_budget(struct world *w, const struct hold *h, int card);
int64_t cards_next_end(const struct world *w); /* INT64_MAX: none known */

/* turn.c: create the turn once state and store exist; run one without or with a plan. */
void turns_make(struct world *w);
void turns_commit(struct world *w);
void turns_plan(struct world *w, bool crash);

/* restart.c */
void restart_daemon(struct world *w, bool committed);

#endif
