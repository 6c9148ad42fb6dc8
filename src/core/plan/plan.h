/* One pass over the queue: which pending jobs start now and where, which must make way, and
 * why the others wait. The order is priority, then recent use (fair.h), then the order chosen
 * in the settings. The first job that does not fit gets a reservation: cards, and the earliest
 * time at which the expected ends of running jobs let it start there. Later jobs may start
 * only if that is not delayed (EASY backfilling, on the level of the card). If ends are not
 * known, a job that has been passed over for longer than the patience has cards pinned for it.
 *
 * The ledger is booked for each start, from the moment of the decision; the queue and its jobs
 * are left as they are (but for the reasons kept with each kind and blocked_since_us), so a
 * look ahead is a plan over ledger_clone, thrown away. The caller applies each decision with
 * job_apply and queue_refile, or gives the booking back with ledger_release. */
#ifndef CORE_PLAN_PLAN_H
#define CORE_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/place/place.h"

struct buf;
struct fair;
struct job;
struct kind;
struct ledger;
struct limits;
struct queue;

enum decision_type {
    PLAN_START,
    PLAN_INFEASIBLE, /* it can never start on this machine; text says why */
    PLAN_PREEMPT,    /* a running job is to make way for the job `by` */
};

/* In which order jobs of one priority, and of users who have used alike, are tried. Names and
 * meanings are the settings' `order:`. */
enum plan_order {
    PLAN_QUEUE,    /* as they were submitted */
    PLAN_SHORT,    /* (waited + expected run) / expected run, the largest first */
    PLAN_LONGEST,  /* expected run, the longest first */
    PLAN_BALANCED, /* see balance.h */
};

/* Lines at which one pass of the daemon looks: some ms. Ordinary use, and workloads of
 * clusters, do not come near it. */
#define PLAN_DEPTH 2000

/* What does not change from pass to pass. */
struct plan_rules {
    enum plan_order order;
    int64_t patience_ms;
    int64_t aging_ms;     /* a job that waits gains one of priority each time; 0: never */
    int64_t settle_ms;    /* so long after a killed job's end its memory may not be back yet */
    int32_t reservations; /* starts that are promised at a time, at most PROMISES_MAX */
    int64_t horizon_ms;   /* a start is promised once it is so near; 0: however far it is; -1:
                             an hour while there are jobs without a limit, else 0 */
    bool fair_share;
    size_t depth; /* lines at which one pass looks, of all users; 0: at all of them */
    /* EASY to the letter: a job that would delay the one with the reservation on the cards that
     * suit it best is not tried on others. For comparison with simulators. */
    bool textbook;
    const struct limits *limits; /* borrowed; NULL: none */
};

/* The reservation of the last pass. */
struct reservation {
    uint32_t job;   /* 0: there is none */
    int64_t at_us;  /* wall clock, when it is expected to start; INT64_MAX: not known */
    uint64_t cards; /* kept for it from then on */
    bool pinned;    /* they take nothing that has no limit, from now on */
    bool lasting;   /* the next pass keeps them for it too, unless a job of higher rank comes */
};

/* A start that holds (firm.c): the job starts then at the latest. */
#define PROMISES_MAX 16
struct promise {
    uint32_t job;         /* an array: its next task */
    int64_t at_us;        /* wall clock */
    uint64_t cards;       /* that it can have then; it may start on others */
    int64_t limit_ms;     /* what it asked for: with another request the promise is void */
    uint64_t demand_hash; /* the same; 0: not known, after a restart */
    int64_t misfit_us;    /* since when others take its room, which may pass; 0: they do not */
};

enum broken_why {
    BROKEN_OVERRUN,  /* the job `by` has not ended at its limit */
    BROKEN_PRIORITY, /* the job `by` has a higher priority */
    BROKEN_MACHINE,  /* GPUs or what else is needed is no longer there */
    BROKEN_LIMIT,    /* a limit on what runs, set since then, may hold it back */
    BROKEN_SETTINGS, /* rules.reservations allows fewer of them than it did */
};

/* rules.reservations, unless the settings say otherwise: one; none under `short`, whose low
 * mean wait it would cost. */
int32_t plan_reservations(enum plan_order order);

/* rules.horizon_ms, unless the settings say otherwise: an hour; -1 under `balanced`, which
 * promises only to jobs that are due, and whose bound on their waits rests on it. Jobs without
 * a limit could not start beside one that is promised its start in two days, however brief. */
int64_t plan_horizon_ms(enum plan_order order);

/* A promise that cannot be kept. The job gets another when its turn comes. */
struct broken {
    uint32_t job;
    int64_t at_us;
    enum broken_why why;
    uint32_t by;
};

/* A promise that is kept with a start. If that is taken back, planner_restore_promise. */
struct kept_promise {
    struct promise promise;
    uint32_t as; /* the job that starts; for an array its task */
};

/* What a plan remembers from pass to pass; owned by the daemon or the simulator. */
struct planner;
struct planner *planner_new(const struct plan_rules *r,
                            struct fair *f); /* f borrowed; or NULL */
void planner_free(struct planner *p);        /* NULL is fine */
void planner_set_rules(struct planner *p, const struct plan_rules *r);
const struct plan_rules *planner_rules(const struct planner *p);
const struct reservation *planner_reservation(const struct planner *p); /* never NULL */

/* By time, the earliest first; until the planner changes. */
const struct promise *planner_promises(const struct planner *p, size_t *n);
const struct promise *planner_promise_of(const struct planner *p, uint32_t job); /* or NULL */
/* After a restart, or when the start did not come about. */
void planner_restore_promise(struct planner *p, const struct promise *x);
void planner_clock_set(struct planner *p, int64_t by_us);

/* What happened, for orders that learn from it (balance.h): so many jobs (or tasks) with this
 * demand were submitted; a run has ended that was expected to take span_ms (0: unknown).
 * Called for everything, whatever the order is just now. */
void planner_submitted(struct planner *p, const struct demand *d, int64_t n, int64_t now_us);
void planner_ended(struct planner *p, int64_t span_ms, int64_t run_ms);
/* A run was cancelled, besides. */
void planner_stopped(struct planner *p, const struct job *job, int64_t run_ms);

struct decision {
    enum decision_type type;
    uint32_t job;           /* START of an array's task: the array */
    int32_t task;           /* START: the task to split off; -1: the job itself */
    uint32_t as;            /* with a task: the id under which it is booked in the ledger */
    uint32_t by;            /* PREEMPT: the job that needs the room */
    struct placement where; /* START */
    char *text;             /* INFEASIBLE; owned by the plan */
};

struct plan {
    struct decision *decisions; /* in the order they were made */
    size_t n, cap;
    int64_t wake_us; /* look again then at the latest, also for lines at which plans before it
                        have looked that had more to do; INT64_MAX: when something happens */
    bool more;       /* it has not come to all lines (rules.depth): plan again */
    uint32_t *waits; /* jobs at which it has looked, and which stay in line */
    size_t n_waits, cap_waits;
    struct broken *broken;
    size_t n_broken, cap_broken;
    struct kept_promise kept[PROMISES_MAX];
    size_t n_kept;
};

#define PLAN_INIT                                                                              \
    {                                                                                          \
        .wake_us = INT64_MAX                                                                   \
    }
#define auto_plan __attribute__((cleanup(plan_free)))

void plan_free(struct plan *p); /* what it owns; it is empty after */

/* Something has happened: the next plan begins to look at all lines anew. Without it that goes
 * on where the plan before stopped, which matters if that had more to do. */
void planner_look_anew(struct planner *p);
/* Whether the line has been looked at since; its reason is of an earlier plan otherwise. */
bool planner_has_seen(const struct planner *p, const struct kind *k);
/* Gives a line that has not been the reason of this moment: that there is no room, or that its
 * turn has not come. What an earlier plan found of limits and reservations stays: more than
 * that only a plan can find out. */
void plan_tell_unseen(const struct planner *p, const struct ledger *l, const struct job *job);

/* Decides. *p is emptied first. now_us is wall time, as begin_us is. *next_id is the id for
 * the first task that leaves an array, and moves on with each. Cost: kinds (rules.depth at
 * most), starts, running jobs; never the number of pending jobs. */
void plan_make(struct planner *planner, struct queue *q, struct ledger *l, int64_t now_us,
               uint32_t *next_id, struct plan *p);

/* When pending jobs are expected to start, by running this very planner ahead in virtual time
 * over copies. Stops after max_jobs starts, and where it has come to the end of what it copied.
 * at_us INT64_MAX: not known (what it waits for has no expected end). *out is the caller's to
 * free; returns how many. */
struct expected_start {
    uint32_t job; /* for an array: of its next task */
    int64_t at_us;
};
size_t plan_forecast(const struct planner *planner, const struct queue *q,
                     const struct ledger *l, int64_t now_us, size_t max_jobs,
                     struct expected_start **out);

/* The same in pieces: between two steps the queue and the ledger may change, of which the
 * forecast hears nothing; the planner's rules may not. A step is one plan: some ms at most.
 * False: there is no more to do. */
struct forecast_run;
struct forecast_run *forecast_run_begin(const struct planner *planner, const struct queue *q,
                                        const struct ledger *l, int64_t now_us,
                                        size_t max_jobs);
bool forecast_run_step(struct forecast_run *run);
/* Before the first step: a job of which is asked what would become of it, were it to wait too
 * (copied; an id and an order of no other). Once all of those are answered the forecast
 * ends. */
void forecast_run_add(struct forecast_run *w, const struct job *job);
struct asked_start {
    uint32_t job;
    bool at_once;           /* the first plan starts it */
    int64_t at_us;          /* 0: the forecast did not come so far; INT64_MAX: not known */
    struct placement where; /* unless at_us is one of these two */
    struct blocked why;     /* unless at_once */
};
/* NULL for others than those. As long as the run. */
const struct asked_start *forecast_run_asked(struct forecast_run *w, uint32_t job);
/* Whether the first instant is behind it. */
bool forecast_run_has_begun(const struct forecast_run *run);
/* Gives up some of what it has of the jobs that were asked about, which are no longer: a large
 * run is to be freed in pieces. False: forecast_run_end costs little. */
bool forecast_run_shrink(struct forecast_run *run);
/* As plan_forecast; frees the run. */
size_t forecast_run_end(struct forecast_run *w, struct expected_start **out);

/* Why this job waits, as of the last plan: its own state, or what its line waits for. A job
 * that does not wait gets REASON_NONE. */
void plan_explain(const struct queue *q, const struct job *job, struct blocked *out);
/* The same as a sentence, appended; nothing for a job that does not wait. */
void plan_explain_text(const struct queue *q, const struct job *job, struct buf *out);
/* Adds whether the card that it waits for is kept for or promised to another job, which is
 * first to have it. */
void plan_explain_reserved(const struct queue *q, const struct planner *p,
                           const struct job *job, struct blocked *why);

/* Whether more could be found out about what its line waits for than the last plan wrote down:
 * whose ends, and which cards, where it is about several of them, or about cores or host
 * memory. */
bool plan_may_tell_needs(const struct job *job);
/* Finds that out, for plan_explain to report until the next plan. Cost: those that run, times
 * the cards; the queue and the ledger stay as they are. Jobs that run must be in the queue. */
void plan_tell_needs(struct queue *q, struct ledger *l, const struct job *job, int64_t now_us);

#endif
