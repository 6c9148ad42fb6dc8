/* See daemon_world.h. */
#include "daemon_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/counted_text.h"
#include "core/learn/runtimes.h"
#include "core/queue/endings.h"
#include "daemon/state/estimates.h"
#include "daemon/state/learned_demands.h"
#include "daemon/turn/jobs_kept.h"
#include "daemon/turn/past_store.h"
#include "daemon/turn/promises_kept.h"
#include "daemon/turn/runs_kept.h"
#include "full_disk.h"
#include "store/store.h"
#include "world_part.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#else
#define __lsan_disable() ((void)0)
#define __lsan_enable()  ((void)0)
#endif

#define START_US INT64_C(1000000000000000)
#define SECOND   INT64_C(1000000)

static int64_t
now(void *arg)
{
    const struct world *w = arg;
    return w->now_us;
}

static int64_t
boot_now(void *arg)
{
    const struct world *w = arg;
    return w->now_us - w->clock_ahead_us;
}

static const char *
user_name(uint32_t uid)
{
    return uid == ALICE ? "alice" : "bob";
}

static void
explain_end(void *arg, struct job *job)
{
    (void)arg, (void)job;
}

static void
make_cards(struct world *w)
{
    struct ledger *l = w->s.ledger = ledger_new(NULL);
    for (int i = 0; i < w->n_cards; i++) {
        struct gpu_info info = {.index = i, .minor = i, .numa = -1, .total_mib = CARD_MIB};
        snprintf(info.uuid, sizeof info.uuid, "GPU-%d", w->uuids[i]);
        ledger_add_card(l, &info);
    }
    ledger_set_known(l);
    ledger_set_host(l, 64, 100000);
    world_sample(w);
}

static void
on_wake(void *arg, bool plan)
{
    struct world *w = arg;
    w->n_plans_due += plan;
    if (plan)
        turn_is_due(w->turn);
    else
        turn_is_due_unplanned(w->turn);
}

/* --- the daemon --- */

/* State that exists only in the process's memory. */
static void
start_daemon(struct world *w)
{
    struct err e = {0};
    if (store_open(w->dir, &w->store, &e) < 0)
        fail_msg("%s", e.text);
    w->past = past_of_store(w->store);
    w->s = (struct state){.queue = queue_new(),
                          .fair = fair_new(3600000),
                          .limits = &w->limits,
                          .past = &w->past,
                          .around = &w->around,
                          .system = true};
    make_cards(w);
    w->s.planner = planner_new(&w->rules, w->s.fair);
    state_open(&w->s);
    struct turn_part own = world_part;
    own.arg = w;
    const struct turn_host host = virtual_host_of(&w->host);
    w->host = (struct virtual_host){.now_us = &w->now_us};
    w->turn = turn_new(&w->s, w->store, &host, &own, 1);
    w->n_told = 0;
    w->s.changes.wake = on_wake;
    w->s.changes.wake_arg = w;
    assert_int_equal(runs_load(w->store, w->s.history, w->s.planner, &e), 0);
}

/* Kills the daemon and frees that memory. */
void
world_dies(struct world *w)
{
    turn_free(w->turn);
    state_close(&w->s);
    queue_free(w->s.queue);
    planner_free(w->s.planner);
    fair_free(w->s.fair);
    ledger_free(w->s.ledger);
    store_rollback(w->store);
    store_close(w->store);
}

struct world *
world_open(int n_cards)
{
    struct world *w = xcalloc(1, sizeof *w);
    disk_set_full(false);
    snprintf(w->dir, sizeof w->dir, "/tmp/berth-state-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    w->n_cards = n_cards;
    for (int i = 0; i < GPU_MAX; i++)
        w->uuids[i] = i;
    w->now_us = START_US;
    w->around = (struct around){.arg = w,
                                .wall_us = now,
                                .boot_us = boot_now,
                                .user_name = user_name,
                                .explain_end = explain_end};
    w->rules = (struct plan_rules){.patience_ms = INT64_MAX, .limits = &w->limits};
    start_daemon(w);
    promises_load(w->turn);
    return w;
}

void
world_close(struct world *w)
{
    char command[96];
    world_dies(w);
    snprintf(command, sizeof command, "rm -rf %s", w->dir);
    assert_int_equal(system(command), 0);
    free(w);
}

/* --- jobs --- */

struct job *
world_job(const struct world *w, uint32_t uid, int gpus)
{
    (void)w;
    struct job *job = job_new();
    job->uid = uid;
    job->task = -1;
    job->req.demand.gpus = gpus;
    job->req.command = xstrdup("train");
    job->req.oom_retries = 0;
    job->cwd = shared_new("/");
    return job;
}

uint32_t
world_submit(struct world *w, struct job *job)
{
    jobs_add(&w->s, job, NULL);
    uint32_t id = job->id;
    depend_enter(&w->s, job, NULL);
    return id;
}

struct job *
world_get(const struct world *w, uint32_t id)
{
    return queue_get(w->s.queue, id);
}

/* --- a turn --- */

static int
run_turn(struct world *w)
{
    turn_is_due(w->turn);
    int rc = turn_run(w->turn);
    w->n_told = rc ? w->s.changes.n : 0;
    assert_null(queue_check(w->s.queue));
    assert_null(ledger_check(w->s.ledger));
    return rc;
}

void
world_turn(struct world *w)
{
    assert_int_equal(run_turn(w), 0);
}

void
world_turn_without_plan(struct world *w)
{
    w->plans_not = true;
    world_turn(w);
    w->plans_not = false;
}

void
world_turn_on_full_disk(struct world *w)
{
    disk_set_full(true);
    assert_int_equal(run_turn(w), -1);
    disk_set_full(false);
}

/* Returns true if the daemon died. What the interrupted turn had allocated is lost, as with
 * the process; that is no leak. */
static bool
turn_dies(struct world *w)
{
    __lsan_disable();
    bool died = setjmp(w->died) != 0;
    if (!died)
        (void)run_turn(w);
    __lsan_enable();
    return died;
}

void
world_turn_dies(struct world *w, enum death death)
{
    w->death = death;
    if (!turn_dies(w))
        fail_msg("the turn did not come that far");
    w->death = DEATH_NONE;
}

bool
world_turn_dies_at(struct world *w, int step)
{
    w->n_steps = 0;
    w->dies_at = step;
    bool died = turn_dies(w);
    w->dies_at = 0;
    return died;
}

void
world_pass(struct world *w, int64_t us)
{
    w->now_us += us;
    virtual_fire(&w->host, w->turn);
}

/* --- facts --- */

void
world_sample(struct world *w)
{
    static const struct gpu_sample idle = {.used_mib = 0, .temperature_c = -1};
    w->now_us += SECOND;
    for (int i = 0; i < w->n_cards; i++)
        ledger_sample(w->s.ledger, i, &idle, w->now_us, NULL, NULL);
    struct job *next;
    for (struct job *job = w->s.queue ? queue_active(w->s.queue) : NULL; job; job = next) {
        next = queue_active_next(job);
        jobs_check_clear(&w->s, job, false);
    }
}

void
world_runs(struct world *w, uint32_t id)
{
    w->now_us += SECOND;
    assert_true(jobs_attempt_started(&w->s, world_get(w, id), w->now_us));
}

static void
ends(struct world *w, uint32_t id, struct ending ending)
{
    w->now_us += 60 * SECOND;
    ending.ended_us = w->now_us;
    ending.run_ms = 60000;
    ending.cpu_ms = ending.max_rss_kib = -1;
    jobs_attempt_ended(&w->s, world_get(w, id), &ending);
}

void
world_ends(struct world *w, uint32_t id, int code)
{
    ends(w, id, (struct ending){.outcome = OUTCOME_EXITED, .code = code});
}

void
world_is_lost(struct world *w, uint32_t id, enum outcome outcome)
{
    ends(w, id, (struct ending){.outcome = outcome});
}

/* --- another daemon --- */

static void
make_key(char *key, size_t size)
{
    snprintf(key, size, "a new key");
}

static void
card_missing(void *arg, int card)
{
    world_step(arg, "card_missing %d", card);
}

static void
take_up(void *arg, struct job *job)
{
    world_step(arg, "take_up %u", job->id);
}

void
world_starts(struct world *w)
{
    const struct kept_host host = {
        .arg = w, .make_key = make_key, .card_missing = card_missing, .take_up = take_up};
    struct attempts_kept *attempts;
    struct err e = {0};
    start_daemon(w);
    w->n_launched = 0;
    w->told[0] = w->steps[0] = '\0';
    if (jobs_load(&w->s, w->store, &host, &attempts, &e) < 0)
        fail_msg("%s", e.text);
    attempts_take_up(&w->s, attempts, &host);
    learned_recover(&w->s);
    promises_load(w->turn);
    assert_null(queue_check(w->s.queue));
}

void
world_crash(struct world *w)
{
    world_dies(w);
    world_starts(w);
}

enum job_state
world_stored(struct world *w, uint32_t id)
{
    struct found_job found = {0};
    struct err e = {0};
    assert_int_equal(store_find_job(w->store, id, &found, &e), 0);
    assert_int_equal(found.id, id);
    return job_state_is_final(found.state) ? found.state : JOB_PENDING;
}

struct counted {
    const char *kind;
    int n;
};

static int
count_event(const struct store_event *row, void *arg)
{
    struct counted *c = arg;
    c->n += strcmp(row->kind, c->kind) == 0;
    return 0;
}

int
world_n_events(struct world *w, const char *kind)
{
    struct counted c = {.kind = kind};
    struct err e = {0};
    assert_int_equal(store_events_read(w->store, 0, count_event, &c, &e), 0);
    return c.n;
}
