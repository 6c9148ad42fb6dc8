/* See state_world.h. */
#include "state_world.h"

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
#include "daemon/turn/job_rows.h"
#include "daemon/turn/past_store.h"
#include "daemon/turn/runs_kept.h"
#include "store/store.h"

#define START_US INT64_C(1000000000000000)
#define SECOND   INT64_C(1000000)

static int64_t
now(void *arg)
{
    const struct world *w = arg;
    return w->now_us;
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
        snprintf(info.uuid, sizeof info.uuid, "GPU-%d", i);
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
}

/* What a process has in its memory. */
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
    w->s.changes.wake = on_wake;
    w->s.changes.wake_arg = w;
    assert_int_equal(runs_load(w->store, w->s.history, w->s.planner, &e), 0);
}

/* And what is gone with it. */
static void
end_daemon(struct world *w)
{
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
    snprintf(w->dir, sizeof w->dir, "/tmp/berth-state-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    w->n_cards = n_cards;
    w->now_us = START_US;
    w->around = (struct around){.arg = w,
                                .wall_us = now,
                                .boot_us = now,
                                .user_name = user_name,
                                .explain_end = explain_end};
    w->rules = (struct plan_rules){.patience_ms = INT64_MAX, .limits = &w->limits};
    start_daemon(w);
    return w;
}

void
world_close(struct world *w)
{
    char command[96];
    end_daemon(w);
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

void
world_plan(struct world *w)
{
    auto_plan struct plan p = PLAN_INIT;
    uint32_t next_id = store_peek_job_id(w->store);
    plan_make(w->s.planner, w->s.queue, w->s.ledger, w->now_us, &next_id, &p);
    store_advance_job_id(w->store, next_id);
    for (size_t i = 0; i < p.n; i++)
        starts_carry_out(&w->s, &p.decisions[i]);
    assert_null(queue_check(w->s.queue));
    assert_null(ledger_check(w->s.ledger));
}

static void
act(struct world *w, struct job *job, unsigned what)
{
    if (what & SAVE_ATTEMPT_NEW) {
        starts_keep(job);
        w->launched[w->n_launched++] = job->id;
    }
    if (what & SAVE_ENDED)
        jobs_retire(&w->s, job);
}

int
world_commit(struct world *w, bool disk_is_full)
{
    struct changes *c = &w->s.changes;
    struct err e = {0};
    world_read(w);
    for (size_t i = 0; i < c->n_unsaved; i++)
        rows_write(w->store, &w->s, c->unsaved[i]);
    if (disk_is_full) {
        store_rollback(w->store);
        starts_take_back(&w->s, NULL, NULL, NULL);
        return -1;
    }
    if (store_commit(w->store, &e) < 0)
        fail_msg("%s", e.text);
    size_t n = c->n_unsaved;
    c->n_unsaved = 0;
    for (size_t i = 0; i < n; i++) {
        struct job *job = c->unsaved[i];
        unsigned what = job->unsaved;
        job->unsaved = 0;
        act(w, job, what);
    }
    return 0;
}

void
world_turn(struct world *w)
{
    world_plan(w);
    assert_int_equal(world_commit(w, false), 0);
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

static int
on_live(struct job *job, const char *const *uuids, void *arg)
{
    struct world *w = arg;
    (void)uuids;
    jobs_recover(&w->s, job);
    return 0;
}

void
world_crash(struct world *w)
{
    struct err e = {0};
    end_daemon(w);
    start_daemon(w);
    w->n_launched = 0;
    w->told[0] = '\0';
    if (store_jobs_load_live(w->store, on_live, w, &e) < 0)
        fail_msg("%s", e.text);
    depend_recover(&w->s);
    for (struct job *job = queue_active(w->s.queue); job; job = queue_active_next(job))
        ledger_hold(w->s.ledger, job->id, &job->req.demand, job->run->gpus, job->run->n_gpus);
    arrays_recovered(&w->s);
    learned_recover(&w->s);
    assert_null(queue_check(w->s.queue));
}

enum job_state
world_stored(struct world *w, uint32_t id)
{
    struct store_found found = {0};
    struct err e = {0};
    assert_int_equal(store_find_job(w->store, id, &found, &e), 0);
    assert_int_equal(found.id, id);
    return job_state_is_final(found.state) ? found.state : JOB_PENDING;
}

/* --- what changed --- */

static const char *
word_of(enum change_type type)
{
    static const char *const words[] = {
        [CHANGE_SAID] = "said",         [CHANGE_ENTERED] = "entered",
        [CHANGE_STARTED] = "started",   [CHANGE_ENDED] = "ended",
        [CHANGE_RETRIED] = "retried",   [CHANGE_BACK] = "back",
        [CHANGE_HELD] = "held",         [CHANGE_RELEASED] = "released",
        [CHANGE_UPDATED] = "updated",   [CHANGE_PRIORITY] = "priority",
        [CHANGE_CANCEL] = "cancel",     [CHANGE_REQUEUE] = "requeue",
        [CHANGE_PREEMPT] = "preempt",   [CHANGE_CANCEL_MORE] = "cancel-more",
        [CHANGE_AWAITED] = "awaited",   [CHANGE_DROPPED] = "dropped",
        [CHANGE_LAUNCHED] = "launched",
    };
    return words[type];
}

void
world_read(struct world *w)
{
    struct changes *c = &w->s.changes;
    for (size_t i = 0; i < c->n; i++) {
        struct change *x = &c->list[i];
        size_t len = strlen(w->told);
        snprintf(w->told + len, sizeof w->told - len, "%s%s %u", len ? ", " : "",
                 word_of(x->type), x->job);
        len = strlen(w->told);
        if (x->type == CHANGE_ENDED)
            snprintf(w->told + len, sizeof w->told - len, " %s", job_state_name(x->state));
        if (x->type == CHANGE_DROPPED)
            snprintf(w->told + len, sizeof w->told - len, " %d", x->number);
        change_free(x);
    }
    c->n = c->n_read = 0;
}
