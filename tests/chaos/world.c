/* A world as a whole: its creation, its steps, the changes of a job, and the invariants that
 * must hold after each step. */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "daemon/state/depend_turns.h"
#include "daemon/state/job_facts.h"
#include "daemon/turn/past_store.h"
#include "store/store.h"

#define HALF_LIFE_MS   (3600 * 1000)
#define DRAIN_MAX      5000
#define FIRST_STRANGER 1000

void
world_fail(const struct world *w, const char *file, int line, const char *what)
{
    const char *slash = strrchr(file, '/');
    fprintf(stderr, "seed=%llu step=%ld %s:%d: %s\n", (unsigned long long)w->seed, w->step,
            slash ? slash + 1 : file, line, what);
    exit(1);
}

void
world_say(const struct world *w, const char *form, ...)
{
    va_list args;
    if (!w->verbose)
        return;
    fprintf(stderr, "%8ld  ", w->step);
    va_start(args, form);
    vfprintf(stderr, form, args);
    va_end(args);
    fputc('\n', stderr);
}

static uint64_t
mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t
draw(struct world *w, uint64_t below)
{
    return mix(w->rng += UINT64_C(0x9e3779b97f4a7c15)) % below;
}

bool
chance(struct world *w, uint64_t per_cent)
{
    return draw(w, 100) < per_cent;
}

static void
draw_rules(struct world *w)
{
    w->rules = (struct plan_rules){.order = w->calm ? PLAN_QUEUE : (enum plan_order)draw(w, 4),
                                   .patience_ms = chance(w, 50) ? 60000 : INT64_MAX,
                                   .reservations =
                                       !w->calm && chance(w, 50) ? 1 + (int32_t)draw(w, 4) : 0,
                                   .fair_share = !w->calm && chance(w, 50)};
    if (w->calm || chance(w, 50))
        return;
    w->limits.each = (struct limit){.running = 1 + (int32_t)draw(w, 8),
                                    .gpus = chance(w, 50) ? 1 + (int32_t)draw(w, 8) : 0,
                                    .vram_mib = chance(w, 50) ? 90000 : 0};
    w->limits.all = (struct limit){.running = chance(w, 50) ? 4 + (int32_t)draw(w, 20) : 0};
    w->rules.limits = &w->limits;
}

static int64_t
now_us(void *arg)
{
    const struct world *w = arg;
    return w->now_us;
}

static const char *
user_name(uint32_t uid)
{
    (void)uid;
    return "somebody";
}

static void
explain_end(void *arg, struct job *job)
{
    (void)arg, (void)job;
}

void
world_make_state(struct world *w)
{
    w->written = past_of_store(w->store);
    w->around = (struct around){.arg = w,
                                .wall_us = now_us,
                                .boot_us = now_us,
                                .user_name = user_name,
                                .explain_end = explain_end};
    w->s = (struct state){.queue = w->q,
                          .ledger = w->l,
                          .planner = w->planner,
                          .fair = w->fair,
                          .limits = &w->limits,
                          .past = &w->written,
                          .around = &w->around,
                          .system = true};
    state_open(&w->s);
}

struct world *
world_new(uint64_t seed, const char *dir, bool verbose)
{
    static const int32_t sizes[] = {11264, 24576, 24576, 81920};
    struct world *w = xcalloc(1, sizeof *w);
    struct err e;
    w->seed = seed;
    w->rng = mix(seed);
    w->verbose = verbose;
    w->calm = chance(w, 40);
    w->now_us = INT64_C(1000000000) * SECOND_US;
    w->next_id = 1;
    w->next_pid = FIRST_STRANGER;
    w->n_cards = 1 + (int)draw(w, CARDS_MAX);
    for (int i = 0; i < w->n_cards; i++)
        w->total_mib[i] = sizes[draw(w, 4)];
    draw_rules(w);
    w->q = queue_new();
    w->l = cards_ledger(w);
    w->fair = fair_new(HALF_LIFE_MS);
    w->planner = planner_new(&w->rules, w->fair);
    w->dir = xstrdup(dir);
    if (store_open(dir, &w->store, &e) < 0)
        err_abort("%s", e.text);
    world_make_state(w);
    turns_make(w);
    world_say(w, "%d cards, %s, order %d, fair share %d, limits %d", w->n_cards,
              w->calm ? "calm" : "wild", (int)w->rules.order, w->rules.fair_share,
              w->rules.limits != NULL);
    return w;
}

void
world_free(struct world *w)
{
    turn_free(w->turn);
    state_close(&w->s);
    planner_free(w->planner);
    fair_free(w->fair);
    ledger_free(w->l);
    queue_free(w->q);
    store_close(w->store);
    free(w->procs);
    free(w->past);
    free(w->dir);
    free(w);
}

/* Jobs. */

struct known *
past_of(struct world *w, uint32_t id)
{
    if (id >= w->cap_past) {
        size_t cap = ((size_t)id + 1) * 2;
        w->past = xrealloc(w->past, cap * sizeof *w->past);
        memset(w->past + w->cap_past, 0, (cap - w->cap_past) * sizeof *w->past);
        w->cap_past = cap;
    }
    return &w->past[id];
}

struct process *
world_process(struct world *w, uint32_t job)
{
    for (size_t i = 0; i < w->n_procs; i++) {
        if (w->procs[i].job == job)
            return &w->procs[i];
    }
    return NULL;
}

struct job *
world_any_job(struct world *w)
{
    size_t n;
    struct job **jobs = queue_list_by_id(w->q, QUEUE_ALL, &n);
    struct job *job = n ? jobs[draw(w, n)] : NULL;
    free(jobs);
    return job;
}

void
world_add(struct world *w, struct job *job)
{
    w->n_accepted++;
    jobs_add(&w->s, job, NULL);
    depend_enter(&w->s, job, NULL);
}

/* --- steps --- */

static void
check_cards(struct world *w)
{
    for (int i = 0; i < w->n_cards; i++) {
        const struct card *c = ledger_card(w->l, i);
        int32_t shares = 0;
        for (int h = 0; h < c->n_holds; h++) {
            shares += c->holds[h].share_permille;
            CHECK(w, world_process(w, c->holds[h].job));
            CHECK(w, !c->holds[h].exclusive || c->n_holds == 1);
        }
        CHECK(w, shares <= 1000);
        CHECK(w, card_state(c) == w->state[i]);
    }
}

static void
check_world(struct world *w)
{
    CHECK_NULL(w, ledger_check(w->l));
    CHECK_NULL(w, queue_check(w->q));
    CHECK(w, queue_n(w->q) + w->n_ended == w->n_accepted);
    CHECK(w, queue_n_active(w->q) == w->n_procs);
    for (struct job *job = queue_active(w->q); job; job = queue_active_next(job))
        CHECK(w, world_process(w, job->id) && ledger_holds(w->l, job->id));
    check_cards(w);
}

/* In a calm world time stops at each end, so that no job exceeds its declared limit. */
static void
pass_time(struct world *w)
{
    int64_t next = cards_next_end(w);
    int64_t to = w->now_us + (int64_t)draw(w, 60 * SECOND_US);
    if (w->calm)
        to = next != INT64_MAX && (to > next || chance(w, 50)) ? next : to;
    w->now_us = to;
    world_say(w, "time passes");
    cards_end_due(w);
}

static void
restart(struct world *w)
{
    restart_daemon(w, true);
}

struct kind_of_step {
    void (*run)(struct world *w);
    unsigned wild, calm; /* weights in wild and calm worlds */
};

static const struct kind_of_step kinds_of_steps[] = {
    {ask_submit, 20, 40},
    {ask_array, 3, 5},
    {ask_change, 5, 0},
    {ask_event, 10, 0},
    {cards_stir_processes, 15, 0},
    {cards_stir_strangers, 4, 0},
    {cards_end_one, 14, 0},
    {cards_sample, 10, 4},
    {cards_change, 2, 0},
    {pass_time, 12, 50},
    {restart, 1, 1},
};

static void
run_kind(struct world *w)
{
    size_t n = sizeof kinds_of_steps / sizeof *kinds_of_steps;
    unsigned total = 0;
    for (size_t i = 0; i < n; i++)
        total += w->calm ? kinds_of_steps[i].calm : kinds_of_steps[i].wild;
    unsigned at = (unsigned)draw(w, total);
    for (size_t i = 0; i < n; i++) {
        unsigned part = w->calm ? kinds_of_steps[i].calm : kinds_of_steps[i].wild;
        if (at < part) {
            kinds_of_steps[i].run(w);
            return;
        }
        at -= part;
    }
}

void
world_step(struct world *w, long number)
{
    w->step = number;
    w->rng = mix(w->seed ^ mix((uint64_t)number));
    run_kind(w);
    cards_clear_ended(w);
    bool crash = chance(w, 1);
    if (crash || chance(w, 50))
        turns_commit(w);
    if (w->calm || crash || chance(w, 70))
        turns_plan(w, crash);
    check_world(w);
}

static void
release_all(struct world *w)
{
    size_t n;
    struct job **held = queue_list_by_id(w->q, 1U << JOB_HELD, &n);
    struct err e;
    for (size_t i = 0; i < n; i++)
        jobs_release(&w->s, held[i], &e);
    free(held);
}

/* Prints the jobs that will never end, with the reason. */
static void
name_the_stuck(struct world *w)
{
    size_t n;
    struct job **jobs = queue_list_by_id(w->q, QUEUE_ALL, &n);
    for (size_t i = 0; i < n; i++) {
        auto_buf struct buf why = BUF_INIT;
        plan_explain_text(w->q, jobs[i], &why);
        fprintf(stderr, "job %u is %s for ever: %s\n", jobs[i]->id,
                job_state_name(jobs[i]->state), buf_str(&why));
    }
    free(jobs);
}

void
world_drain(struct world *w)
{
    memset(w->others, 0, sizeof w->others);
    cards_all_up(w);
    for (long rounds = 0; queue_n(w->q) > 0; rounds++) {
        if (rounds == DRAIN_MAX)
            name_the_stuck(w);
        CHECK(w, rounds < DRAIN_MAX);
        w->step++;
        w->rng = mix(w->seed ^ mix((uint64_t)w->step));
        release_all(w);
        pass_time(w);
        if (!w->calm)
            cards_end_one(w);
        cards_sample(w);
        cards_clear_ended(w);
        turns_commit(w);
        turns_plan(w, false);
        check_world(w);
    }
    CHECK(w, w->n_ended == w->n_accepted);
}
