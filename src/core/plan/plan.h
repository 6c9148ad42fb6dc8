/* One pass over the queue: which pending jobs start now and where, which running jobs must
 * make way, and why the others wait. The order is priority, then recent use (fair.h), then the
 * order chosen in the settings. The first job that does not fit gets a reservation: GPUs, and
 * the earliest time at which the expected ends of running jobs let it start there. Later jobs
 * may start only if they do not delay it (EASY backfilling, per GPU). If those ends are
 * unknown, a job that has been passed over for longer than the patience gets GPUs pinned for
 * it.
 *
 * Each start is booked in the ledger when it is decided. The queue and its jobs do not change
 * (except blocked_since_us and the reasons kept with each kind), so a look ahead is a plan
 * over ledger_clone that is thrown away. The caller applies each decision with job_apply and
 * queue_refile, or undoes the booking with ledger_release. */
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
    PLAN_INFEASIBLE, /* the job can never start on this machine; text says why */
    PLAN_PREEMPT,    /* a running job must make way for the job `by` */
};

/* Order of jobs with equal priority and equal recent use. Names and meanings are those of the
 * `order:` setting. */
enum plan_order {
    PLAN_QUEUE,    /* by submission */
    PLAN_SHORT,    /* largest (waited + expected run) / expected run first */
    PLAN_LONGEST,  /* longest expected run first */
    PLAN_BALANCED, /* see balance.h */
};

/* Lines that one pass of the daemon examines, which takes some ms. Ordinary use and cluster
 * workloads stay far below it. */
#define PLAN_DEPTH 2000

/* Settings: the same in every pass until planner_set_rules. */
struct plan_rules {
    enum plan_order order;
    int64_t patience_ms;
    int64_t aging_ms;     /* a waiting job gains 1 priority per this time; 0: never */
    int64_t settle_ms;    /* a killed job's memory may take this long to come back */
    int32_t reservations; /* promised starts at a time, at most PROMISES_MAX */
    int64_t horizon_ms;   /* promise a start once it is this near; 0: at any distance; -1: an
                             hour while there are jobs without a limit, else 0 */
    bool fair_share;
    size_t depth; /* lines that one pass examines, over all users; 0: all of them */
    /* Strict EASY: a job that would delay the reserved job on its best GPUs is not tried on
     * other GPUs. For comparison with simulators. */
    bool textbook;
    const struct limits *limits; /* borrowed; NULL: none */
};

/* The reservation of the last pass. */
struct reservation {
    uint32_t job;   /* 0: there is none */
    int64_t at_us;  /* wall clock, expected start; INT64_MAX: unknown */
    uint64_t cards; /* kept for the job from at_us on */
    bool pinned;    /* from now on no job without a limit starts on these GPUs */
    bool lasting;   /* the next pass keeps them too, unless a job of higher rank comes */
};

/* A guaranteed start (firm.c): the job starts at this time at the latest. */
#define PROMISES_MAX 16
struct promise {
    uint32_t job;         /* for an array, its next task */
    int64_t at_us;        /* wall clock */
    uint64_t cards;       /* GPUs it can have then; it may start on others */
    int64_t limit_ms;     /* as requested; if the request changes, the promise is void */
    uint64_t demand_hash; /* of the request, as limit_ms; 0: unknown, after a restart */
    int64_t misfit_us;    /* since when others occupy its room, perhaps briefly; 0: none do */
};

enum broken_why {
    BROKEN_OVERRUN,  /* the job `by` did not end at its limit */
    BROKEN_PRIORITY, /* the job `by` has a higher priority */
    BROKEN_MACHINE,  /* GPUs or another resource it needs are gone */
    BROKEN_LIMIT,    /* a limit on running jobs, set after the promise, may hold it back */
    BROKEN_SETTINGS, /* rules.reservations now allows fewer promises */
};

/* Default of rules.reservations: 1, but 0 under `short`, because a promise would raise its low
 * mean wait. */
int32_t plan_reservations(enum plan_order order);

/* Default of rules.horizon_ms: an hour; -1 under `balanced`, which promises only to due jobs
 * and whose bound on waits depends on those promises. Beside a start promised for two days
 * ahead, no job without a limit could start, however short. */
int64_t plan_horizon_ms(enum plan_order order);

/* A promise that cannot be kept. The job can get another when its turn comes. */
struct broken {
    uint32_t job;
    int64_t at_us;
    enum broken_why why;
    uint32_t by;
};

/* A promise kept by a start. If the start is undone, call planner_restore_promise. */
struct kept_promise {
    struct promise promise;
    uint32_t as; /* the job that starts; for an array, its task */
};

/* The planner's state between passes; owned by the daemon or the simulator. */
struct planner;
struct planner *planner_new(const struct plan_rules *r,
                            struct fair *f); /* f: borrowed, or NULL */
void planner_free(struct planner *p);        /* NULL is fine */
void planner_set_rules(struct planner *p, const struct plan_rules *r);
const struct plan_rules *planner_rules(const struct planner *p);
const struct reservation *planner_reservation(const struct planner *p); /* never NULL */

/* Sorted by time, earliest first; valid until the planner changes. */
const struct promise *planner_promises(const struct planner *p, size_t *n);
const struct promise *planner_promise_of(const struct planner *p, uint32_t job); /* or NULL */
/* After a restart, or when the start failed. */
void planner_restore_promise(struct planner *p, const struct promise *x);
void planner_clock_set(struct planner *p, int64_t by_us);

/* Reports for orders that learn (balance.h): n jobs (or tasks) with this demand were
 * submitted; a run ended that was expected to take span_ms (0: unknown). To be called whatever
 * the current order is. */
void planner_submitted(struct planner *p, const struct demand *d, int64_t n, int64_t now_us);
void planner_ended(struct planner *p, int64_t span_ms, int64_t run_ms);
/* In addition to planner_ended, when a run was cancelled. */
void planner_stopped(struct planner *p, const struct job *job, int64_t run_ms);

struct decision {
    enum decision_type type;
    uint32_t job;           /* START of an array's task: the array */
    int32_t task;           /* START: the task to split off; -1: the job itself */
    uint32_t as;            /* with a task: its id in the ledger */
    uint32_t by;            /* PREEMPT: the job that needs the room */
    struct placement where; /* START */
    char *text;             /* INFEASIBLE; owned by the plan */
};

struct plan {
    struct decision *decisions; /* in the order they were made */
    size_t n, cap;
    int64_t wake_us; /* plan again by then, also on account of lines that earlier passes of the
                        same round examined; INT64_MAX: when something happens */
    bool more;       /* not all lines were examined (rules.depth): plan again */
    uint32_t *waits; /* jobs that were examined and stay in line */
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

void plan_free(struct plan *p); /* frees the contents; p is empty afterwards */

/* Something has happened: the next plan examines all lines afresh. Otherwise it continues
 * where the last plan stopped, if that one had more to do. */
void planner_look_anew(struct planner *p);
/* Whether a plan has examined the line since then; if not, its reason is from an earlier
 * plan. */
bool planner_has_seen(const struct planner *p, const struct kind *k);
/* Gives a line that no plan has examined yet its current reason: no room, or not its turn.
 * Reasons about limits and reservations from an earlier plan stay, because only a plan can
 * update them. */
void plan_tell_unseen(const struct planner *p, const struct ledger *l, const struct job *job);

/* Makes a plan; *p is emptied first. now_us is wall-clock time, as begin_us is. *next_id is
 * the id for the next task split off an array, and is advanced for each. Cost: kinds (at most
 * rules.depth), starts and running jobs; never the number of pending jobs. */
void plan_make(struct planner *planner, struct queue *q, struct ledger *l, int64_t now_us,
               uint32_t *next_id, struct plan *p);

/* When pending jobs are expected to start: runs this planner ahead in virtual time on copies.
 * Stops after max_jobs starts, or when the copied jobs run out. at_us INT64_MAX: unknown (the
 * job waits for something without an expected end). The caller frees *out. Returns the number
 * of entries. */
struct expected_start {
    uint32_t job; /* for an array, its next task */
    int64_t at_us;
};
size_t plan_forecast(const struct planner *planner, const struct queue *q,
                     const struct ledger *l, int64_t now_us, size_t max_jobs,
                     struct expected_start **out);

/* The same in steps. Between steps the queue and the ledger may change, which the forecast
 * does not see; the planner's rules may not. One step is one plan: some ms at most. False: it
 * is finished. */
struct forecast_run;
struct forecast_run *forecast_run_begin(const struct planner *planner, const struct queue *q,
                                        const struct ledger *l, int64_t now_us,
                                        size_t max_jobs);
bool forecast_run_step(struct forecast_run *run);
/* Before the first step: adds a hypothetical job whose start is asked for, as if it waited too
 * (copied; its id and order must be unused). The forecast ends once all such jobs are
 * answered. */
void forecast_run_add(struct forecast_run *w, const struct job *job);
struct asked_start {
    uint32_t job;
    bool at_once;           /* the first plan starts it */
    int64_t at_us;          /* 0: the forecast did not get that far; INT64_MAX: unknown */
    struct placement where; /* unless at_us is 0 or INT64_MAX */
    struct blocked why;     /* unless at_once */
};
/* NULL if the job was not added with forecast_run_add. Valid as long as the run. */
const struct asked_start *forecast_run_asked(struct forecast_run *w, uint32_t job);
/* Whether the first instant is finished. */
bool forecast_run_has_begun(const struct forecast_run *run);
/* Frees some of the copies of added jobs, once they are no longer needed, so that a large run
 * can be freed in pieces. False: nothing large is left, and forecast_run_end is cheap. */
bool forecast_run_shrink(struct forecast_run *run);
/* Result as of plan_forecast; frees the run. */
size_t forecast_run_end(struct forecast_run *w, struct expected_start **out);

/* Why this job waits, as of the last plan: its own state, or what its line waits for.
 * REASON_NONE if the job does not wait. */
void plan_explain(const struct queue *q, const struct job *job, struct blocked *out);
/* The same as a sentence, appended; nothing if the job does not wait. */
void plan_explain_text(const struct queue *q, const struct job *job, struct buf *out);
/* Adds to *why whether the GPU that the job waits for is reserved for or promised to another
 * job, which gets it first. */
void plan_explain_reserved(const struct queue *q, const struct planner *p,
                           const struct job *job, struct blocked *why);

/* Whether plan_tell_needs can say more about what the line waits for than the last plan
 * recorded: which jobs' ends and which GPUs, if it needs several GPUs, cores or host
 * memory. */
bool plan_may_tell_needs(const struct job *job);
/* Finds that out; plan_explain reports it until the next plan. Cost: running jobs times GPUs.
 * The queue and the ledger end up unchanged. All running jobs must be in the queue. */
void plan_tell_needs(struct queue *q, struct ledger *l, const struct job *job, int64_t now_us);

#endif
