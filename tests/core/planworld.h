/* A small machine in virtual time for tests of the planner: jobs are added, plans are made and
 * applied, jobs end at the time set for them. Times are in seconds; 0 is ZERO_S on the wall
 * clock. */
#ifndef TESTS_CORE_PLANWORLD_H
#define TESTS_CORE_PLANWORLD_H

#include "base/err.h"
#include "core/plan/fair.h"
#include "core/plan/limits.h"
#include "core/queue/array.h"
#include "machine.h"

#define ZERO_S   INT64_C(1000000)
#define SECOND   INT64_C(1000000)
#define JOBS_MAX 4096
#define FOREVER  INT32_MAX

struct world {
    struct queue *q;
    struct ledger *l;
    struct fair *fair;
    struct planner *planner;
    struct plan_rules rules;
    int64_t now; /* seconds */
    uint32_t next_id;
    int64_t wake;              /* seconds; INT64_MAX: never */
    int64_t run_s[JOBS_MAX];   /* how long it really runs, by job */
    int64_t started[JOBS_MAX]; /* -1: not started */
    int64_t ended[JOBS_MAX];   /* -1: not ended */
    char text[4096];           /* the last plan */
    int decided;               /* decisions of the last plan */
    int looked;                /* waiting jobs that the last plan examined */
    bool more;                 /* the last plan did not reach every line */
    struct broken broken;      /* the last promise that the last plan broke; job 0: none */
};

static inline int64_t
wall(int64_t second)
{
    return (ZERO_S + second) * SECOND;
}

static inline void
world_init(struct world *w, int cards, const struct plan_rules *rules)
{
    *w = (struct world){.next_id = 1000, .wake = INT64_MAX, .rules = *rules};
    w->q = queue_new();
    w->l = machine_new(cards, CARD_MIB);
    w->fair = fair_new(INT64_C(86400) * 1000);
    w->planner = planner_new(rules, w->fair);
    for (int i = 0; i < JOBS_MAX; i++)
        w->started[i] = w->ended[i] = -1;
}

static inline void
world_free(struct world *w)
{
    planner_free(w->planner);
    fair_free(w->fair);
    queue_free(w->q);
    ledger_free(w->l);
}

/* A test's description of a job. All zero: a job of user 0 that wants a whole GPU and whose
 * run time is unknown. */
struct spec {
    uint32_t id;
    int gpus, vram;   /* gpus 0: one */
    int limit, guess; /* seconds; a time limit, or an estimate */
    int run;          /* real run time; 0: the limit, else the guess, else FOREVER */
    uint32_t uid;
    int priority;
    bool preemptible;
    int cpus;
    int share;
    bool on_slurm;
    uint32_t file; /* the jobs file it came from */
};

static inline struct job *
add(struct world *w, struct spec s)
{
    struct demand d = want(s.gpus ? s.gpus : 1, s.vram);
    d.cpus = s.cpus;
    d.share_permille = s.share;
    if (s.on_slurm)
        d.engine = ENGINE_SLURM;
    struct job *job = new_job(s.id, d);
    job->uid = s.uid;
    job->file = s.file;
    job->req.priority = s.priority;
    job->req.preemptible = s.preemptible;
    job->req.limit_ms = s.limit * INT64_C(1000);
    job->estimate_ms = s.guess * INT64_C(1000);
    job->span_ms = s.limit ? job->req.limit_ms : job->estimate_ms;
    job->submitted_us = wall(w->now);
    w->run_s[s.id] = s.run ? s.run : s.limit ? s.limit : s.guess ? s.guess : FOREVER;
    queue_add(w->q, job);
    queue_mark_lines(w->q, job->submitted_us, NULL, NULL);
    return job;
}

static inline void
happens(struct world *w, struct job *job, struct job_event ev)
{
    const char *why = "";
    ev.wall_us = wall(w->now);
    if (job_apply(job, &ev, &why) != JOB_NEXT)
        fail_msg("job %u: %s", job->id, why);
    queue_refile(w->q, job);
}

__attribute__((format(printf, 2, 3))) static inline void
say(struct world *w, const char *format, ...)
{
    size_t at = strlen(w->text);
    va_list args;
    va_start(args, format);
    vsnprintf(w->text + at, sizeof w->text - at, format, args);
    va_end(args);
}

static inline struct job *
leave_array(struct world *w, struct job *array, const struct decision *d)
{
    struct job *task = array_split(array, d->task, d->as);
    w->run_s[d->as] = w->run_s[array->id];
    queue_add(w->q, task);
    array_note(array, task, JOB_PENDING, JOB_STARTING, 0);
    queue_refile(w->q, array);
    return task;
}

static inline void
take_start(struct world *w, const struct decision *d)
{
    struct job *job = queue_get(w->q, d->job);
    struct attempt *run = xcalloc(1, sizeof *run);
    say(w, "%u", d->job);
    if (d->task >= 0) {
        say(w, "_%d", d->task);
        job = leave_array(w, job, d);
    }
    run->n_gpus = d->where.n;
    memcpy(run->gpus, d->where.gpus, d->where.n);
    for (int i = 0; i < d->where.n; i++)
        say(w, "%c%d", i ? ',' : '@', d->where.gpus[i]);
    happens(w, job, (struct job_event){.type = JOB_EV_START, .run = run});
    happens(w, job, (struct job_event){.type = JOB_EV_STARTED});
    w->started[job->id] = w->now;
}

/* The last plan as text: "1@0 2@1,2" for starts, "9_0@3" for an array's task, "5<7" when job 5
 * is preempted for job 7, "8!" for a job that can never start. */
static inline const char *
plan_now(struct world *w)
{
    auto_plan struct plan p = PLAN_INIT;
    plan_make(w->planner, w->q, w->l, wall(w->now), &w->next_id, &p);
    w->text[0] = '\0';
    w->decided = (int)p.n;
    w->looked = (int)p.n_waits;
    w->more = p.more;
    w->broken = p.n_broken ? p.broken[p.n_broken - 1] : (struct broken){0};
    for (size_t i = 0; i < p.n; i++) {
        const struct decision *d = &p.decisions[i];
        struct job *job = queue_get(w->q, d->job);
        say(w, "%s", i ? " " : "");
        switch (d->type) {
        case PLAN_START:
            take_start(w, d);
            break;
        case PLAN_INFEASIBLE:
            say(w, "%u!", d->job);
            happens(w, job, (struct job_event){.type = JOB_EV_INFEASIBLE, .text = d->text});
            break;
        case PLAN_PREEMPT:
            say(w, "%u<%u", d->job, d->by);
            happens(w, job, (struct job_event){.type = JOB_EV_PREEMPT});
            break;
        }
    }
    w->wake = p.wake_us == INT64_MAX ? INT64_MAX : (p.wake_us + SECOND - 1) / SECOND - ZERO_S;
    assert_true(w->wake > w->now);
    assert_null(queue_check(w->q));
    assert_null(ledger_check(w->l));
    return w->text;
}

static inline void
end_job(struct world *w, uint32_t id, enum outcome outcome)
{
    struct job *job = queue_get(w->q, id);
    struct ending ending = {.outcome = outcome, .ended_us = wall(w->now)};
    fair_charge(w->fair, job->uid,
                fair_part(w->l, &job->req.demand, job->run->gpus, job->run->n_gpus),
                job->run->started_us, wall(w->now));
    ledger_release(w->l, id);
    planner_ended(w->planner, job->span_ms, (w->now - w->started[id]) * 1000);
    w->ended[id] = w->now;
    happens(w, job, (struct job_event){.type = JOB_EV_ENDED, .ending = &ending});
    happens(w, job, (struct job_event){.type = JOB_EV_VRAM_BACK});
    if (job->array) {
        struct job *array = queue_get(w->q, job->array);
        array_note(array, job, JOB_RUNNING, job->state, 0);
        queue_refile(w->q, array);
    }
    if (job_state_is_final(job->state))
        job_free(queue_remove(w->q, id));
}

static inline int64_t
next_end(const struct world *w)
{
    int64_t next = INT64_MAX;
    for (struct job *job = queue_active(w->q); job; job = queue_active_next(job)) {
        int64_t at = w->started[job->id] + w->run_s[job->id];
        if (w->run_s[job->id] != FOREVER && at < next)
            next = at;
    }
    return next;
}

/* Advances to this second, or to the next end of a job or wake time of the planner if that is
 * earlier; applies the ends due then and makes a plan. */
static inline void
step_to(struct world *w, int64_t second)
{
    int64_t end = next_end(w);
    w->now = second;
    if (end < w->now)
        w->now = end;
    if (w->wake < w->now)
        w->now = w->wake;
    for (struct job *job = queue_active(w->q), *next; job; job = next) {
        next = queue_active_next(job);
        if (w->run_s[job->id] != FOREVER && w->started[job->id] + w->run_s[job->id] <= w->now)
            end_job(w, job->id, OUTCOME_EXITED);
    }
    plan_now(w);
}

static inline void
run_to(struct world *w, int64_t second)
{
    while (w->now < second)
        step_to(w, second);
}

#endif
