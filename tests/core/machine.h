/* Small machines, demands and samples for the tests of the core. */
#ifndef TESTS_CORE_MACHINE_H
#define TESTS_CORE_MACHINE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "core/ledger/ledger.h"
#include "core/place/place.h"
#include "core/plan/plan.h"
#include "core/queue/endings.h"
#include "core/queue/job.h"
#include "core/queue/queue.h"

#define CARD_MIB 24576

static inline void
machine_sample(struct ledger *l, int card, int64_t used, const struct gpu_proc *procs, int n,
               int64_t now_us)
{
    struct gpu_sample s = {used, 0, 40, procs, n, NULL, 0, 0};
    ledger_sample(l, card, &s, now_us, NULL, NULL);
}

/* n GPUs with this much memory, each sampled once while idle. */
static inline struct ledger *
machine_new(int n, int64_t total_mib)
{
    struct ledger *l = ledger_new(NULL);
    for (int i = 0; i < n; i++) {
        struct gpu_info info = {.index = i, .minor = i, .numa = -1, .total_mib = total_mib};
        snprintf(info.uuid, sizeof info.uuid, "GPU-%d", i);
        ledger_add_card(l, &info);
        machine_sample(l, i, 0, NULL, 0, 1);
    }
    ledger_set_known(l);
    return l;
}

/* A sample that shows another program of this size, and nothing else, on the GPU. */
static inline void
machine_stranger(struct ledger *l, int card, int32_t pid, int32_t mib, int64_t now_us)
{
    struct gpu_proc p = {.pid = pid, .mib = mib, .uid = 1001};
    machine_sample(l, card, mib, &p, 1, now_us);
}

static inline struct demand
want(int gpus, int vram_mib)
{
    struct demand d;
    demand_init(&d);
    d.gpus = gpus;
    d.vram_mib = vram_mib;
    return d;
}

static inline void
book(struct ledger *l, uint32_t job, int card, int vram_mib)
{
    struct demand d = want(1, vram_mib);
    uint8_t gpu = (uint8_t)card;
    ledger_hold(l, job, &d, &gpu, 1);
}

/* A fraction of one GPU with this much VRAM; 0: the same fraction of the GPU's VRAM. */
static inline struct demand
want_share(int permille, int vram_mib)
{
    struct demand d = want(1, vram_mib);
    d.share_permille = permille;
    return d;
}

static inline void
book_share(struct ledger *l, uint32_t job, int card, int permille, int vram_mib)
{
    struct demand d = want_share(permille, vram_mib);
    uint8_t gpu = (uint8_t)card;
    ledger_hold(l, job, &d, &gpu, 1);
}

static inline struct job *
new_job(uint32_t id, struct demand d)
{
    struct job *job = job_new();
    job->id = id;
    job->order = id;
    job->req.demand = d;
    return job;
}

/* Each pass plans from scratch, in the order of submission. */
__attribute__((unused)) static const struct plan_rules rules_greedy = {.patience_ms =
                                                                           INT64_MAX};

__attribute__((unused)) static void
plan_once(struct queue *q, struct ledger *l, int64_t now_us, struct plan *p)
{
    struct planner *planner = planner_new(&rules_greedy, NULL);
    uint32_t next_id = UINT32_MAX / 2;
    plan_make(planner, q, l, now_us, &next_id, p);
    planner_free(planner);
}

#endif
