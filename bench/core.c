/* The cost of the scheduling core: prints one line per operation, "NAME: N ns" and how many
 * times it was done, with 1,000 pending jobs of KINDS kinds (50), 10,000, ... up to JOBS
 * (100,000). Links core and base only. Usage: bench-core [JOBS [KINDS]]. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/err.h"
#include "core/ledger/ledger.h"
#include "core/place/place.h"
#include "core/plan/fair.h"
#include "core/plan/limits.h"
#include "core/plan/plan.h"
#include "core/queue/job.h"
#include "core/queue/queue.h"

#define CARDS         8
#define CARD_MIB      24576
#define ROUNDS        200
#define RUNNING       32
#define USERS         10
#define NOW_US        INT64_C(1000000000000)
#define FIRST_RUNNING 10000000u

static int64_t
now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void
report(const char *what, int64_t began_ns, size_t n)
{
    int64_t each = (now_ns() - began_ns) / (int64_t)n;
    printf("%-34s %12lld ns  (%zu times)\n", what, (long long)each, n);
}

static struct ledger *
machine(void)
{
    struct ledger *l = ledger_new(NULL);
    for (int i = 0; i < CARDS; i++) {
        struct gpu_info info = {.index = i, .numa = i / 4, .total_mib = CARD_MIB};
        struct gpu_sample idle = {.used_mib = 0};
        ledger_add_card(l, &info);
        ledger_sample(l, i, &idle, 1, NULL, NULL);
    }
    for (int i = 0; i < CARDS; i += 2)
        ledger_link(l, i, i + 1);
    ledger_set_known(l);
    return l;
}

/* Four jobs on every GPU, which leave no room. The longer ones on the later GPUs. */
static void
fill(struct queue *q, struct ledger *l)
{
    for (uint32_t i = 0; i < RUNNING; i++) {
        uint8_t gpu = (uint8_t)(i / (RUNNING / CARDS));
        struct job *job = job_new();
        job->id = FIRST_RUNNING + i;
        job->uid = i % USERS;
        job->order = job->id;
        job->state = JOB_RUNNING;
        job->req.demand.vram_mib = CARD_MIB / (RUNNING / CARDS) - 150;
        job->run = xcalloc(1, sizeof *job->run);
        job->run->started_us = NOW_US - 1000000;
        job->run->n_gpus = 1;
        job->run->gpus[0] = gpu;
        queue_add(q, job);
        ledger_hold(l, job->id, &job->req.demand, &gpu, 1);
    }
}

/* Whether the ends of running jobs are known. */
static void
set_spans(struct queue *q, int64_t span_ms)
{
    for (struct job *job = queue_active(q); job; job = queue_active_next(job))
        job->span_ms = job->req.limit_ms = span_ms ? span_ms * (1 + job->id % RUNNING) : 0;
}

static uint32_t next_id = UINT32_MAX / 2;

static void
submit(struct queue *q, uint32_t id, int kinds)
{
    uint32_t kind = id % (uint32_t)kinds;
    struct job *job = job_new();
    job->id = id;
    job->uid = kind % USERS;
    job->order = id;
    job->submitted_us = NOW_US - 1000000;
    job->span_ms = job->req.limit_ms = 60000 * (1 + kind % 7);
    job->req.demand.vram_mib = 1000 + (int32_t)kind;
    job->req.demand.gpus = 1 + (int32_t)(kind % 4);
    queue_add(q, job);
}

static void
bench_plan(const char *what, struct planner *planner, struct queue *q, struct ledger *l)
{
    struct plan p = PLAN_INIT;
    char name[64];
    snprintf(name, sizeof name, "plan pass, %s", what);
    int64_t began = now_ns();
    for (int i = 0; i < ROUNDS; i++)
        plan_make(planner, q, l, NOW_US, &next_id, &p);
    report(name, began, ROUNDS);
    plan_free(&p);
}

static void
bench_passes(struct planner *planner, struct queue *q, struct ledger *l)
{
    static const struct limits limits = {.each = {.running = RUNNING}};
    struct plan_rules rules = {.patience_ms = INT64_MAX,
                               .reservations = plan_reservations(PLAN_QUEUE),
                               .fair_share = true,
                               .limits = &limits};
    planner_set_rules(planner, &rules);
    set_spans(q, 0);
    bench_plan("no end is known", planner, q, l);
    rules.patience_ms = 0;
    planner_set_rules(planner, &rules);
    bench_plan("cards are pinned", planner, q, l);
    set_spans(q, 60000);
    bench_plan("ends are known", planner, q, l);
    rules.order = PLAN_SHORT;
    planner_set_rules(planner, &rules);
    bench_plan("the same, short", planner, q, l);
    rules.order = PLAN_BALANCED;
    planner_set_rules(planner, &rules);
    bench_plan("the same, balanced", planner, q, l);
    rules.depth = PLAN_DEPTH;
    planner_set_rules(planner, &rules);
    bench_plan("2,000 lines of it", planner, q, l);
    rules.order = PLAN_QUEUE;
    rules.limits = NULL; /* without which nothing is promised */
    planner_set_rules(planner, &rules);
    bench_plan("queue, a start promised", planner, q, l);
    rules.limits = &limits;
    rules.depth = 0;
    planner_set_rules(planner, &rules);
}

static void
bench_forecast(const struct planner *planner, const struct queue *q, const struct ledger *l)
{
    struct expected_start *list;
    int64_t began = now_ns();
    size_t n = plan_forecast(planner, q, l, NOW_US, 1000, &list);
    report("forecast of 1,000 starts", began, 1);
    if (n < 1000)
        printf("    only %zu were foretold\n", n);
    free(list);
}

/* One job ends, the plan refills its GPU: the daemon's turn when a job ends. */
static void
bench_turnover(struct planner *planner, struct queue *q, struct ledger *l)
{
    struct plan p = PLAN_INIT;
    size_t starts = 0;
    ledger_release(l, FIRST_RUNNING);
    job_free(queue_remove(q, FIRST_RUNNING));
    plan_make(planner, q, l, NOW_US, &next_id, &p);
    int64_t began = now_ns();
    for (int i = 0; i < ROUNDS && p.n > 0; i++) {
        for (size_t j = 0; j < p.n; j++) {
            ledger_release(l, p.decisions[j].job);
            job_free(queue_remove(q, p.decisions[j].job));
        }
        starts += p.n;
        plan_make(planner, q, l, NOW_US, &next_id, &p);
    }
    report("end, and plan that refills", began, starts ? starts : 1);
    for (size_t j = 0; j < p.n; j++)
        ledger_release(l, p.decisions[j].job);
    plan_free(&p);
}

static void
bench_place(struct ledger *l)
{
    struct demand d;
    struct placement where;
    demand_init(&d);
    for (d.gpus = 1; d.gpus <= 4; d.gpus += 3) {
        char name[64];
        snprintf(name, sizeof name, "place on %d of %d cards", d.gpus, CARDS);
        int64_t began = now_ns();
        for (int i = 0; i < 100000; i++)
            place_job(&d, l, &where, NULL);
        report(name, began, 100000);
    }
}

static void
bench_queue(struct queue *q, uint32_t jobs)
{
    size_t n;
    int64_t began = now_ns();
    free(queue_list_in_order(q, QUEUE_ALL, &n));
    report("list all in scheduling order", began, 1);
    began = now_ns();
    free(queue_list_by_id(q, QUEUE_ALL, &n));
    report("list all by id", began, 1);
    began = now_ns();
    for (uint32_t id = jobs; id > jobs / 2; id--)
        if (queue_get(q, id))
            queue_reorder(q, queue_get(q, id), 2 * (uint64_t)jobs - id);
    report("move to the back", began, jobs - jobs / 2);
}

static void
bench_length(uint32_t jobs, int kinds)
{
    struct queue *q = queue_new();
    struct ledger *l = machine();
    struct fair *fair = fair_new(86400000);
    struct planner *planner = planner_new(&(struct plan_rules){0}, fair);
    size_t before = mallinfo2().uordblks;
    int64_t began = now_ns();
    for (uint32_t id = 1; id <= jobs; id++)
        submit(q, id, kinds);
    report("submit", began, jobs);
    printf("%-34s %12zu bytes\n", "memory for one pending job",
           (mallinfo2().uordblks - before) / jobs);
    fill(q, l);
    bench_passes(planner, q, l);
    bench_forecast(planner, q, l);
    bench_turnover(planner, q, l);
    bench_queue(q, jobs / 2);
    planner_free(planner);
    fair_free(fair);
    queue_free(q);
    ledger_free(l);
}

int
main(int argc, char **argv)
{
    uint32_t most = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 100000;
    int kinds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 50;
    if (most < 1000 || kinds < 1) {
        fprintf(stderr, "usage: bench-core [JOBS (1000 or more) [KINDS]]\n");
        return 2;
    }
    struct ledger *l = machine();
    bench_place(l);
    ledger_free(l);
    for (uint32_t jobs = 1000; jobs <= most; jobs *= 10) {
        printf("\n%u pending jobs of %d kinds\n", jobs, kinds);
        bench_length(jobs, kinds);
    }
    return 0;
}
