/* What really runs on the GPUs: the jobs' processes and their memory, other programs, samples
 * of both, ends, and GPUs that are paused, lost and back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "daemon/state/job_facts.h"
#include "world.h"

#define STRANGER_MIB   15000
#define SMALL_MIB      900
#define LISTED_MAX     (STRANGERS + LIVE_MAX * 2)
#define END_GIVEN_UP   2 /* % of steps in which the wait for an ended job's memory times out */
#define SPIKE_PER_CENT 11

struct ledger *
cards_ledger(struct world *w)
{
    struct ledger *l = ledger_new(NULL);
    for (int i = 0; i < w->n_cards; i++) {
        struct gpu_info info = {.index = i,
                                .minor = i,
                                .numa = i % NODES,
                                .cc = CC_OF(i),
                                .total_mib = w->total_mib[i]};
        struct gpu_sample s = {.used_mib = w->used[i], .util = w->util[i], .temperature_c = -1};
        snprintf(info.uuid, sizeof info.uuid, "GPU-%d", i);
        ledger_add_card(l, &info);
        ledger_sample(l, i, &s, w->now_us, NULL, NULL);
        if (w->state[i] == GPU_PAUSED)
            ledger_set_admin(l, i, GPU_PAUSED, w->now_us);
        if (w->state[i] == GPU_LOST)
            ledger_set_health(l, i, GPU_LOST, w->now_us);
    }
    for (int node = 0; node < NODES; node++)
        ledger_set_node(l, node, CPUS / NODES);
    ledger_set_known(l);
    ledger_set_host(l, CPUS, MEM_MIB);
    return l;
}

/* Other programs and jobs' processes start, grow and end. */

void
cards_stir_strangers(struct world *w)
{
    int card = (int)draw(w, (uint64_t)w->n_cards);
    struct other *o = &w->others[card][draw(w, STRANGERS)];
    if (!o->pid && chance(w, 30))
        *o = (struct other){.pid = w->next_pid++};
    if (!o->pid)
        return;
    o->mib = (int32_t)draw(w, chance(w, 20) ? STRANGER_MIB : SMALL_MIB);
    if (chance(w, 40))
        *o = (struct other){0};
    world_say(w, "a stranger takes %d MiB of card %d", o->mib, card);
}

void
cards_stir_processes(struct world *w)
{
    if (w->n_procs == 0)
        return;
    struct process *p = &w->procs[draw(w, w->n_procs)];
    const struct job *job = queue_get(w->q, p->job);
    int32_t demand = job->req.demand.vram_mib;
    if (p->gone || p->n == 0)
        return;
    uint64_t most = demand ? (uint64_t)demand + 1 : 20000;
    if (chance(w, 5))
        most += most / 2;
    int at = (int)draw(w, p->n);
    p->mib[at] = (int32_t)draw(w, most);
    world_say(w, "job %u takes %d MiB of card %d", p->job, p->mib[at], p->gpus[at]);
}

/* Samples */

static int
list_card(struct world *w, int card, struct gpu_proc *list)
{
    int n = 0;
    w->used[card] = 0;
    w->other_peaks[card] = 0;
    for (int i = 0; i < STRANGERS; i++) {
        struct other *o = &w->others[card][i];
        if (!o->pid)
            continue;
        o->peak = o->mib > o->peak ? o->mib : o->peak;
        w->used[card] += o->mib;
        w->other_peaks[card] += o->peak;
        list[n++] = (struct gpu_proc){.pid = o->pid, .mib = o->mib};
    }
    for (size_t i = 0; i < w->n_procs; i++) {
        struct process *p = &w->procs[i];
        for (int s = 0; s < p->n; s++) {
            if (p->gpus[s] != card)
                continue;
            p->sampled[s] = p->gone ? -1 : p->mib[s];
            if (p->sampled[s] > p->peak[s])
                p->peak[s] = p->sampled[s];
            if (p->sampled[s] < 0)
                continue;
            w->used[card] += p->mib[s];
            list[n++] = (struct gpu_proc){.pid = -1, .mib = p->mib[s], .job = p->job};
        }
    }
    return n;
}

int64_t
cards_true_external(const struct world *w, const struct ledger *l, int card)
{
    int64_t own = 0;
    for (size_t i = 0; i < w->n_procs; i++) {
        const struct process *p = &w->procs[i];
        for (int s = 0; s < p->n; s++) {
            if (p->gpus[s] == card && p->sampled[s] > 0 && ledger_find_hold(l, card, p->job))
                own += p->sampled[s];
        }
    }
    int64_t by_peaks = (w->other_peaks[card] * SPIKE_PER_CENT + 9) / 10;
    int64_t by_used = w->used[card] - own;
    return by_used > by_peaks ? by_used : by_peaks;
}

/* A job that has just been planned has no process yet, so its demand counts. */
int64_t
cards_true_budget(struct world *w, const struct hold *h, int card)
{
    const struct process *p = world_process(w, h->job);
    int64_t budget = h->demand_mib;
    for (int s = 0; p && s < p->n; s++) {
        if (p->gpus[s] == card && p->peak[s] > budget)
            budget = ((int64_t)p->peak[s] * SPIKE_PER_CENT + 9) / 10;
    }
    return budget;
}

static void
on_excess(void *arg, const struct ledger_excess *x)
{
    struct world *w = arg;
    CHECK(w, queue_get(w->q, x->job) && x->mib > x->declared_mib);
}

/* Changes to the store and state after each sample, as the daemon makes them. */
static void
note_peaks(struct world *w)
{
    for (struct job *job = queue_active(w->q); job; job = queue_active_next(job)) {
        bool is_new = false;
        for (int s = 0; s < job->run->n_gpus; s++) {
            int32_t peak = ledger_find_hold(w->l, job->run->gpus[s], job->id)->peak_mib;
            is_new |= peak != job->run->peak_mib[s];
            job->run->peak_mib[s] = peak;
        }
        if (is_new)
            state_save(&w->s, job, SAVE_ATTEMPT);
    }
}

void
cards_sample(struct world *w)
{
    struct gpu_proc list[LISTED_MAX];
    for (int i = 0; i < w->n_cards; i++) {
        if (w->state[i] == GPU_LOST)
            continue;
        int n = list_card(w, i, list);
        w->util[i] = n > 0 ? 50 : 0;
        struct gpu_sample s = {w->used[i], w->util[i], 50, list, n, NULL, 0, 0};
        ledger_sample(w->l, i, &s, w->now_us, on_excess, w);
        CHECK(w, ledger_card(w->l, i)->external_mib == cards_true_external(w, w->l, i));
    }
    note_peaks(w);
    world_say(w, "the cards are sampled");
}

/* Ends */

static struct ending
draw_ending(struct world *w, const struct job *job)
{
    struct ending e = {.outcome = OUTCOME_EXITED, .cpu_ms = -1, .max_rss_kib = -1};
    if (job->cancel_asked || job->requeue_asked) {
        if (chance(w, 80))
            e.outcome = job->cancel_asked                         ? OUTCOME_CANCELLED
                        : job->requeue_asked == REQUEUE_PREEMPTED ? OUTCOME_PREEMPTED
                                                                  : OUTCOME_REQUEUED;
        return e;
    }
    if (w->calm)
        return e;
    switch (draw(w, 8)) {
    case 0:
        e.code = 1;
        break;
    case 1:
        e.code = 1;
        e.oom = OOM_CUDA;
        break;
    case 2:
        e.outcome = OUTCOME_SIGNALED;
        e.signal = 9;
        break;
    case 3:
        e.outcome = OUTCOME_LOST;
        break;
    case 4:
        e.outcome = job->run->started_us ? OUTCOME_EXITED : OUTCOME_NEVER_RAN;
        break;
    default:
        break;
    }
    return e;
}

static void
end_process(struct world *w, struct process *p, struct ending e)
{
    struct job *job = queue_get(w->q, p->job);
    CHECK(w, job && job_state_is_active(job->state));
    p->gone = true;
    e.ended_us = w->now_us;
    e.run_ms = (w->now_us - p->started_us) / 1000;
    world_say(w, "job %u ends: %s", p->job, outcome_name(e.outcome));
    jobs_attempt_ended(&w->s, job, &e);
    CHECK(w, job->state != JOB_STARTING && job->state != JOB_RUNNING);
}

void
cards_end_one(struct world *w)
{
    if (w->n_procs == 0)
        return;
    struct process *p = &w->procs[draw(w, w->n_procs)];
    if (!p->gone)
        end_process(w, p, draw_ending(w, queue_get(w->q, p->job)));
}

int64_t
cards_next_end(const struct world *w)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < w->n_procs; i++) {
        if (!w->procs[i].gone && w->procs[i].ends_us < next)
            next = w->procs[i].ends_us;
    }
    return next;
}

void
cards_end_due(struct world *w)
{
    for (size_t i = 0; i < w->n_procs; i++) {
        struct process *p = &w->procs[i];
        if (p->gone || p->ends_us > w->now_us)
            continue;
        struct ending e = {.outcome = w->calm ? OUTCOME_EXITED : OUTCOME_TIMEOUT,
                           .cpu_ms = -1,
                           .max_rss_kib = -1};
        end_process(w, p, e);
    }
}

/* Ended jobs release their GPUs once their memory is back, or after the wait times out. */
void
cards_clear_ended(struct world *w)
{
    for (size_t i = 0; i < w->n_procs;) {
        const struct process *p = &w->procs[i];
        struct job *job = queue_get(w->q, p->job);
        bool is_over =
            p->gone && (job->state != JOB_COMPLETING ||
                        jobs_check_clear(&w->s, job, w->calm || chance(w, END_GIVEN_UP)));
        if (is_over)
            w->procs[i] = w->procs[--w->n_procs];
        else
            i++;
    }
}

/* GPUs */

/* A GPU that comes back is sampled before it is used. */
static void
set_card(struct world *w, int card, enum gpu_state s)
{
    bool is_back = w->state[card] == GPU_LOST && s != GPU_LOST;
    w->state[card] = s;
    ledger_set_admin(w->l, card, s == GPU_PAUSED ? s : GPU_UP, w->now_us);
    ledger_set_health(w->l, card, s == GPU_LOST ? s : GPU_UP, w->now_us);
    if (is_back)
        cards_sample(w);
}

void
cards_change(struct world *w)
{
    static const enum gpu_state states[] = {GPU_UP, GPU_UP, GPU_UP, GPU_PAUSED, GPU_LOST};
    int card = (int)draw(w, (uint64_t)w->n_cards);
    enum gpu_state s = states[draw(w, 5)];
    set_card(w, card, s);
    world_say(w, "card %d is %s", card, gpu_state_name(s));
}

void
cards_all_up(struct world *w)
{
    for (int i = 0; i < w->n_cards; i++)
        set_card(w, i, GPU_UP);
}
