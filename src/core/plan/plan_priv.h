/* What the files of the planner share: plan.c (the pass), plan_depth.c (which lines are looked
 * at), plan_order.c (whose turn it is), plan_arrays.c (how many tasks of an array run),
 * plan_users.c (fair share and limits), plan_ends.c (when jobs are expected to leave),
 * reserve.c (room kept for a blocked job), firm.c (starts that hold), preempt.c (jobs that make
 * way). No other file includes this. */
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
    bool has_ended; /* a job, or something else that was in the way of a promised one */
    uint64_t up;    /* cards, at the last pass */
    struct balance *balance;
    uint64_t plans;       /* made so far; the number of the one that is being made */
    uint64_t anew_since;  /* the first that looked at lines anew */
    bool anew;            /* the next one does */
    bool has_unseen;      /* the last did not come to all */
    int64_t wake_us;      /* the earliest of those that have looked at parts since then */
    int64_t unlimited_us; /* when the last job without a limit waited for GPUs; 0: none did */
    /* Jobs whose lines the next plan looks at wherever they stand, as what the last did for
     * them would be undone otherwise: victims leave for them, or what a limit leaves is
     * kept. */
    struct job_list watched;
};

/* What a job holds at this moment. */
struct have {
    int64_t running, gpus, vram_mib;
};

/* What a limit leaves is kept for a job that it has held back for longer than the patience: a
 * later job starts only if both of them are within the limit. */
struct kept {
    uint32_t job;      /* 0: for none */
    struct have needs; /* what the job will have */
};

struct user {
    bool taken; /* this slot is */
    uint32_t uid;
    double weight;
    double used; /* GPU-seconds over weight; moves up with each start of this pass */
    const struct limit *limit;
    bool barred; /* nothing of the user's may start now */
    struct kept kept;
    struct have have;
};

/* A table by uid, large enough from the start, so that pointers into it stay. */
struct users {
    struct user *slots;
    size_t n_slots; /* a power of two */
    struct have all;
    struct kept kept;           /* of what all may have */
    int32_t lowest_preemptible; /* priority among those that run; INT32_MAX: there are none */
};

/* What a job's turn depends on, beside its user's use. */
struct turn {
    int64_t priority; /* as asked, and what it has gained by waiting */
    double ratio;     /* PLAN_SHORT */
    int64_t span_ms;  /* PLAN_LONGEST; and what it takes */
    int32_t gpus, vram_mib;
    bool whole;
};

/* The front of a line that is still in play. */
struct front {
    struct job *job;
    struct user *user;
    /* The job's, here because fronts are compared more often than the cache holds jobs. */
    uint64_t order;
    uint32_t id;
    struct turn turn;
    int64_t used;               /* of the user, when the front was put in its place */
    struct balance_key balance; /* PLAN_BALANCED */
    int32_t range, task;        /* an array: its next task, in which range of those pending */
    struct front_group *group;  /* with others of which it keeps the order; NULL: none */
};

/* Fronts of one jobs file, under `balanced`: a heap of them in the order of its lines. Only the
 * first is in the heap of all fronts. */
struct front_group {
    struct front **members; /* a part of planning.members */
    size_t n;
};

/* A job that holds something, by the time at which it is expected to leave. */
struct run {
    uint32_t id;
    const struct job *job; /* NULL: started in this pass */
    int64_t end_us;        /* when it leaves, after now; NEVER: not known */
    int64_t due_us;        /* the same, had the clock not been looked at since it started */
    int64_t started_us;
    int64_t over_us; /* promise_over_us; NEVER while it is suspended */
    bool firm;       /* then it is over, whatever happens: a time limit sees to that */
    bool leaving;    /* it has been asked to go, or has gone and its memory is not back yet */
};

/* Room kept for a blocked job. Later jobs may start if they are over in time, or where there
 * is room beside the job that it is kept for. */
struct keep {
    struct job *job; /* NULL: for none */
    int64_t at_us;   /* when it is expected to start; NEVER: not known */
    bool pinned;     /* on these cards; else wherever it fits at that time */
    bool lasting;    /* fronts_are_lasting */
    uint64_t cards;
    int64_t in_time_us;   /* a job that ends until then is over in time */
    bool limits_only;     /* if a time limit, not an estimate, says so */
    struct ledger *ahead; /* as it will be then; with the job booked, when pinned */
};

/* Tasks of an array that start in this pass, whether out of it or in their own name. */
struct started {
    uint32_t array;
    int32_t n;
};

/* A line whose demand found too few cards, when so much had been booked in this pass. What
 * another line asks for is often the same, and then so is the answer: kinds differ by time
 * limit too. */
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
    double mean_used;    /* of all users, at the start, as user_used; PLAN_BALANCED */
    struct kind **lines; /* that this pass looks at */
    size_t n_lines;
    struct front *front_list; /* owned; one for each line */
    struct front **fronts;    /* of these a heap: whose turn it is on top */
    size_t n_fronts;
    struct front_group *groups; /* owned, with members; NULL: there are none */
    struct front **members;
    int32_t top_priority; /* the highest that a job in line was given: plan_top_priority */
    size_t n_refused;
    uint32_t n_booked;                          /* starts so far */
    struct refused_line refused[REFUSED_LINES]; /* by the hash of its demand */
    struct job_list watched;                    /* by the last plan */
    struct run *runs; /* made when first asked for; in order of their ends */
    size_t n_runs, cap_runs;
    bool has_runs;
    struct started *started; /* of arrays that limit how many tasks run */
    size_t n_started, cap_started;
    /* reserve.c's, made when asked for, NULL until then: when all have left whose ends are
     * known, and when nothing of ours runs. */
    struct ledger *ahead_known, *ahead_all;
    struct keep keep;
    /* firm.c's: the ledger at the time of each promise, with all that are booked then. */
    struct ledger *rooms[PROMISES_MAX];
    bool has_rooms;
    bool has_kept_one;                  /* a promised job has started */
    int n_promise_tries;                /* jobs for which one was sought in this pass */
    bool has_unpromised;                /* one had none: no later one gets any */
    int32_t limited_priority;           /* the highest of jobs held back by a limit */
    uint32_t out_of_turn[PROMISES_MAX]; /* started, not as the first of their lines;
                                           an array: one task of it */
    size_t n_out_of_turn;
    uint64_t closed; /* cards that victims leave to a job: no later one gets them */
    uint32_t closed_for;
};

/* plan_depth.c */
void lines_choose(struct planning *pl);
/* The next plan looks at this job's line, wherever it stands. */
void lines_watch(struct planner *p, uint32_t job);
/* Whether the last one saw to that. */
bool lines_are_watched(const struct planning *pl, const struct job *job);

/* plan_order.c */
void fronts_fill(struct planning *pl);
void fronts_free(struct planning *pl);
struct front *fronts_first(struct planning *pl); /* NULL: none is left */
/* The first line goes on with this job; NULL: it is out of play. */
void fronts_next(struct planning *pl, struct job *job);
int32_t plan_top_priority(const struct queue *q); /* INT32_MIN: none is in line */
struct turn turn_of(const struct planning *pl, const struct job *job);
/* Below 0: a's is before b's, where priority and use say nothing. */
int turn_compare(enum plan_order order, const struct turn *a, const struct turn *b);
/* The same for PLAN_BALANCED, which weighs use too. mean_used: fronts_mean_used. */
int turn_compare_balanced(double mean_used, int64_t used_a, const struct balance_key *a,
                          int64_t used_b, const struct balance_key *b);
double fronts_mean_used(const struct users *u);
bool fronts_reserves(const struct planning *pl, const struct front *f);
/* Whether its turn, once come, does not pass to others that come later: unless these have a
 * higher priority or, as fair share has it, have used less. */
bool fronts_are_lasting(const struct planning *pl, const struct front *f);

/* plan_arrays.c */
/* The array whose bound on running tasks holds for this job; NULL: none does. */
const struct job *plan_array_bound(const struct planning *pl, const struct job *job);
/* Whether as many tasks of its array run, or start in this pass, as are allowed. */
bool plan_array_is_full(struct planning *pl, const struct job *job);
void plan_array_starts(struct planning *pl, const struct job *job); /* a task, in this pass */

/* plan.c: whether it is about cards alone; not about what is kept there, nor about the host */
bool plan_is_about_cards(enum reason reason);

/* plan_users.c */
void plan_users_begin(struct planning *pl);
void plan_users_free(struct planning *pl);
struct user *plan_users_get(struct planning *pl, uint32_t uid);
/* What the user has used, in whole 1/1000 GPU-seconds: users who differ by less have equal
 * use. */
int64_t user_used(const struct user *u);
int64_t used_in_steps(double used); /* a user's `used` */
/* What a start of this adds to the user's use, wherever it is. */
double users_cost_anywhere(const struct planning *pl, uint32_t uid, const struct demand *d);
/* A job of this user starts there. */
void plan_users_charge(struct planning *pl, struct user *u, const struct demand *d,
                       const struct placement *where);
/* Whether the user may start one such now; the cards on which this is possible. Else *why. */
bool plan_users_allow(const struct planning *pl, const struct user *u, const struct demand *d,
                      uint64_t *cards, struct blocked *why);
/* The job is held back by a limit, which why names. Keeps what the limit leaves for it, once
 * its patience is out. */
void plan_users_keep(struct planning *pl, struct user *u, struct job *job,
                     const struct blocked *why);
/* The job was held back by a limit of its user's before and waits for room now: the same. To be
 * called behind its own look for room, as what is kept would hold it back too. */
void plan_users_keep_on(struct planning *pl, struct user *u, const struct job *job);

/* plan_ends.c */
/* When a run from then on has given back its room, its kill included; NEVER: no limit sees to
 * that. */
int64_t promise_over_us(const struct planning *pl, const struct job *job, int64_t from_us);
void runs_make(struct planning *pl); /* if they have not been */
void runs_started(struct planning *pl, uint32_t id, const struct job *job);
void runs_sort(struct planning *pl);
void runs_free(struct planning *pl);
const struct ledger *ahead_all(struct planning *pl);

/* reserve.c */
/* Keeps room for the job, which does not fit now and whose turn it is, if that can be. */
void reserve_for(struct planning *pl, struct job *job);
/* Places the job in l beside what is kept. With id its part of the room that is left beside
 * it is taken; 0: it is only asked. */
bool reserve_place(struct planning *pl, const struct job *job, uint32_t id,
                   const struct ledger *l, uint64_t cards, struct placement *out,
                   struct blocked *why);
void reserve_free(struct planning *pl);
/* Whether the one that room is kept for still has it when this job is on these cards then. */
bool reserve_stands_with(const struct planning *pl, const struct job *job, uint64_t cards);

/* firm_room.c */
/* What a promise allows for beside the limits: so long may a start take from its decision on
 * until the command runs, from which on its limit counts. */
#define PROMISE_LAUNCH_US INT64_C(10000000)
/* promise_over_us of one that is yet to start. */
int64_t promise_over_if_started_us(const struct planning *pl, const struct job *job,
                                   int64_t from_us);
/* Makes them, if they have not been. A promise without room is broken. */
void promise_rooms_make(struct planning *pl);
void promise_rooms_free(struct planning *pl);
void promise_drop(struct planning *pl, size_t i);
void promise_break(struct planning *pl, size_t i, enum broken_why why, uint32_t by);
void promise_break_for_cause(struct planning *pl, size_t i); /* which it finds */
void promise_book(struct ledger *l, const struct job *job, uint64_t cards);
bool promise_unbook(struct ledger *l, const struct job *job); /* whether it was booked */
/* Whether the i-th promised job keeps its place with this one there, and this one has room
 * beside all that is there then. */
bool promise_stands_with(struct planning *pl, size_t i, const struct job *job, uint64_t cards);

/* firm.c */
/* Before anything is decided: those that hold no more go. */
void promises_begin(struct planning *pl);
/* At the end of the pass: those whose time has come without their start are broken. */
void promises_end(struct planning *pl);
/* Whether the job was promised its start for now. */
bool promise_is_due(const struct planning *pl, const struct job *job);
/* Whether all promised jobs keep their room if this one starts there; else *why. */
bool promises_allow(struct planning *pl, const struct job *job, const struct placement *where,
                    struct blocked *why);
/* Cards of the set that the job may have, for all that is promised. */
uint64_t promises_leave(struct planning *pl, const struct job *job, uint64_t cards);
/* Cards that are promised to others while it would be there. */
uint64_t promises_close(const struct planning *pl, const struct job *job);
/* It starts, in its own name or, as id, a task of it: called before it is booked. */
void promises_started(struct planning *pl, const struct job *job, uint32_t id,
                      const struct placement *where);
/* Room is kept now for a job without a promise: those of lower priority that lose theirs to it
 * are broken. */
void promises_give_way(struct planning *pl);
void promise_insert(struct planner *p, const struct promise *x);

/* firm_new.c */
#define PROMISE_HORIZON_MS (INT64_C(3600) * 1000)
/* Whether nothing but what runs may keep the job from starting. */
bool promise_is_possible(const struct planning *pl, const struct job *job);
/* Promises the job its start, if one can be had for certain, and soon. If not, those behind it
 * get none either: they might take what it waits for. */
void promise_to(struct planning *pl, const struct job *job);
/* Something has ended before its limit, or a promised job has started early: each may be
 * promised an earlier time. */
void promises_move_up(struct planning *pl);

/* preempt.c: asks running jobs to make way, if that helps this one, and keeps the room that
 * they leave for it. */
void preempt_for(struct planning *pl, const struct user *u, struct job *job);

/* plan_parts.c */
/* When the patience of one that has waited since then runs out; NEVER: it does not. */
int64_t patience_ends_us(const struct planning *pl, int64_t since_us);
/* Another pass is due then, at the latest. */
void wake_at(struct planning *pl, int64_t at_us);
/* One card of what the job asks for, wherever it is. */
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
