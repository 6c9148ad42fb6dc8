/* The event loop of virtual time. Who decides is core/pass.c; here time goes from one end or
 * arrival to the next. Entries of the pass are numbered as the jobs of the workload, from 1. */
#include "sim/sim.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "core/pass.h"

/* One that runs, in a binary heap by its true end. */
struct ending {
    int64_t at;
    uint32_t who;
};

struct sim {
    const struct workload *w;
    struct node node;
    struct pass pass;
    struct entry *entries;
    struct schedule out;
    int64_t now;
    size_t arrived;
    struct ending *heap;
    size_t n_heap, cap_heap;
};

void
schedule_free(struct schedule *s)
{
    free(s->runs);
    *s = (struct schedule){.n = 0};
}

static bool
ends_before(const struct ending *a, const struct ending *b)
{
    return a->at != b->at ? a->at < b->at : a->who < b->who;
}

static void
heap_push(struct sim *sim, struct ending end)
{
    if (sim->n_heap == sim->cap_heap) {
        sim->cap_heap = sim->cap_heap ? sim->cap_heap * 2 : 64;
        sim->heap = xrealloc(sim->heap, sim->cap_heap * sizeof *sim->heap);
    }
    size_t at = sim->n_heap++;
    for (; at > 0 && ends_before(&end, &sim->heap[(at - 1) / 2]); at = (at - 1) / 2)
        sim->heap[at] = sim->heap[(at - 1) / 2];
    sim->heap[at] = end;
}

static struct ending
heap_pop(struct sim *sim)
{
    struct ending top = sim->heap[0], last = sim->heap[--sim->n_heap];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < sim->n_heap; at = child) {
        if (child + 1 < sim->n_heap && ends_before(&sim->heap[child + 1], &sim->heap[child]))
            child++;
        if (!ends_before(&sim->heap[child], &last))
            break;
        sim->heap[at] = sim->heap[child];
    }
    sim->heap[at] = last;
    return top;
}

static void
on_start(void *arg, uint32_t who, uint64_t cards)
{
    struct sim *sim = arg;
    sim->out.runs[who - 1] = (struct sim_run){.start = sim->now, .cards = cards};
    heap_push(sim, (struct ending){sim->now + sim->w->jobs[who - 1].duration, who});
}

struct sim *
sim_new(const struct workload *w, const struct machine *m, const struct policy *policy)
{
    struct sim *sim = xcalloc(1, sizeof *sim);
    sim->w = w;
    sim->entries = xmalloc((w->n + 1) * sizeof *sim->entries);
    sim->out.runs = xmalloc((w->n + 1) * sizeof *sim->out.runs);
    sim->out.n = w->n;
    for (size_t i = 0; i < w->n; i++) {
        const struct sim_job *job = &w->jobs[i];
        sim->entries[i + 1] = (struct entry){
            .arrival = job->arrival,
            .run = policy->estimates ? job->estimate : job->duration,
            .shape = job->shape,
        };
        sim->out.runs[i] = (struct sim_run){.start = -1};
    }
    node_init(&sim->node, m->total_mib, m->n, m->margin_mib);
    pass_init(&sim->pass, policy, &sim->node, sim->entries, w->n, w->shapes, w->n_shapes,
              on_start, sim);
    return sim;
}

void
sim_free(struct sim *sim)
{
    if (!sim)
        return;
    pass_free(&sim->pass);
    schedule_free(&sim->out);
    free(sim->entries);
    free(sim->heap);
    free(sim);
}

bool
sim_step(struct sim *sim)
{
    const struct workload *w = sim->w;
    if (sim->n_heap == 0 && sim->arrived == w->n) {
        if (sim->pass.lines.n_waiting)
            err_abort("%zu jobs wait for nothing", sim->pass.lines.n_waiting);
        return false;
    }
    sim->now = sim->n_heap ? sim->heap[0].at : w->jobs[sim->arrived].arrival;
    if (sim->arrived < w->n && w->jobs[sim->arrived].arrival < sim->now)
        sim->now = w->jobs[sim->arrived].arrival;
    while (sim->n_heap && sim->heap[0].at == sim->now) {
        uint32_t who = heap_pop(sim).who;
        const struct sim_run *run = &sim->out.runs[who - 1];
        pass_end(&sim->pass, who, run->cards, run->start, sim->now);
        sim->out.events++;
    }
    while (sim->arrived < w->n && w->jobs[sim->arrived].arrival == sim->now) {
        pass_arrive(&sim->pass, (uint32_t)++sim->arrived);
        sim->out.events++;
    }
    if (sim->pass.lines.n_waiting > sim->out.most_waiting)
        sim->out.most_waiting = sim->pass.lines.n_waiting;
    if (sim->pass.lines.n_waiting)
        pass_run(&sim->pass, sim->now);
    return true;
}

int64_t
sim_now(const struct sim *sim)
{
    return sim->now;
}

const struct pass *
sim_pass(const struct sim *sim)
{
    return &sim->pass;
}

const struct sim_run *
sim_runs(const struct sim *sim)
{
    return sim->out.runs;
}

void
sim_schedule(const struct workload *w, const struct machine *m, const struct policy *policy,
             struct schedule *out)
{
    struct sim *sim = sim_new(w, m, policy);
    while (sim_step(sim))
        ;
    *out = sim->out;
    sim->out.runs = NULL;
    sim_free(sim);
}
