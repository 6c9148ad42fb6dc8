/* A daemon that takes over after another was killed: the jobs' GPUs, gaps in the database, and
 * the fate of all jobs when the other died after any step of a turn. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon_world.h"
#include "store/store.h"

static int
setup(void **state)
{
    *state = world_open(2);
    return 0;
}

static int
teardown(void **state)
{
    world_close(*state);
    return 0;
}

/* A running job on this many GPUs, with its measured use of each. */
static struct job *
run_one(struct world *w, int gpus, int32_t mib)
{
    struct job *job = world_job(w, ALICE, gpus);
    job->req.demand.vram_mib = mib;
    uint32_t id = world_submit(w, job);
    world_turn(w);
    world_runs(w, id);
    for (int i = 0; i < job->run->n_gpus; i++)
        job->run->peak_mib[i] = 100 * (i + 1);
    state_save(&w->s, job, SAVE_ATTEMPT);
    world_turn(w);
    w->steps[0] = '\0';
    return job;
}

static int32_t
peak_on(const struct world *w, int card, uint32_t job)
{
    const struct hold *h = ledger_find_hold(w->s.ledger, card, job);
    assert_non_null(h);
    return h->peak_mib;
}

/* --- GPUs --- */

static void
a_job_keeps_its_gpus_under_other_numbers(void **state)
{
    struct world *w = *state;
    run_one(w, 2, 500);
    struct job *second = world_job(w, ALICE, 1);
    second->req.demand.vram_mib = 300;
    second->req.demand.devices = 2;
    world_submit(w, second);
    world_turn(w);
    w->uuids[0] = 1;
    w->uuids[1] = 0;
    world_crash(w);
    const struct attempt *run = world_get(w, 1)->run;
    assert_int_equal(run->n_gpus, 2);
    assert_int_equal(run->gpus[0], 1);
    assert_int_equal(run->gpus[1], 0);
    assert_int_equal(run->now_mib[0], -1);
    assert_int_equal(peak_on(w, 1, 1), 100);
    assert_int_equal(peak_on(w, 0, 1), 200);
    assert_int_equal(world_get(w, 2)->run->gpus[0], 0);
    assert_non_null(ledger_find_hold(w->s.ledger, 0, 2));
    assert_null(ledger_find_hold(w->s.ledger, 1, 2));
    assert_non_null(strstr(w->steps, "take_up 1"));
    assert_non_null(strstr(w->steps, "take_up 2"));
    assert_null(strstr(w->steps, "card_missing"));
}

/* It runs on beside it, and nothing else is placed there. */
static void
a_gpu_that_is_gone_is_entered_without_facts(void **state)
{
    struct world *w = *state;
    run_one(w, 2, 500);
    w->n_cards = 1;
    w->uuids[0] = 1;
    world_crash(w);
    const struct attempt *run = world_get(w, 1)->run;
    assert_int_equal(ledger_n_cards(w->s.ledger), 2);
    assert_int_equal(run->n_gpus, 2);
    assert_int_equal(run->gpus[0], 1);
    assert_int_equal(run->gpus[1], 0);
    assert_string_equal(ledger_card(w->s.ledger, 1)->info.uuid, "GPU-0");
    assert_int_equal(peak_on(w, 1, 1), 100);
    assert_int_equal(peak_on(w, 0, 1), 200);
    assert_steps(w, "card_missing 1, take_up 1");
}

/* All numbers are taken: the job keeps those of its GPUs that still exist. */
static void
there_are_no_more_numbers_than_gpus_can_have(void **state)
{
    struct world *w = *state;
    run_one(w, 2, 500);
    w->n_cards = GPU_MAX;
    for (int i = 0; i < GPU_MAX; i++)
        w->uuids[i] = i + 1;
    world_crash(w);
    const struct attempt *run = world_get(w, 1)->run;
    assert_int_equal(run->n_gpus, 1);
    assert_int_equal(run->gpus[0], 0);
    assert_int_equal(run->peak_mib[0], 200);
    assert_int_equal(peak_on(w, 0, 1), 200);
    assert_steps(w, "take_up 1");
}

static void
what_it_started_with_is_booked(void **state)
{
    struct world *w = *state;
    struct job *job = run_one(w, 1, 500);
    job->req.demand.vram_mib = 800; /* for the next attempt */
    job->run->nodes = 2;
    queue_refile(w->s.queue, job);
    state_save(&w->s, job, SAVE_JOB | SAVE_ATTEMPT);
    world_turn(w);
    world_crash(w);
    job = world_get(w, 1);
    assert_int_equal(job->req.demand.vram_mib, 800);
    assert_int_equal(ledger_find_hold(w->s.ledger, job->run->gpus[0], 1)->demand_mib, 500);
    assert_int_equal(ledger_bound(w->s.ledger, 1), 2);
}

/* --- other known facts --- */

static void
shares_and_environments_are_as_they_were(void **state)
{
    struct world *w = *state;
    struct err e;
    int64_t env;
    uint32_t id = world_submit(w, world_job(w, ALICE, 1));
    world_turn(w);
    world_runs(w, id);
    world_ends(w, id, 0);
    world_sample(w);
    struct job *job = world_job(w, BOB, 3);
    char text[70000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_int_equal(store_env_put(w->store, text, sizeof text, &env, &e), 0);
    job->env = env;
    job->env_bytes = sizeof text;
    job->req.hold = true;
    job->req.demand.gpus = 1;
    job->state = JOB_HELD;
    world_submit(w, job);
    world_turn(w);
    int64_t then_us = w->now_us;
    double used = fair_usage(w->s.fair, ALICE, then_us);
    int64_t bytes = queue_envs_of(w->s.queue, BOB);
    assert_true(used > 0 && bytes > 0);
    world_crash(w);
    assert_true(fair_usage(w->s.fair, ALICE, then_us) == used);
    assert_int_equal(queue_envs_of(w->s.queue, BOB), bytes);
}

/* --- a damaged database --- */

static void
crash_and_forget_attempts(struct world *w)
{
    world_dies(w);
    auto_free char *path = xasprintf("%s/berth.db", w->dir);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "DELETE FROM attempts", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    world_starts(w);
}

/* Its folder has the outcome. */
static void
an_attempt_without_a_row_is_taken_up_by_its_number(void **state)
{
    struct world *w = *state;
    run_one(w, 1, 500);
    crash_and_forget_attempts(w);
    assert_non_null(strstr(w->steps, "take_up 1"));
    struct job *job = world_get(w, 1);
    assert_int_equal(job->state, JOB_STARTING);
    assert_int_equal(job->run->number, 1);
    assert_int_equal(job->run->n_gpus, 0);
    world_turn(w);
    world_crash(w); /* it has a row again */
    assert_int_equal(world_get(w, 1)->run->number, 1);
    world_ends(w, 1, 3);
    world_sample(w);
    world_turn(w);
    assert_int_equal(world_stored(w, 1), JOB_FAILED);
}

static void
an_attempt_on_slurm_gets_a_new_key(void **state)
{
    struct world *w = *state;
    struct job *job = world_job(w, ALICE, 1);
    job->req.demand.engine = ENGINE_SLURM;
    ledger_set_slurm_room(w->s.ledger, 5);
    uint32_t id = world_submit(w, job);
    world_turn(w);
    assert_int_equal(job->state, JOB_STARTING);
    crash_and_forget_attempts(w);
    assert_string_equal(world_get(w, id)->run->sent.key, "a new key");
}

/* --- any step --- */

#define JOBS_MAX 16

/* The truth about the machine, whichever daemon runs: the commands launched. */
struct machine {
    bool runs[JOBS_MAX];
};

static void
note_launches(const struct world *w, struct machine *m)
{
    for (int i = 0; i < w->n_launched; i++)
        m->runs[w->launched[i]] = true;
}

/* Folders and supervisors report each attempt's outcome: launched ones ended well, the others
 * never ran. */
static void
settle_all(struct world *w, struct machine *m)
{
    struct job *next;
    note_launches(w, m);
    for (struct job *job = queue_active(w->s.queue); job; job = next) {
        next = queue_active_next(job);
        uint32_t id = job->id;
        if (job->state == JOB_COMPLETING)
            continue;
        if (m->runs[id]) {
            world_runs(w, id);
            world_ends(w, id, 0);
        } else {
            world_is_lost(w, id, OUTCOME_NEVER_RAN);
        }
        m->runs[id] = false;
    }
    w->n_launched = 0;
    world_sample(w);
}

struct ends {
    int n[JOBS_MAX];
};

static int
count_end(const struct store_event *row, void *arg)
{
    struct ends *ends = arg;
    if (strcmp(row->kind, "ended") == 0)
        ends->n[row->job]++;
    return 0;
}

/* Before the turn: one job has ended, one depends on it, an array has two tasks left, one is
 * new and one was cancelled. After recovery each ends once, in the right state. */
static void
each_job_ends_once_behind_whatever_step_the_daemon_dies(void **state)
{
    enum { FIRST = 1, BEHIND, ARRAY, CANCELLED, FRESH };
    int n_deaths = 0;
    (void)state;
    for (bool died = true; died; n_deaths += died) {
        struct world *w = world_open(2);
        struct machine m = {.runs = {false}};
        struct job *behind = world_job(w, ALICE, 1), *array = world_job(w, BOB, 1);
        world_submit(w, world_job(w, ALICE, 2));
        world_turn(w);
        behind->req.deps = xcalloc(1, sizeof *behind->req.deps);
        behind->req.deps[0] = (struct dep){.type = DEP_SUCCESS, .job = FIRST, .task = -1};
        behind->req.n_deps = 1;
        world_submit(w, behind);
        array->req.array.ranges = xcalloc(1, sizeof *array->req.array.ranges);
        array->req.array.ranges[0] = (struct task_range){0, 1};
        array->req.array.n = 1;
        world_submit(w, array);
        world_submit(w, world_job(w, ALICE, 1));
        world_turn(w);
        world_runs(w, FIRST);
        note_launches(w, &m);
        world_ends(w, FIRST, 0);
        world_sample(w);
        jobs_cancel(&w->s, world_get(w, CANCELLED), "alice");
        world_submit(w, world_job(w, BOB, 1));
        w->steps[0] = '\0';
        died = world_turn_dies_at(w, n_deaths + 1);
        if (died) {
            note_launches(w, &m);
            bool was_answered = strstr(w->steps, "answer well") != NULL;
            world_crash(w);
            assert_null(ledger_check(w->s.ledger));
            if (was_answered) /* the submitter knows its jobs */
                assert_true(world_get(w, FRESH) != NULL &&
                            world_stored(w, CANCELLED) == JOB_CANCELLED);
            if (!world_get(w, FRESH))
                world_submit(w, world_job(w, BOB, 1)); /* submitted again */
            if (world_get(w, CANCELLED))
                jobs_cancel(&w->s, world_get(w, CANCELLED), "alice");
        }
        for (int i = 0; i < 20 && queue_n(w->s.queue) > 0; i++) {
            w->steps[0] = w->told[0] = '\0';
            settle_all(w, &m);
            world_turn(w);
        }
        assert_int_equal(queue_n(w->s.queue), 0);
        uint32_t last = store_peek_job_id(w->store) - 1;
        assert_true(last >= FRESH + 2 && last < JOBS_MAX);
        struct ends ends = {.n = {0}};
        struct err e;
        int n_jobs = 0;
        assert_int_equal(store_events_read(w->store, 0, count_end, &ends, &e), 0);
        for (uint32_t id = 1; id <= last; id++) {
            struct found_job found = {0};
            assert_int_equal(store_find_job(w->store, id, &found, &e), 0);
            if (!found.id)
                continue; /* a number lost with the daemon */
            n_jobs++;
            assert_int_equal(found.state, id == CANCELLED ? JOB_CANCELLED : JOB_COMPLETED);
            assert_int_equal(ends.n[id], 1);
        }
        assert_int_equal(n_jobs, FRESH + 2); /* with the array's tasks */
        world_close(w);
    }
    assert_true(n_deaths > 30);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_job_keeps_its_gpus_under_other_numbers),
        TEST(a_gpu_that_is_gone_is_entered_without_facts),
        TEST(there_are_no_more_numbers_than_gpus_can_have),
        TEST(what_it_started_with_is_booked),
        TEST(shares_and_environments_are_as_they_were),
        TEST(an_attempt_without_a_row_is_taken_up_by_its_number),
        TEST(an_attempt_on_slurm_gets_a_new_key),
        cmocka_unit_test(each_job_ends_once_behind_whatever_step_the_daemon_dies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
