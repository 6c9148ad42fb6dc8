/* Shared by the planner's files: plan.c (the pass), plan_depth.c (which lines it examines),
 * plan_order.c (whose turn it is), plan_arrays.c (bound on an array's running tasks),
 * plan_users.c (fair share and limits), plan_ends.c (when jobs are expected to end), reserve.c
 * (room kept for a blocked job), firm.c (promised starts), preempt.c (preemption). Only files
 * of this folder include it. */
#ifndef CORE_PLAN_PLAN_PRIV_H
#define CORE_PLAN_PLAN_PRIV_H

#include "core/ledger/ledger.h"
#include "core/place/place.h"
#include "core/plan/balance.h"
#include "core/plan/limits.h"
#include "core/plan/plan.h"
#include "core/queue/array.h"
#include "core/queue/job.h"
#include "core/queue/queue.h"

#define NEVER INT64_MAX

struct job_list {
    uint32_t *ids;
    size_t n, cap;
};

struct planner {
    struct plan_rules rules;
    bool has_new_rules; /* since the last pass */
    struct fair *fair;  /* borrowed; NULL: use is not counted */
    struct reservation reserved;
    struct promise promises[PROMISES_MAX]; /* by time */
    size_t n_promises;
    bool has_ended; /* a job, or anything else that was in a promised job's way */
    uint64_t up;    /* usable GPUs at the last pass */
    struct balance *balance;
    uint64_t plans;       /* number of the current plan, counted from 1 */
    uint64_t anew_since;  /* the first plan of the current round over all lines */
    bool anew;            /* the next plan begins a new round */
    bool has_unseen;      /* the last plan did not reach all lines */
    int64_t wake_us;      /* earliest wake_us of the plans of this round */
    int64_t unlimited_us; /* when a job without a limit last waited for GPUs; 0: never */
    /* Jobs whose lines the next plan examines wherever they stand, because it would otherwise
     * undo what the last plan did for them: victims are leaving for them, or they keep what a
     * limit leaves. */
    struct job_list watched;
};

/* What a job holds at this moment. */
struct have {
    int64_t running, gpus, vram_mib;
};

/* What a limit leaves is kept for a job that the limit has held back for longer than the
 * patience: a later job starts only if both jobs together are within the limit. */
struct kept {
    uint32_t job;      /* 0: nothing is kept */
    struct have needs; /* what the job will have */
};

struct user {
    bool taken; /* the slot is in use */
    uint32_t uid;
    double weight;
    double used; /* GPU-seconds over weight; grows with each start of this pass */
    const struct limit *limit;
    bool barred; /* no job of this user may start now */
    struct kept kept;
    struct have have;
};

/* A hash table by uid, sized in advance so that pointers into it stay valid. */
struct users {
    struct user *slots;
    size_t n_slots; /* a power of two */
    struct have all;
    struct kept kept;           /* for the limit on all users together */
    int32_t lowest_preemptible; /* priority among running jobs; INT32_MAX: there are none */
};

/* What a job's turn depends on, besides its user's recent use. */
struct turn {
    int64_t priority; /* as requested, plus what it gained by waiting */
    double ratio;     /* PLAN_SHORT */
    int64_t span_ms;  /* PLAN_LONGEST; so are the three below */
    int32_t gpus, vram_mib;
    bool whole;
};

/* The first job of a line that this pass has not finished with. */
struct front {
    struct job *job;
    struct user *user;
    /* Copied from the job: fronts are compared far more often than jobs stay in the cache. */
    uint64_t order;
    uint32_t id;
    struct turn turn;
    int64_t used;               /* the user's use when the front was put into the heap */
    struct balance_key balance; /* PLAN_BALANCED */
    int32_t range, task;        /* an array: its next task, and which pending range it is in */
    struct front_group *group;  /* fronts whose relative order is fixed; NULL: none */
};

/* Fronts of one jobs file, under `balanced`: a heap in the order of the file's lines. Only its
 * first front is in the heap of all fronts. */
struct front_group {
    struct front **members; /* a slice of planning.members */
    size_t n;
};

/* A job that holds resources; sorted by when it is expected to leave. */
struct run {
    uint32_t id;
    const struct job *job; /* NULL: started in this pass */
    int64_t end_us;        /* expected end, after now; NEVER: unknown */
    int64_t due_us;        /* the same as planned at the start: may be in the past */
    int64_t started_us;
    int64_t over_us; /* promise_over_us; NEVER while it is suspended */
    bool firm;       /* a time limit guarantees that it has ended by end_us */
    bool leaving;    /* it was asked to stop, or has ended and its memory is not back yet */
};

/* Room kept for a blocked job. Later jobs may start if they end in time, or where there is
 * room beside the blocked job. */
struct keep {
    struct job *job; /* NULL: nothing is kept */
    int64_t at_us;   /* its expected start; NEVER: unknown */
    bool pinned;     /* to these cards; else it takes any that fit at that time */
    bool lasting;    /* fronts_are_lasting */
    uint64_t cards;
    int64_t in_time_us;   /* a job that ends by then does not delay it */
    bool limits_only;     /* only a time limit counts as that end, not an estimate */
    struct ledger *ahead; /* the ledger as of then; includes the job, if pinned */
};

/* Tasks of an array that started in this pass, split off the array just now or earlier. */
struct started {
    uint32_t array;
    int32_t n;
};

/* A line whose demand did not find enough GPUs after n_booked starts of this pass. Other lines
 * often have the same demand, and so the same answer, because kinds also differ by time
 * limit. */
struct refused_line {
    const struct kind *kind;
    uint32_t n_booked;
};
#define REFUSED_LINES 64

/* One pass. */
struct planning {
    struct planner *planner;
    struct queue *q;
    struct ledger *l;
    int64_t now_us;
    uint32_t *next_id;
    struct plan *p;
    struct users users;
    double mean_used;    /* mean user_used at the start of the pass; PLAN_BALANCED */
    struct kind **lines; /* examined by this pass */
    size_t n_lines;
    struct front *front_list; /* owned; one per line */
    struct front **fronts;    /* heap of pointers into front_list; the next turn is on top */
    size_t n_fronts;
    struct front_group *groups; /* owned, with members; NULL: there are none */
    struct front **members;
    int32_t top_priority; /* plan_top_priority: the highest requested by a job in line */
    size_t n_refused;
    uint32_t n_booked;                          /* starts so far in this pass */
    struct refused_line refused[REFUSED_LINES]; /* by the demand's hash */
    struct job_list watched;                    /* watched jobs of the last plan */
    struct run *runs;                           /* made on first use; sorted by end */
    size_t n_runs, cap_runs;
    bool has_runs;
    struct started *started; /* for arrays with a bound on running tasks */
    size_t n_started, cap_started;
    /* Ledgers of the future for reserve.c, made on first use, NULL until then: after all jobs
     * with a known end have ended, and with no job of ours running. */
    struct ledger *ahead_known, *ahead_all;
    struct keep keep;
    /* For firm.c: the ledger at the time of each promise, with the promised jobs booked. */
    struct ledger *rooms[PROMISES_MAX];
    bool has_rooms;
    bool has_kept_one;                  /* a promised job has started */
    int n_promise_tries;                /* jobs that this pass tried to promise a start */
    bool has_unpromised;                /* one got no promise, so no later job gets one */
    int32_t limited_priority;           /* the highest among jobs held back by a limit */
    uint32_t out_of_turn[PROMISES_MAX]; /* promised jobs that started although others were
                                           ahead in their lines; of an array, one task */
    size_t n_out_of_turn;
    uint64_t closed; /* GPUs that victims leave for closed_for; later jobs may not have them */
    uint32_t closed_for;
};

/* plan_depth.c */
void lines_choose(struct planning *pl);
/* Makes the next plan examine this job's line, wherever it stands. */
void lines_watch(struct planner *p, uint32_t job);
/* Whether the last plan called lines_watch for a job of this job's line. */
bool lines_are_watched(const struct planning *pl, const struct job *job);

/* plan_order.c */
void fronts_fill(struct planning *pl);
void fronts_free(struct planning *pl);
struct front *fronts_first(struct planning *pl); /* NULL: no front is left */
/* Continues the first line with this job; NULL: the line is finished for this pass. */
void fronts_next(struct planning *pl, struct job *job);
int32_t plan_top_priority(const struct queue *q); /* INT32_MIN: no job is in line */
struct turn turn_of(const struct planning *pl, const struct job *job);
/* Below 0: a goes before b, given equal priority and use. */
int turn_compare(enum plan_order order, const struct turn *a, const struct turn *b);
/* The same for PLAN_BALANCED, which weighs recent use too. mean_used: see fronts_mean_used. */
int turn_compare_balanced(double mean_used, int64_t used_a, const struct balance_key *a,
                          int64_t used_b, const struct balance_key *b);
double fronts_mean_used(const struct users *u);
bool fronts_reserves(const struct planning *pl, const struct front *f);
/* Whether the job, once it is its turn, keeps the turn against jobs that come later, unless
 * those have a higher priority or, under fair share, have used less. */
bool fronts_are_lasting(const struct planning *pl, const struct front *f);

/* plan_arrays.c */
/* The array whose bound on running tasks applies to this job; NULL: none. */
const struct job *plan_array_bound(const struct planning *pl, const struct job *job);
/* Whether the array's running tasks, with those started in this pass, have reached the
 * bound. */
bool plan_array_is_full(struct planning *pl, const struct job *job);
void plan_array_starts(struct planning *pl, const struct job *job); /* in this pass */

/* plan.c: whether the reason depends on GPUs alone: neither on reservations nor on the host */
bool plan_is_about_cards(enum reason reason);

/* plan_users.c */
void plan_users_begin(struct planning *pl);
void plan_users_free(struct planning *pl);
struct user *plan_users_get(struct planning *pl, uint32_t uid);
/* The user's use in whole 1/1000 GPU-seconds: smaller differences do not count. */
int64_t user_used(const struct user *u);
int64_t used_in_steps(double used); /* used: struct user's */
/* How much starting this demand adds to the user's use, on whichever GPUs. */
double users_cost_anywhere(const struct planning *pl, uint32_t uid, const struct demand *d);
/* Charges a start of this user at that placement. */
void plan_users_charge(struct planning *pl, struct user *u, const struct demand *d,
                       const struct placement *where);
/* Whether the user's limits allow starting this demand now; *cards: the cards on which they
 * do. Else *why. */
bool plan_users_allow(const struct planning *pl, const struct user *u, const struct demand *d,
                      uint64_t *cards, struct blocked *why);
/* The job is held back by a limit, which why names. Once its patience has run out, what the
 * limit leaves is kept for it. */
void plan_users_keep(struct planning *pl, struct user *u, struct job *job,
                     const struct blocked *why);
/* The same for a job that one of its user's limits held back earlier and that now waits for
 * room. Call it after the job itself was tried, as what is kept would hold back that job
 * too. */
void plan_users_keep_on(struct planning *pl, struct user *u, const struct job *job);

/* plan_ends.c */
/* When a run begun at from_us has certainly returned its room, including the time to kill it;
 * NEVER: it has no time limit. */
int64_t promise_over_us(const struct planning *pl, const struct job *job, int64_t from_us);
void runs_make(struct planning *pl); /* no-op if already made */
void runs_started(struct planning *pl, uint32_t id, const struct job *job);
void runs_sort(struct planning *pl);
void runs_free(struct planning *pl);
const struct ledger *ahead_all(struct planning *pl);

/* reserve.c */
/* Keeps room, if possible, for this job, which does not fit now and whose turn it is. */
void reserve_for(struct planning *pl, struct job *job);
/* Places the job in l beside reserved and promised room. With an id, the room that it takes
 * beside the reserved job is booked; 0: only asks. */
bool reserve_place(struct planning *pl, const struct job *job, uint32_t id,
                   const struct ledger *l, uint64_t cards, struct placement *out,
                   struct blocked *why);
void reserve_free(struct planning *pl);
/* Whether the reserved job still fits at its time if this job is on these cards then. */
bool reserve_stands_with(const struct planning *pl, const struct job *job, uint64_t cards);

/* firm_room.c */
/* Allowance of a promise on top of time limits: a start may take this long from its decision
 * until the command runs and its limit begins to count. */
#define PROMISE_LAUNCH_US INT64_C(10000000)
/* promise_over_us of a job that is yet to start. */
int64_t promise_over_if_started_us(const struct planning *pl, const struct job *job,
                                   int64_t from_us);
/* No-op if already made. Breaks promises for which there is no room. */
void promise_rooms_make(struct planning *pl);
void promise_rooms_free(struct planning *pl);
void promise_drop(struct planning *pl, size_t i);
void promise_break(struct planning *pl, size_t i, enum broken_why why, uint32_t by);
void promise_break_for_cause(struct planning *pl, size_t i); /* which it determines */
void promise_book(struct ledger *l, const struct job *job, uint64_t cards);
bool promise_unbook(struct ledger *l, const struct job *job); /* false: it was not booked */
/* Whether, with this job on these cards, the i-th promised job keeps its room, and this job
 * has room beside all that are booked at that time. */
bool promise_stands_with(struct planning *pl, size_t i, const struct job *job, uint64_t cards);

/* firm.c */
/* At the start of the pass: drops void promises and breaks those that cannot be kept. */
void promises_begin(struct planning *pl);
/* At the end of the pass: breaks promises that fell due without the job starting. */
void promises_end(struct planning *pl);
/* Whether the job's promised start is due now. */
bool promise_is_due(const struct planning *pl, const struct job *job);
/* Whether all promised jobs keep their room if this job starts there; else *why. */
bool promises_allow(struct planning *pl, const struct job *job, const struct placement *where,
                    struct blocked *why);
/* The cards of the set that the job can have without taking promised room. */
uint64_t promises_leave(struct planning *pl, const struct job *job, uint64_t cards);
/* Cards promised to other jobs for a time at which this job would still run. */
uint64_t promises_close(const struct planning *pl, const struct job *job);
/* The job starts, itself or as its task `id`. Call it before booking the start. */
void promises_started(struct planning *pl, const struct job *job, uint32_t id,
                      const struct placement *where);
/* Room is now kept for a job without a promise: breaks promises to jobs of lower priority that
 * lose their room to it. */
void promises_give_way(struct planning *pl);
void promise_insert(struct planner *p, const struct promise *x);

/* firm_new.c */
#define PROMISE_HORIZON_MS (INT64_C(3600) * 1000)
/* Whether nothing but running jobs can keep this job from starting. */
bool promise_is_possible(const struct planning *pl, const struct job *job);
/* Promises the job its start, if one is certain and near enough. If not, later jobs get no
 * promise either, because they might take what this job waits for. */
void promise_to(struct planning *pl, const struct job *job);
/* Moves promises to earlier times where possible, after a job ended before its limit or a
 * promised job started early. */
void promises_move_up(struct planning *pl);

/* preempt.c: asks running jobs to make way, if that helps this job, and keeps the room that
 * they leave for it. */
void preempt_for(struct planning *pl, const struct user *u, struct job *job);

/* plan_parts.c */
/* When the patience of a job that has waited since since_us runs out; NEVER: it does not. */
int64_t patience_ends_us(const struct planning *pl, int64_t since_us);
/* Makes the next pass happen at that time at the latest. */
void wake_at(struct planning *pl, int64_t at_us);
/* The demand for a single one of the job's GPUs, on any card. */
struct demand plan_one_card(const struct demand *d);
struct decision *plan_add(struct plan *p, enum decision_type type, uint32_t job);

static inline uint64_t
cards_of_placement(const struct placement *where)
{
    uint64_t cards = 0;
    for (int i = 0; i < where->n; i++)
        cards |= UINT64_C(1) << where->gpus[i];
    return cards;
}

#endif
