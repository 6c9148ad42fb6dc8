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
#include "daemon/turn/past_store.h"
#include "daemon/turn/promises_kept.h"
#include "daemon/turn/runs_kept.h"
#include "full_disk.h"
#include "store/store.h"

#define START_US INT64_C(1000000000000000)
#define SECOND   INT64_C(1000000)
#define LONGEST  64 /* of the words for one change or step */

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
    if (plan)
        turn_is_due(w->turn);
    else
        turn_is_due_unplanned(w->turn);
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
        [CHANGE_LAUNCHED] = "launched", [CHANGE_DELAYED] = "delayed",
    };
    return words[type];
}

static void
tell(struct world *w, const struct change *x)
{
    size_t len = strlen(w->told);
    assert_true(len + LONGEST < sizeof w->told);
    snprintf(w->told + len, sizeof w->told - len, "%s%s %u", len ? ", " : "", word_of(x->type),
             x->job);
    len = strlen(w->told);
    if (x->type == CHANGE_ENDED)
        snprintf(w->told + len, sizeof w->told - len, " %s", job_state_name(x->state));
    if (x->type == CHANGE_DROPPED)
        snprintf(w->told + len, sizeof w->told - len, " %d", x->number);
}

void
world_read(struct world *w)
{
    const struct changes *c = &w->s.changes;
    for (; w->n_told < c->n; w->n_told++)
        tell(w, &c->list[w->n_told]);
}

/* --- the part --- */

static void step(struct world *w, const char *form, ...) __attribute__((format(printf, 2, 3)));

static void
step(struct world *w, const char *form, ...)
{
    va_list args;
    size_t len = strlen(w->steps);
    assert_true(len + LONGEST < sizeof w->steps);
    if (len > 0)
        len += (size_t)snprintf(w->steps + len, sizeof w->steps - len, ", ");
    va_start(args, form);
    vsnprintf(w->steps + len, sizeof w->steps - len, form, args);
    va_end(args);
}

static void
may_die(struct world *w, enum death here)
{
    if (w->death == here)
        longjmp(w->died, 1);
}

/* Nobody is told, and nothing is launched, of which the disk does not know. */
static void
must_be_durable(const struct world *w)
{
    assert_false(store_has_changes(w->store));
}

static void
on_settle(void *arg)
{
    step(arg, "settle");
}

static void
on_read(void *arg, struct change *x)
{
    struct world *w = arg;
    size_t i = (size_t)(x - w->s.changes.list);
    if (i >= w->n_told) {
        tell(w, x);
        w->n_told = i + 1;
    }
    step(w, "read %s %u", word_of(x->type), x->job);
    snprintf(x->kind, sizeof x->kind, "%s", word_of(x->type));
    buf_clear(&x->json);
    buf_adds(&x->json, "{}");
}

static bool
on_before_plan(void *arg)
{
    struct world *w = arg;
    step(w, "before_plan");
    return !w->plans_not;
}

static void
on_planned(void *arg, const struct plan *p, int64_t took_us)
{
    (void)took_us;
    step(arg, "planned %zu", p->n);
}

static bool
on_prepare_start(void *arg, struct job *job)
{
    struct world *w = arg;
    step(w, "prepare_start %u", job->id);
    return job->id != w->cannot_prepare;
}

static void
on_prepare(void *arg)
{
    step(arg, "prepare");
}

static void
on_write_job(void *arg, const struct job *job)
{
    step(arg, "write_job %u", job->id);
}

static void
note(struct world *w, enum change_type type)
{
    uint32_t newest = store_peek_job_id(w->store) - 1;
    state_note(&w->s, type, queue_get(w->s.queue, newest));
}

static void
on_write(void *arg)
{
    struct world *w = arg;
    step(w, "write");
    if (w->notes_at_write)
        note(w, CHANGE_HELD);
}

static void
on_write_event(void *arg, const struct change *x)
{
    assert_non_null(strstr(buf_str(&x->line), x->kind));
    step(arg, "write_event %s", x->kind);
}

static void
on_sum_up(void *arg, struct job *const *jobs, size_t n)
{
    struct world *w = arg;
    (void)jobs;
    step(w, "sum_up %zu", n);
    may_die(w, DEATH_BEFORE_COMMIT);
}

static void
on_measured(void *arg, int64_t took_us, const struct err *failed)
{
    (void)took_us;
    step(arg, "measured %s", failed ? "failed" : "well");
}

static void
on_start_undone(void *arg, const struct job *job)
{
    assert_int_equal(job->state, JOB_STARTING);
    step(arg, "start_undone %u", job->id);
}

static void
on_job_gone(void *arg, const struct job *job)
{
    step(arg, "job_gone %u", job->id);
}

static void
on_not_saved(void *arg, const struct err *why)
{
    assert_int_equal(why->code, ERR_NO_SPACE);
    step(arg, "not_saved");
}

static void
on_saved(void *arg)
{
    struct world *w = arg;
    must_be_durable(w);
    step(w, "saved");
    may_die(w, DEATH_AFTER_COMMIT);
}

static void
on_answer(void *arg, const struct err *failed)
{
    struct world *w = arg;
    if (!failed)
        must_be_durable(w);
    step(w, "answer %s", failed ? "refused" : "well");
}

static void
on_publish(void *arg, const struct change *list, size_t n)
{
    struct world *w = arg;
    must_be_durable(w);
    for (size_t i = 0; i < n; i++)
        step(w, "publish %s", list[i].kind);
    if (w->notes_at_publish)
        note(w, CHANGE_RELEASED);
    may_die(w, DEATH_AFTER_ANSWERS);
}

static void
on_tell_waiting(void *arg, const struct job *job)
{
    step(arg, "tell_waiting %u", job->id);
}

static void
on_launch(void *arg, struct job *job)
{
    struct world *w = arg;
    must_be_durable(w);
    step(w, "launch %u", job->id);
    w->launched[w->n_launched++] = job->id;
    if (job->id == w->cannot_launch)
        world_is_lost(w, job->id, OUTCOME_NEVER_RAN);
}

static void
on_act(void *arg, const struct job *job, unsigned what)
{
    struct world *w = arg;
    step(w, "act %u%s%s", job->id, what & SAVE_SETTLED ? " settled" : "",
         what & SAVE_ENDED ? " ended" : "");
}

static void
on_finish(void *arg)
{
    step(arg, "finish");
}

static const struct turn_part part = {.name = "world",
                                      .settle = on_settle,
                                      .read = on_read,
                                      .before_plan = on_before_plan,
                                      .planned = on_planned,
                                      .prepare_start = on_prepare_start,
                                      .prepare = on_prepare,
                                      .write_job = on_write_job,
                                      .write = on_write,
                                      .write_event = on_write_event,
                                      .sum_up = on_sum_up,
                                      .measured = on_measured,
                                      .start_undone = on_start_undone,
                                      .job_gone = on_job_gone,
                                      .not_saved = on_not_saved,
                                      .saved = on_saved,
                                      .answer = on_answer,
                                      .publish = on_publish,
                                      .tell_waiting = on_tell_waiting,
                                      .launch = on_launch,
                                      .act = on_act,
                                      .finish = on_finish};

/* --- the daemon --- */

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
    struct turn_part own = part;
    own.arg = w;
    const struct turn_host host = virtual_host_of(&w->host);
    w->host = (struct virtual_host){.now_us = &w->now_us};
    w->turn = turn_new(&w->s, w->store, &host, &own, 1);
    w->n_told = 0;
    w->s.changes.wake = on_wake;
    w->s.changes.wake_arg = w;
    assert_int_equal(runs_load(w->store, w->s.history, w->s.planner, &e), 0);
}

/* And what is gone with it. */
static void
end_daemon(struct world *w)
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

void
world_turn_dies(struct world *w, enum death death)
{
    w->death = death;
    if (setjmp(w->died) == 0) {
        (void)run_turn(w);
        fail_msg("the turn did not come that far");
    }
    w->death = DEATH_NONE;
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
    w->told[0] = w->steps[0] = '\0';
    if (store_jobs_load_live(w->store, on_live, w, &e) < 0)
        fail_msg("%s", e.text);
    depend_recover(&w->s);
    for (struct job *job = queue_active(w->s.queue); job; job = queue_active_next(job))
        ledger_hold(w->s.ledger, job->id, &job->req.demand, job->run->gpus, job->run->n_gpus);
    arrays_recovered(&w->s);
    learned_recover(&w->s);
    promises_load(w->turn);
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
