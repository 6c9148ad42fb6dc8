/* Random histories of a machine and its queue, one seed each: submissions of every kind,
 * samples with strangers and spikes, ends, cancels, holds, retries, paused and lost cards,
 * restarts. The world below knows what is really on the cards; after each step it compares
 * that with what the core believes. A failure prints seed and step; run one again with
 * BERTH_CHAOS_SEED=n, longer with BERTH_CHAOS_STEPS=n. */
#include "base/err.h"
#include "machine.h"

#define CARDS     4
#define STRANGERS 3
#define STEPS     50000
#define SEEDS     6
#define CPUS      12
#define MARGIN    512
#define IDLE      1024

/* What a running job really does. */
struct process {
    uint32_t job;
    uint8_t n, gpus[GPU_MAX];
    int32_t mib[GPU_MAX];     /* on each card, in truth */
    int32_t sampled[GPU_MAX]; /* as last sampled */
    int32_t peak[GPU_MAX];    /* the largest of those */
    bool gone;
};

struct other {
    int32_t pid; /* 0: none */
    int32_t mib, peak;
};

struct world {
    uint64_t rng, seed;
    long step;
    struct queue *q;
    struct ledger *l;
    int64_t now_us;
    uint32_t next_id;
    uint8_t *ended; /* by id: how often */
    size_t cap_ended, n_ended;
    struct process *procs;
    size_t n_procs, cap_procs;
    struct other others[CARDS][STRANGERS];
    int32_t next_pid;
    int64_t used[CARDS];        /* as last sampled */
    int64_t other_peaks[CARDS]; /* sum of peaks, as last sampled */
    enum gpu_state state[CARDS];
};

#define CHECK(w, cond)                                                                         \
    do {                                                                                       \
        if (!(cond))                                                                           \
            fail_msg("seed=%llu step=%ld: %s", (unsigned long long)(w)->seed, (w)->step,       \
                     #cond);                                                                   \
    } while (0)

static uint64_t
draw(struct world *w, uint64_t below)
{
    uint64_t z = (w->rng += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % below;
}

static bool
chance(struct world *w, uint64_t per_cent)
{
    return draw(w, 100) < per_cent;
}

static struct process *
process_of(struct world *w, uint32_t job)
{
    for (size_t i = 0; i < w->n_procs; i++) {
        if (w->procs[i].job == job)
            return &w->procs[i];
    }
    return NULL;
}

/* Submitting. */

static struct demand
draw_demand(struct world *w)
{
    static const int sizes[] = {0, 0, 500, 2000, 6000, 8000, 14336, 20000, 24064, 30000};
    struct demand d = want(1, sizes[draw(w, 10)]);
    if (chance(w, 20))
        d.gpus = (int32_t)draw(w, CARDS + 2);
    if (chance(w, 10))
        d.exclusive = 1;
    if (chance(w, 10))
        d.devices = 1 + draw(w, 15);
    if (chance(w, 10)) {
        d.n_ids = 2;
        d.ids[0] = (uint8_t)draw(w, CARDS);
        d.ids[1] = (uint8_t)draw(w, CARDS);
        d.gpus = 2;
    }
    if (chance(w, 30))
        d.cpus = (int32_t)draw(w, CPUS + 2);
    if (chance(w, 25) && d.gpus == 1)
        d.share_permille = 1 + (int32_t)draw(w, 1000);
    if (chance(w, 10))
        d.margin_mib = (int32_t)draw(w, 2000);
    if (chance(w, 10))
        d.max_used_permille = 1 + (int32_t)draw(w, 1000);
    return d;
}

static void
submit(struct world *w)
{
    struct job *job = new_job(w->next_id++, draw_demand(w));
    job->order = queue_next_order(w->q);
    job->req.priority = (int32_t)draw(w, 3) - 1;
    job->req.oom_retries = (int32_t)draw(w, 3);
    job->req.retries = (int32_t)draw(w, 3);
    job->req.requeue = chance(w, 50);
    job->uid = (uint32_t)draw(w, 2);
    if (chance(w, 5))
        job->state = JOB_HELD;
    if (job->id >= w->cap_ended) {
        w->ended = xrealloc(w->ended, w->cap_ended * 2);
        memset(w->ended + w->cap_ended, 0, w->cap_ended);
        w->cap_ended *= 2;
    }
    queue_add(w->q, job);
}

/* Applies, refiles, and takes the job out of the world when it is over. */
static enum job_verdict
apply(struct world *w, struct job *job, struct job_event *ev)
{
    ev->wall_us = w->now_us;
    enum job_verdict v = job_apply(job, ev, NULL);
    if (!job_state_is_active(job->state))
        ledger_release(w->l, job->id);
    queue_refile(w->q, job);
    if (job_state_is_final(job->state)) {
        CHECK(w, w->ended[job->id] == 0);
        w->ended[job->id]++;
        w->n_ended++;
        job_free(queue_remove(w->q, job->id));
    }
    return v;
}

/* Planning, and what must be true of each decision when it is made. */

static int64_t
true_external(const struct world *w, const struct ledger *l, int card)
{
    int64_t own = 0;
    for (size_t i = 0; i < w->n_procs; i++) {
        const struct process *p = &w->procs[i];
        for (int s = 0; s < p->n; s++) {
            if (p->gpus[s] == card && p->sampled[s] > 0 && ledger_find_hold(l, card, p->job))
                own += p->sampled[s];
        }
    }
    int64_t by_peaks = (w->other_peaks[card] * 11 + 9) / 10;
    int64_t by_used = w->used[card] - own;
    return by_used > by_peaks ? by_used : by_peaks;
}

/* A job that has just been planned has no process yet: its demand counts. */
static int64_t
true_budget(struct world *w, const struct hold *h, int card)
{
    const struct process *p = process_of(w, h->job);
    int64_t budget = h->demand_mib;
    for (int s = 0; p && s < p->n; s++) {
        if (p->gpus[s] == card && p->peak[s] > budget)
            budget = ((int64_t)p->peak[s] * 11 + 9) / 10;
    }
    return budget;
}

static void
check_card_choice(struct world *w, const struct ledger *l, const struct demand *d, int card)
{
    int64_t external = true_external(w, l, card), budgets = 0, shares = d->share_permille;
    int64_t need = demand_vram_mib(d, CARD_MIB);
    bool by_part = d->vram_mib == 0 && d->share_permille > 0;
    const struct card *c = ledger_card(l, card);
    CHECK(w, w->state[card] == GPU_UP);
    CHECK(w, d->n_ids || !d->devices || (d->devices >> card & 1));
    for (int i = 0; i < c->n_holds; i++) {
        CHECK(w, c->holds[i].demand_mib > 0 && !c->holds[i].exclusive);
        budgets += true_budget(w, &c->holds[i], card);
        shares += queue_get(w->q, c->holds[i].job)->req.demand.share_permille;
    }
    CHECK(w, shares <= 1000);
    if (d->max_used_permille)
        CHECK(w, (int64_t)w->used[card] * 1000 < (int64_t)CARD_MIB * d->max_used_permille);
    if (demand_is_whole(d) || d->exclusive)
        CHECK(w, c->n_holds == 0);
    if (by_part && external < IDLE)
        external = 0;
    need += d->margin_mib >= 0 ? d->margin_mib : by_part ? 0 : MARGIN;
    if (demand_is_whole(d))
        CHECK(w, external < IDLE);
    else
        CHECK(w, budgets + need + external <= CARD_MIB);
}

static void
check_start(struct world *w, const struct ledger *l, const struct job *job,
            const struct placement *p)
{
    const struct demand *d = &job->req.demand;
    uint64_t mask = 0;
    CHECK(w, p->n == (d->n_ids ? d->n_ids : d->gpus));
    for (int i = 0; i < p->n; i++) {
        CHECK(w, !d->n_ids || p->gpus[i] == d->ids[i]);
        CHECK(w, !(mask >> p->gpus[i] & 1));
        mask |= UINT64_C(1) << p->gpus[i];
        check_card_choice(w, l, d, p->gpus[i]);
    }
    CHECK(w, ledger_cpus_held(l) + demand_cpus(d) <= CPUS);
}

static void
take_start(struct world *w, struct job *job, const struct placement *where)
{
    struct attempt *run = xcalloc(1, sizeof *run);
    run->n_gpus = where->n;
    run->vram_mib = job->req.demand.vram_mib;
    struct process p = {.job = job->id, .n = where->n};
    for (int i = 0; i < where->n; i++) {
        run->gpus[i] = p.gpus[i] = where->gpus[i];
        run->peak_mib[i] = -1;
        p.sampled[i] = -1;
    }
    if (w->n_procs == w->cap_procs) {
        w->cap_procs = w->cap_procs * 2 + 16;
        w->procs = xrealloc(w->procs, w->cap_procs * sizeof *w->procs);
    }
    w->procs[w->n_procs++] = p;
    struct job_event ev = {.type = JOB_EV_START, .run = run};
    CHECK(w, apply(w, job, &ev) == JOB_NEXT);
}

/* Who is passed over has no room, or is kept back for one who is waiting and has none. */
static void
check_passed_over(struct world *w, const struct ledger *l, const struct kind *k)
{
    struct placement unused;
    if (!place_job(&k->demand, l, &unused, NULL))
        return;
    CHECK(w, k->blocked.reason == REASON_RESERVATION);
    const struct job *kept = queue_get(w->q, k->blocked.waits_for);
    CHECK(w, kept && kept->kind && kept->kind != k && kept->kind->head == kept);
    CHECK(w, !place_job(&kept->req.demand, l, &unused, NULL));
}

/* In a line nobody starts before the one in front of it, and no line is passed over that
 * comes first and whose head has room. */
static void
check_turn(struct world *w, const struct ledger *l, const struct job *job)
{
    CHECK(w, job->state == JOB_PENDING);
    CHECK(w, job->kind && job->kind->head == job);
    for (size_t i = 0; i < queue_n_kinds(w->q); i++) {
        const struct job *other = queue_kind(w->q, i)->head;
        if (other->req.priority > job->req.priority ||
            (other->req.priority == job->req.priority && other->order < job->order))
            check_passed_over(w, l, other->kind);
    }
}

static void
check_nothing_was_missed(struct world *w)
{
    for (size_t i = 0; i < queue_n_kinds(w->q); i++) {
        check_passed_over(w, w->l, queue_kind(w->q, i));
        CHECK(w, queue_kind(w->q, i)->blocked.reason != REASON_NONE);
    }
}

static void
plan(struct world *w)
{
    auto_plan struct plan p = PLAN_INIT;
    struct ledger *replay = ledger_clone(w->l);
    struct planner *planner = planner_new(&rules_greedy, NULL);
    uint32_t next_id = UINT32_MAX / 2;
    plan_make(planner, w->q, w->l, w->now_us, &next_id, &p);
    planner_free(planner);
    for (size_t i = 0; i < p.n; i++) {
        struct job *job = queue_get(w->q, p.decisions[i].job);
        CHECK(w, job != NULL);
        if (p.decisions[i].type == PLAN_INFEASIBLE) {
            struct job_event ev = {.type = JOB_EV_INFEASIBLE, .text = p.decisions[i].text};
            CHECK(w, apply(w, job, &ev) == JOB_NEXT);
            continue;
        }
        const struct placement *where = &p.decisions[i].where;
        check_turn(w, replay, job);
        check_start(w, replay, job, where);
        ledger_hold(replay, job->id, &job->req.demand, where->gpus, where->n);
        take_start(w, job, where);
    }
    ledger_free(replay);
    check_nothing_was_missed(w);
}

/* What happens on the cards. */

static void
stir_strangers(struct world *w)
{
    int card = (int)draw(w, CARDS);
    struct other *o = &w->others[card][draw(w, STRANGERS)];
    if (!o->pid && chance(w, 30))
        *o = (struct other){.pid = w->next_pid++};
    if (!o->pid)
        return;
    o->mib = (int32_t)draw(w, chance(w, 20) ? 15000 : 900);
    if (chance(w, 40))
        *o = (struct other){0};
}

static void
stir_processes(struct world *w)
{
    if (w->n_procs == 0)
        return;
    struct process *p = &w->procs[draw(w, w->n_procs)];
    const struct job *job = queue_get(w->q, p->job);
    int32_t demand = demand_vram_mib(&job->req.demand, CARD_MIB);
    if (p->gone || p->n == 0)
        return;
    uint64_t most = demand ? (uint64_t)demand + 1 : 20000;
    if (chance(w, 5))
        most += most / 2;
    p->mib[draw(w, p->n)] = (int32_t)draw(w, most);
}

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

static void
on_excess(void *arg, const struct ledger_excess *x)
{
    struct world *w = arg;
    struct job *job = queue_get(w->q, x->job);
    CHECK(w, job && x->mib > x->declared_mib);
    if (job->run->vram_mib > 0)
        CHECK(w, x->declared_mib == job->run->vram_mib);
    else
        CHECK(w, x->declared_mib == demand_vram_mib(&job->req.demand, CARD_MIB));
}

static void
sample_card(struct world *w, int card)
{
    struct gpu_proc list[STRANGERS + 256];
    if (w->state[card] == GPU_LOST)
        return;
    CHECK(w, w->n_procs <= 256);
    int n = list_card(w, card, list);
    struct gpu_sample s = {w->used[card], 50, 50, list, n};
    ledger_sample(w->l, card, &s, w->now_us, on_excess, w);
    CHECK(w, ledger_card(w->l, card)->external_mib == true_external(w, w->l, card));
}

/* What a daemon writes down of each sample. */
static void
note_peaks(struct world *w)
{
    for (struct job *job = queue_active(w->q); job; job = queue_active_next(job)) {
        for (int s = 0; s < job->run->n_gpus; s++)
            job->run->peak_mib[s] =
                ledger_find_hold(w->l, job->run->gpus[s], job->id)->peak_mib;
    }
}

static void
sample_all(struct world *w)
{
    for (int i = 0; i < CARDS; i++)
        sample_card(w, i);
    note_peaks(w);
}

static struct ending
draw_ending(struct world *w)
{
    struct ending e = {.outcome = OUTCOME_EXITED, .ended_us = w->now_us};
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
        e.outcome = (enum outcome)(OUTCOME_TIMEOUT + draw(w, 5));
        break;
    default:
        break;
    }
    return e;
}

static void
end_one(struct world *w)
{
    if (w->n_procs == 0)
        return;
    struct process *p = &w->procs[draw(w, w->n_procs)];
    struct job *job = queue_get(w->q, p->job);
    CHECK(w, job && job_state_is_active(job->state));
    if (p->gone)
        return;
    sample_all(w);
    p->gone = true;
    struct ending e = draw_ending(w);
    for (int i = 0; i < p->n; i++)
        CHECK(w, (job->run->peak_mib[i] > 0 ? job->run->peak_mib[i] : 0) == p->peak[i]);
    struct job_event ev = {.type = JOB_EV_ENDED, .ending = &e};
    CHECK(w, apply(w, job, &ev) == JOB_NEXT);
}

/* Those whose memory is back, or who have waited long enough, leave their cards. */
static void
clear_ended(struct world *w)
{
    for (size_t i = 0; i < w->n_procs;) {
        struct process *p = &w->procs[i];
        struct job *job = queue_get(w->q, p->job);
        if (!p->gone ||
            !(chance(w, 2) || ledger_job_is_clear(w->l, p->job, job->run->ending.ended_us))) {
            i++;
            continue;
        }
        struct job_event ev = {.type = JOB_EV_VRAM_BACK};
        CHECK(w, apply(w, job, &ev) == JOB_NEXT);
        *p = w->procs[--w->n_procs];
    }
}

/* People. */

static void
ask_for_something(struct world *w)
{
    static const enum job_event_type asks[] = {JOB_EV_HOLD, JOB_EV_RELEASE, JOB_EV_RELEASE,
                                               JOB_EV_CANCEL, JOB_EV_STARTED};
    struct job *job = queue_get(w->q, 1 + (uint32_t)draw(w, w->next_id));
    if (!job)
        return;
    struct job_event ev = {.type = asks[draw(w, 5)], .by = "somebody"};
    if (chance(w, 20) && job->state == JOB_PENDING)
        queue_reorder(w->q, job, 1 + draw(w, queue_next_order(w->q)));
    else
        apply(w, job, &ev);
}

static void
change_card(struct world *w)
{
    int card = (int)draw(w, CARDS);
    static const enum gpu_state states[] = {GPU_UP, GPU_UP, GPU_UP, GPU_PAUSED, GPU_LOST};
    enum gpu_state s = states[draw(w, 5)];
    w->state[card] = s;
    ledger_set_admin(w->l, card, s == GPU_PAUSED ? s : GPU_UP, w->now_us);
    ledger_set_health(w->l, card, s == GPU_LOST ? s : GPU_UP, w->now_us);
    sample_all(w);
}

/* A new daemon: the jobs as they were stored, the cards as they are found. */
static void
restart(struct world *w)
{
    size_t n;
    struct job **jobs = queue_list_by_id(w->q, QUEUE_ALL, &n);
    struct queue *q = queue_new();
    struct ledger *l = machine_new(CARDS, CARD_MIB);
    ledger_set_host(l, CPUS, 0);
    for (size_t i = 0; i < n; i++) {
        queue_remove(w->q, jobs[i]->id);
        queue_add(q, jobs[i]);
        const struct attempt *run = jobs[i]->run;
        if (!job_state_is_active(jobs[i]->state))
            continue;
        ledger_hold(l, jobs[i]->id, &jobs[i]->req.demand, run->gpus, run->n_gpus);
        for (int s = 0; s < run->n_gpus; s++)
            ledger_restore_peak(l, run->gpus[s], jobs[i]->id, run->peak_mib[s]);
    }
    free(jobs);
    CHECK(w, queue_n(w->q) == 0);
    queue_free(w->q);
    ledger_free(w->l);
    w->q = q;
    w->l = l;
    for (int i = 0; i < CARDS; i++) {
        for (int s = 0; s < STRANGERS; s++)
            w->others[i][s].peak = 0;
        w->state[i] = GPU_UP;
    }
    sample_all(w);
}

static void
check_world(struct world *w)
{
    const char *wrong = ledger_check(w->l);
    if (wrong)
        fail_msg("seed=%llu step=%ld: %s", (unsigned long long)w->seed, w->step, wrong);
    wrong = queue_check(w->q);
    if (wrong)
        fail_msg("seed=%llu step=%ld: %s", (unsigned long long)w->seed, w->step, wrong);
    CHECK(w, queue_n(w->q) + w->n_ended == w->next_id - 1);
    CHECK(w, queue_n_active(w->q) == w->n_procs);
    for (struct job *job = queue_active(w->q); job; job = queue_active_next(job))
        CHECK(w, process_of(w, job->id) && ledger_holds(w->l, job->id));
    for (int i = 0; i < CARDS; i++) {
        const struct card *c = ledger_card(w->l, i);
        for (int h = 0; h < c->n_holds; h++)
            CHECK(w, process_of(w, c->holds[h].job) &&
                         (!c->holds[h].exclusive || c->n_holds == 1));
        CHECK(w, card_state(c) == w->state[i]);
    }
}

static void
step(struct world *w)
{
    w->now_us += (int64_t)draw(w, 1000000);
    uint64_t what = draw(w, 100);
    if (what < 25 && queue_n(w->q) < 200)
        submit(w);
    else if (what < 45)
        stir_processes(w);
    else if (what < 50)
        stir_strangers(w);
    else if (what < 65)
        end_one(w);
    else if (what < 75)
        ask_for_something(w);
    else if (what < 77)
        change_card(w);
    else if (what < 90)
        sample_all(w);
    else if (what == 99)
        restart(w);
    clear_ended(w);
    if (chance(w, 60))
        plan(w);
    check_world(w);
}

/* Everybody goes home: what is left must end, each exactly once. */
static void
drain(struct world *w)
{
    memset(w->others, 0, sizeof w->others);
    for (int i = 0; i < CARDS; i++) {
        w->state[i] = GPU_UP;
        ledger_set_admin(w->l, i, GPU_UP, w->now_us);
        ledger_set_health(w->l, i, GPU_UP, w->now_us);
    }
    for (long rounds = 0; queue_n(w->q) > 0; rounds++) {
        size_t n;
        CHECK(w, rounds < 100000);
        w->now_us += 1000000;
        struct job **held = queue_list_by_id(w->q, 1u << JOB_HELD, &n);
        for (size_t i = 0; i < n; i++)
            apply(w, held[i], &(struct job_event){.type = JOB_EV_RELEASE});
        free(held);
        end_one(w);
        sample_all(w);
        clear_ended(w);
        plan(w);
        check_world(w);
    }
    for (uint32_t id = 1; id < w->next_id; id++)
        CHECK(w, w->ended[id] == 1);
}

static void
run_history(uint64_t seed, long steps)
{
    struct world w = {.rng = seed, .seed = seed, .next_id = 1, .next_pid = 1000, .now_us = 1};
    w.q = queue_new();
    w.l = machine_new(CARDS, CARD_MIB);
    ledger_set_host(w.l, CPUS, 0);
    w.cap_ended = 1024;
    w.ended = xcalloc(w.cap_ended, 1);
    for (w.step = 1; w.step <= steps; w.step++)
        step(&w);
    drain(&w);
    assert_true(w.n_ended > (size_t)steps / 20);
    queue_free(w.q);
    ledger_free(w.l);
    free(w.ended);
    free(w.procs);
}

static long
from_env(const char *name, long otherwise)
{
    const char *s = getenv(name);
    return s ? strtol(s, NULL, 10) : otherwise;
}

static void
test_random_histories(void **state)
{
    (void)state;
    long steps = from_env("BERTH_CHAOS_STEPS", STEPS);
    long seed = from_env("BERTH_CHAOS_SEED", 0);
    if (seed) {
        run_history((uint64_t)seed, steps);
        return;
    }
    for (seed = 1; seed <= SEEDS; seed++)
        run_history((uint64_t)seed, steps);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_histories)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
