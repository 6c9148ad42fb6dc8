/* The event loop of virtual time, from one end or arrival to the next; sim/textbook/pass.c
 * makes the decisions. Entries of the pass have the numbers of the workload's jobs, from 1. */
#include "sim/textbook/textbook_sim.h"

#include <stdlib.h>

#include "base/err.h"
#include "core/plan/ends.h"
#include "sim/textbook/pass.h"

struct sim {
    const struct workload *w;
    struct node node;
    struct pass pass;
    struct entry *entries;
    struct schedule out;
    int64_t now;
    size_t arrived;
    struct ends ends;
};

void
schedule_free(struct schedule *s)
{
    free(s->runs);
    *s = (struct schedule){.n = 0};
}

static void
on_start(void *arg, uint32_t who, uint64_t cards)
{
    struct sim *sim = arg;
    sim->out.runs[who - 1] = (struct sim_run){.start = sim->now, .cards = cards};
    ends_push(&sim->ends,
              (struct end){.at = sim->now + sim->w->jobs[who - 1].duration, .who = who});
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
    ends_free(&sim->ends);
    free(sim);
}

bool
sim_step(struct sim *sim)
{
    const struct workload *w = sim->w;
    if (sim->ends.n == 0 && sim->arrived == w->n) {
        if (sim->pass.lines.n_waiting)
            err_abort("%zu jobs wait for nothing", sim->pass.lines.n_waiting);
        return false;
    }
    sim->now = sim->ends.n ? sim->ends.heap[0].at : w->jobs[sim->arrived].arrival;
    if (sim->arrived < w->n && w->jobs[sim->arrived].arrival < sim->now)
        sim->now = w->jobs[sim->arrived].arrival;
    while (ends_next(&sim->ends) == sim->now) {
        uint32_t who = ends_pop(&sim->ends).who;
        const struct sim_run *run = &sim->out.runs[who - 1];
        pass_end(&sim->pass, who, run->cards, run->start);
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
