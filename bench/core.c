/* What the scheduling core costs: prints one line for each operation, "NAME: N ns" and how
 * many times it was done. Links core and base only. Usage: bench-core [JOBS [KINDS]]. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/job.h"
#include "core/ledger.h"
#include "core/place.h"
#include "core/plan.h"
#include "core/queue.h"

#define CARDS    8
#define CARD_MIB 24576
#define ROUNDS   200

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

/* Fills every card, so that a plan must refuse each kind on each card. */
static void
fill(struct ledger *l)
{
    struct demand d;
    demand_init(&d);
    d.vram_mib = 23800;
    for (uint8_t i = 0; i < CARDS; i++)
        ledger_hold(l, 1000000u + i, &d, &i, 1);
}

static const struct plan_rules rules = {.patience_ms = INT64_MAX};
static struct planner *planner;
static uint32_t next_id = UINT32_MAX / 2;

static void
submit(struct queue *q, uint32_t id, int kinds)
{
    struct job *job = job_new();
    job->id = id;
    job->order = id;
    job->req.demand.vram_mib = 1000 + (int32_t)(id % (uint32_t)kinds);
    job->req.demand.gpus = 1 + (int32_t)(id % (uint32_t)kinds % 4);
    queue_add(q, job);
}

static void
bench_plan(struct queue *q, struct ledger *l)
{
    struct plan p = PLAN_INIT;
    int64_t began = now_ns();
    for (int i = 0; i < ROUNDS; i++)
        plan_make(planner, q, l, 1, &next_id, &p);
    report("plan pass, all blocked", began, ROUNDS);
    plan_free(&p);
}

/* One job leaves, the plan refills its card: the daemon's turn when a job ends. */
static void
bench_turnover(struct queue *q, struct ledger *l)
{
    struct plan p = PLAN_INIT;
    ledger_release(l, 1000000);
    plan_make(planner, q, l, 1, &next_id, &p);
    int64_t began = now_ns();
    for (int i = 0; i < ROUNDS && p.n > 0; i++) {
        for (size_t j = 0; j < p.n; j++) {
            ledger_release(l, p.decisions[j].job);
            job_free(queue_remove(q, p.decisions[j].job));
        }
        plan_make(planner, q, l, 1, &next_id, &p);
    }
    report("end, and plan that refills", began, ROUNDS);
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
        queue_requeue(q, queue_get(q, id));
    report("move to the back", began, jobs - jobs / 2);
}

int
main(int argc, char **argv)
{
    planner = planner_new(&rules, NULL);
    uint32_t jobs = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 100000;
    int kinds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 50;
    if (jobs < 1000 || kinds < 1) {
        fprintf(stderr, "usage: bench-core [JOBS (1000 or more) [KINDS]]\n");
        return 2;
    }
    struct queue *q = queue_new();
    struct ledger *l = machine();
    size_t before = mallinfo2().uordblks;
    int64_t began = now_ns();
    for (uint32_t id = 1; id <= jobs; id++)
        submit(q, id, kinds);
    report("submit", began, jobs);
    printf("%-34s %12zu bytes\n", "memory for one pending job",
           (mallinfo2().uordblks - before) / jobs);
    bench_place(l);
    fill(l);
    bench_plan(q, l);
    bench_turnover(q, l);
    bench_queue(q, jobs / 2);
    queue_free(q);
    ledger_free(l);
    return 0;
}
