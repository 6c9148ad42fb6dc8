/* The turn itself, without the rest of a daemon: the order of its steps, what a failed commit
 * undoes and what it keeps, what the next daemon finds after one that died in the middle, and
 * when a turn is due at all. */
#include <stdlib.h>
#include <string.h>

#include "daemon_world.h"
#include "full_disk.h"
#include "store/store.h"

#define SECOND_US INT64_C(1000000)

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

/* A running job, with everything about it on disk. */
static uint32_t
run_one(struct world *w)
{
    uint32_t id = world_submit(w, world_job(w, ALICE, 1));
    world_turn(w);
    world_runs(w, id);
    world_turn(w);
    w->steps[0] = w->told[0] = '\0';
    return id;
}

/* --- the order --- */

static void
a_start_is_committed_before_anybody_hears_of_it(void **state)
{
    struct world *w = *state;
    world_submit(w, world_job(w, ALICE, 1));
    world_turn(w);
    assert_steps(w, "settle, read entered 1, before_plan, planned 1, read started 1, "
                    "prepare_start 1, prepare, write_job 1, write, write_event entered, "
                    "write_event started, sum_up 1, measured well, saved, answer well, "
                    "publish entered, publish started, launch 1, act 1, finish");
}

/* The new job's launch does not wait for the old one's cleanup. */
static void
an_end_and_the_start_that_it_makes_possible_are_one_commit(void **state)
{
    struct world *w = *state;
    world_submit(w, world_job(w, ALICE, 2));
    world_submit(w, world_job(w, ALICE, 2));
    world_turn(w);
    world_runs(w, 1);
    world_ends(w, 1, 0);
    world_turn(w);
    world_sample(w);
    w->steps[0] = '\0';
    world_turn(w);
    assert_steps(w, "settle, read ended 1, before_plan, planned 1, read started 2, "
                    "prepare_start 2, prepare, write_job 1, write_job 2, write, "
                    "write_event ended, write_event started, sum_up 2, measured well, saved, "
                    "answer well, publish ended, publish started, launch 2, "
                    "act 1 settled ended, act 2, finish");
    assert_null(world_get(w, 1));
}

static void
a_turn_without_changes_writes_nothing(void **state)
{
    struct world *w = *state;
    world_turn(w);
    w->steps[0] = '\0';
    world_turn(w);
    assert_steps(w, "settle, before_plan, planned 0, prepare, write, sum_up 0, saved, "
                    "answer well, finish");
}

/* A standing problem is reported once, after the answers, and again to each new listener. */
static void
reasons_to_wait_are_told_behind_the_answers(void **state)
{
    struct world *w = *state;
    run_one(w);
    world_submit(w, world_job(w, BOB, 2));
    world_turn(w);
    assert_non_null(strstr(w->steps, "publish entered, tell_waiting 2, "));
    w->steps[0] = '\0';
    world_turn(w);
    assert_null(strstr(w->steps, "tell_waiting"));
    turn_tell_again(w->turn, 0);
    world_turn(w);
    assert_non_null(strstr(w->steps, "answer well, tell_waiting 2, "));
}

/* A part notes a change in a late step: its event belongs to this commit. */
static void
what_a_part_notes_is_read_by_all(void **state)
{
    struct world *w = *state;
    world_submit(w, world_job(w, ALICE, 1));
    w->notes_at_write = true;
    world_turn(w);
    assert_non_null(strstr(w->steps,
                           "write_job 1, write, read held 1, write_event entered, "
                           "write_event started, write_event held, sum_up 1, measured well"));
    assert_int_equal(world_n_events(w, "held"), 1);
    /* A change noted in a step after the commit waits for the next. */
    world_submit(w, world_job(w, ALICE, 1));
    w->notes_at_write = false;
    w->notes_at_publish = true;
    world_turn(w);
    assert_int_equal(world_n_events(w, "released"), 0);
    assert_true(virtual_is_due(&w->host));
    w->notes_at_publish = false;
    world_turn(w);
    assert_int_equal(world_n_events(w, "released"), 1);
}

/* --- a start that fails --- */

static void
a_start_that_cannot_be_prepared_was_not_decided(void **state)
{
    struct world *w = *state;
    uint32_t first = world_submit(w, world_job(w, ALICE, 1));
    uint32_t second = world_submit(w, world_job(w, ALICE, 1));
    w->cannot_prepare = first;
    world_turn(w);
    assert_int_equal(world_get(w, first)->state, JOB_PENDING);
    assert_int_equal(world_get(w, first)->attempts, 0);
    assert_false(ledger_holds(w->s.ledger, first));
    assert_int_equal(w->n_launched, 1);
    assert_int_equal(w->launched[0], second);
    assert_int_equal(world_n_events(w, "entered"), 2);
    assert_int_equal(world_n_events(w, "started"), 1);
    world_crash(w);
    assert_int_equal(world_get(w, first)->state, JOB_PENDING);
    w->cannot_prepare = 0;
    world_turn(w);
    assert_int_equal(world_get(w, first)->state, JOB_STARTING);
}

/* Arrives like a hook's result. */
static void
say_of(struct world *w, uint32_t id)
{
    struct job *job = store_job_load(w->store, id, NULL);
    assert_non_null(job);
    state_note(&w->s, CHANGE_SAID, job);
    job_free(job);
}

static void
the_event_of_a_job_that_had_ended_outlives_what_is_taken_back(void **state)
{
    struct world *w = *state;
    uint32_t old = run_one(w);
    world_ends(w, old, 0);
    world_sample(w);
    world_turn(w);
    assert_null(world_get(w, old));
    w->cannot_prepare = world_submit(w, world_job(w, ALICE, 1));
    say_of(w, old);
    world_turn(w);
    assert_int_equal(world_n_events(w, "said"), 1);
    say_of(w, old);
    world_turn_on_full_disk(w);
    assert_int_equal(world_n_events(w, "said"), 1);
    world_turn(w);
    assert_int_equal(world_n_events(w, "said"), 2);
}

/* It is committed, so it is an attempt, but it does not count as one of the job's tries. */
static void
a_launch_that_fails_is_an_end_of_the_next_commit(void **state)
{
    struct world *w = *state;
    uint32_t id = world_submit(w, world_job(w, ALICE, 1));
    w->cannot_launch = id;
    world_turn(w);
    assert_non_null(strstr(w->steps, "launch 1, act 1, finish"));
    assert_true(virtual_is_due(&w->host));
    w->steps[0] = '\0';
    w->cannot_launch = 0;
    world_sample(w);
    world_turn(w);
    assert_non_null(strstr(w->steps, "write_job 1, "));
    assert_non_null(strstr(w->steps, "act 1 settled"));
    world_pass(w, 3600 * SECOND_US);
    world_turn(w);
    world_turn(w); /* after the previous attempt's row */
    assert_int_equal(w->n_launched, 2);
    assert_int_equal(world_get(w, id)->run->number, 2);
}

/* --- a disk that is full --- */

static void
a_refused_commit_tells_nobody(void **state)
{
    struct world *w = *state;
    world_submit(w, world_job(w, ALICE, 1));
    world_turn_without_plan(w);
    w->steps[0] = '\0';
    world_submit(w, world_job(w, ALICE, 1));
    world_turn_on_full_disk(w);
    assert_steps(w, "settle, read entered 2, before_plan, planned 2, read started 1, "
                    "read started 2, prepare_start 2, prepare_start 1, prepare, write_job 2, "
                    "write_job 1, write, write_event entered, write_event started, "
                    "write_event started, sum_up 2, measured failed, start_undone 2, "
                    "job_gone 2, start_undone 1, not_saved, answer refused");
    assert_int_equal(w->host.n_failed, 1);
    assert_non_null(turn_trouble(w->turn));
    assert_int_equal(turn_trouble(w->turn)->code, ERR_NO_SPACE);
    assert_int_equal(world_n_events(w, "started"), 0);
    assert_int_equal(world_n_events(w, "entered"), 1);
}

/* While the disk is full no plan is made, as it could not be carried out; ends are kept, and
 * their events are stored once, by the commit that succeeds. */
static void
ends_wait_for_the_disk_and_are_told_once(void **state)
{
    struct world *w = *state;
    uint32_t id = run_one(w);
    world_submit(w, world_job(w, BOB, 2));
    world_turn(w);
    world_ends(w, id, 0);
    world_sample(w);
    w->steps[0] = '\0';
    world_turn_on_full_disk(w);
    assert_null(strstr(w->steps, "publish"));
    assert_null(strstr(w->steps, "act"));
    w->steps[0] = '\0';
    world_turn_on_full_disk(w);
    assert_null(strstr(w->steps, "before_plan"));
    assert_null(strstr(w->steps, "read ended")); /* once is enough */
    assert_int_equal(world_n_events(w, "ended"), 0);
    w->steps[0] = '\0';
    world_pass(w, RETRY_US);
    assert_null(turn_trouble(w->turn));
    assert_true(virtual_is_due(&w->host));
    world_turn(w);
    assert_non_null(strstr(w->steps, "publish ended, publish started, launch 2, "
                                     "act 1 settled ended, act 2"));
    assert_int_equal(world_n_events(w, "ended"), 1);
    assert_int_equal(world_stored(w, id), JOB_COMPLETED);
}

/* --- a daemon that dies --- */

static void
before_the_commit_nothing_has_happened(void **state)
{
    struct world *w = *state;
    uint32_t kept = world_submit(w, world_job(w, ALICE, 1));
    world_turn_without_plan(w);
    uint32_t fresh = world_submit(w, world_job(w, ALICE, 1));
    world_turn_dies(w, DEATH_BEFORE_COMMIT);
    assert_null(strstr(w->steps, "answer well, publish started"));
    assert_int_equal(w->n_launched, 0);
    world_crash(w);
    assert_null(world_get(w, fresh));
    assert_int_equal(world_get(w, kept)->state, JOB_PENDING);
    assert_int_equal(world_get(w, kept)->attempts, 0);
    assert_int_equal(world_n_events(w, "started"), 0);
    world_turn(w);
    assert_int_equal(w->n_launched, 1);
}

/* The client got no answer and will ask again; the attempt was already decided, and is not
 * decided again. */
static void
after_the_commit_all_has_happened_but_what_can_be_seen(void **state)
{
    static const enum death deaths[] = {DEATH_AFTER_COMMIT, DEATH_AFTER_ANSWERS};
    struct world *w = *state;
    for (size_t i = 0; i < 2; i++) {
        uint32_t id = world_submit(w, world_job(w, ALICE, 1));
        world_turn_dies(w, deaths[i]);
        assert_int_equal(w->n_launched, 0);
        world_crash(w);
        assert_int_equal(world_get(w, id)->state, JOB_STARTING);
        assert_int_equal(world_get(w, id)->attempts, 1);
        assert_int_equal(world_n_events(w, "started"), (int)i + 1);
        world_turn(w);
        assert_int_equal(w->n_launched, 0);
        world_is_lost(w, id, OUTCOME_NEVER_RAN); /* its folder says so */
        world_sample(w);
        world_turn(w);
        assert_int_equal(world_get(w, id)->state, JOB_PENDING);
        jobs_cancel(&w->s, world_get(w, id), "the test");
        world_turn(w);
    }
}

static void
an_end_is_charged_once_whenever_the_daemon_dies(void **state)
{
    static const enum death deaths[] = {DEATH_BEFORE_COMMIT, DEATH_AFTER_COMMIT};
    struct world *w = *state;
    for (size_t i = 0; i < 2; i++) {
        uint32_t id = run_one(w);
        world_ends(w, id, 0);
        world_sample(w);
        world_turn_dies(w, deaths[i]);
        world_crash(w);
        assert_int_equal(world_n_events(w, "ended"), i == 0 ? 0 : 2);
        if (i == 0) {
            assert_int_equal(world_get(w, id)->state, JOB_STARTING);
            world_ends(w, id, 0); /* its record still says so */
            world_sample(w);
            world_turn(w);
        }
        assert_null(world_get(w, id));
        assert_int_equal(world_stored(w, id), JOB_COMPLETED);
    }
}

/* --- when there is a turn, and a plan --- */

static void
a_change_makes_a_turn_and_one_that_matters_a_plan(void **state)
{
    struct world *w = *state;
    world_turn(w);
    assert_false(virtual_is_due(&w->host));
    turn_is_due_unplanned(w->turn);
    assert_true(virtual_is_due(&w->host));
    w->steps[0] = '\0';
    assert_int_equal(turn_run(w->turn), 0);
    assert_null(strstr(w->steps, "before_plan"));
    assert_false(virtual_is_due(&w->host));
    turn_is_due_unchanged(w->turn);
    assert_int_equal(turn_run(w->turn), 0);
    assert_non_null(strstr(w->steps, "planned"));
}

/* A postponed plan is still due. */
static void
a_plan_that_cannot_be_now_is_made_later(void **state)
{
    struct world *w = *state;
    world_submit(w, world_job(w, ALICE, 1));
    world_turn_without_plan(w);
    assert_non_null(strstr(w->steps, "before_plan, prepare"));
    turn_is_due_unplanned(w->turn); /* a sample has arrived */
    assert_int_equal(turn_run(w->turn), 0);
    assert_int_equal(w->n_launched, 1);
}

static void
a_job_of_later_wakes_the_turn(void **state)
{
    struct world *w = *state;
    struct job *job = world_job(w, ALICE, 1);
    job->req.begin_us = w->now_us + 60 * SECOND_US;
    uint32_t id = world_submit(w, job);
    world_turn(w);
    assert_int_equal(world_get(w, id)->state, JOB_PENDING);
    world_pass(w, 59 * SECOND_US);
    assert_false(virtual_is_due(&w->host));
    world_pass(w, 2 * SECOND_US);
    assert_true(virtual_is_due(&w->host));
    assert_int_equal(turn_run(w->turn), 0);
    assert_int_equal(world_get(w, id)->state, JOB_STARTING);
}

/* The next attempt's row is written after the last one's, so that a commit refers to the right
 * one. */
static void
an_attempt_waits_for_the_row_of_the_one_before_it(void **state)
{
    struct world *w = *state;
    struct job *job = world_job(w, ALICE, 1);
    job->req.requeue = true;
    uint32_t id = world_submit(w, job);
    world_turn(w);
    world_runs(w, id);
    world_is_lost(w, id, OUTCOME_LOST);
    world_sample(w);
    assert_int_equal(job->state, JOB_PENDING);
    world_turn(w);
    assert_int_equal(job->state, JOB_PENDING);
    assert_true(virtual_is_due(&w->host));
    assert_int_equal(turn_run(w->turn), 0);
    assert_int_equal(job->run->number, 2);
}

static void
upkeep_waits_for_quiet_but_not_for_ever(void **state)
{
    struct world *w = *state;
    uint32_t id = world_submit(w, world_job(w, ALICE, 3));
    assert_int_equal(world_get(w, id)->state, JOB_INFEASIBLE);
    world_turn(w); /* one has ended: others may be old enough to be removed */
    world_pass(w, SECOND_US / 2);
    assert_int_equal(w->host.n_upkeeps, 0);
    world_submit(w, world_job(w, ALICE, 2));
    world_turn(w); /* not idle: a second from now */
    world_pass(w, SECOND_US - 1);
    assert_int_equal(w->host.n_upkeeps, 0);
    w->host.upkeep_left = 1;
    world_pass(w, 1);
    assert_int_equal(w->host.n_upkeeps, 1);
    world_pass(w, SECOND_US / 10); /* the rest, soon */
    assert_int_equal(w->host.n_upkeeps, 2);
    int64_t quiet_us = w->now_us;
    while (w->host.n_upkeeps == 2) {
        assert_true(w->now_us - quiet_us < 40 * SECOND_US);
        w->steps[0] = w->told[0] = '\0';
        world_pass(w, SECOND_US / 2);
        world_submit(w, world_job(w, BOB, 2));
        world_turn(w);
    }
    assert_true(w->now_us - quiet_us > 30 * SECOND_US);
}

/* --- the clock --- */

/* Patience counts on as if the clock had not been set. */
static void
a_clock_that_is_set_moves_what_counts_from_it(void **state)
{
    struct world *w = *state;
    struct job *job = world_job(w, ALICE, 1);
    job->req.retries = 1;
    uint32_t id = world_submit(w, job);
    world_turn(w);
    world_runs(w, id);
    world_ends(w, id, 1);
    world_sample(w);
    world_turn(w);
    int64_t begin_us = job->begin_us;
    assert_true(begin_us > w->now_us);
    w->now_us += 7200 * SECOND_US;
    w->clock_ahead_us += 7200 * SECOND_US;
    world_turn(w);
    assert_int_equal(job->begin_us, begin_us + 7200 * SECOND_US);
    assert_int_equal(job->state, JOB_PENDING);
    w->clock_ahead_us += SECOND_US; /* a clock being slewed is not set */
    world_turn(w);
    assert_int_equal(job->begin_us, begin_us + 7200 * SECOND_US);
}

/* Set while no daemon runs, and then in another boot. */
static void
a_clock_that_is_set_over_a_restart_moves_the_next_try(void **state)
{
    struct world *w = *state;
    struct job *job = world_job(w, ALICE, 1);
    job->req.retries = 1;
    uint32_t id = world_submit(w, job);
    world_turn(w);
    world_runs(w, id);
    world_ends(w, id, 1);
    world_sample(w);
    world_turn(w);
    int64_t begin_us = job->begin_us;
    world_dies(w);
    w->now_us -= 7200 * SECOND_US;
    w->clock_ahead_us -= 7200 * SECOND_US;
    world_starts(w);
    assert_int_equal(world_get(w, id)->begin_us, begin_us - 7200 * SECOND_US);
    world_turn(w);
    w->now_us += 3600 * SECOND_US; /* tracked, and stored on disk in that state */
    w->clock_ahead_us += 3600 * SECOND_US;
    world_turn_without_plan(w);
    world_crash(w);
    assert_int_equal(world_get(w, id)->begin_us, begin_us - 3600 * SECOND_US);
    struct err e = {0};
    job = world_get(w, id);
    queue_remove(w->s.queue, id);
    job->begin_us += 1000 * SECOND_US;
    queue_add(w->s.queue, job);
    state_save(&w->s, job, SAVE_JOB);
    world_turn(w);
    assert_int_equal(store_note_put(w->store, "promises", "", &e), 0);
    assert_int_equal(store_commit(w->store, &e), 0);
    world_crash(w);
    assert_int_equal(world_get(w, id)->begin_us, w->now_us + 300 * SECOND_US);
}

/* While the GPUs are being read, or a program decides whether jobs may start, no plan is made;
 * requests are still answered. */
static void
a_clock_that_is_set_is_followed_without_a_plan(void **state)
{
    struct world *w = *state;
    run_one(w);
    uint32_t id = world_submit(w, world_job(w, ALICE, 2));
    world_turn(w);
    struct job *job = world_get(w, id);
    int64_t since_us = job->blocked_since_us;
    assert_true(since_us > 0);
    w->now_us += 7200 * SECOND_US;
    w->clock_ahead_us += 7200 * SECOND_US;
    w->plans_not = true;
    world_turn_without_plan(w);
    assert_int_equal(job->blocked_since_us, since_us + 7200 * SECOND_US);
    turn_is_due_unplanned(w->turn);
    w->now_us += 7200 * SECOND_US;
    w->clock_ahead_us += 7200 * SECOND_US;
    assert_int_equal(turn_run(w->turn), 0);
    assert_int_equal(job->blocked_since_us, since_us + 14400 * SECOND_US);
}

static void
a_user_is_not_charged_for_a_clock_that_is_set(void **state)
{
    static const int64_t steps_us[] = {86400 * SECOND_US, -86400 * SECOND_US};
    struct world *w = *state;
    for (size_t i = 0; i < 2; i++) {
        uint32_t id = run_one(w);
        double before = fair_usage(w->s.fair, ALICE, w->now_us);
        w->now_us += steps_us[i];
        w->clock_ahead_us += steps_us[i];
        world_turn(w);
        if (i == 0)
            world_ends(w, id, 0);
        else
            world_is_lost(w, id, OUTCOME_LOST);
        world_sample(w);
        double charged = fair_usage(w->s.fair, ALICE, w->now_us) - before;
        assert_true(charged > 50 && charged < 70);
        world_turn(w);
    }
}

/* A job that depends on another, in a world where the job before it takes all GPUs. */
static struct job *
submit_behind(struct world *w, uint32_t first)
{
    struct job *job = world_job(w, ALICE, 2);
    job->req.deps = xcalloc(1, sizeof *job->req.deps);
    job->req.deps[0] = (struct dep){.type = DEP_ANY, .job = first, .task = -1};
    job->req.n_deps = 1;
    return world_get(w, world_submit(w, job));
}

/* Time with unmet dependencies is not queue time; the time in line is on disk. */
static void
time_in_line_is_kept(void **state)
{
    struct world *w = *state;
    uint32_t first = run_one(w);
    uint32_t id = submit_behind(w, first)->id;
    uint32_t beside = world_submit(w, world_job(w, BOB, 2)); /* in line from now on */
    world_turn(w);
    w->now_us += 3600 * SECOND_US;
    assert_int_equal(job_lined_us(world_get(w, id), w->now_us), 0);
    world_turn(w);
    run_one(w); /* keeps both waiting */
    world_ends(w, first, 0);
    world_sample(w);
    world_turn(w);
    int64_t since_us = world_get(w, id)->lined_us;
    assert_int_equal(since_us, w->now_us);
    w->now_us += 600 * SECOND_US;
    world_turn(w);
    int64_t besides_us = world_get(w, beside)->lined_us;
    assert_true(w->now_us - besides_us >= 4200 * SECOND_US);
    world_crash(w);
    assert_int_equal(world_get(w, id)->lined_us, since_us);
    assert_int_equal(world_get(w, beside)->lined_us, besides_us);
    /* The clock is set, and set back while no daemon runs. */
    w->now_us += 7200 * SECOND_US;
    w->clock_ahead_us += 7200 * SECOND_US;
    world_turn_without_plan(w);
    assert_int_equal(world_get(w, id)->lined_us, since_us + 7200 * SECOND_US);
    w->now_us -= 7200 * SECOND_US;
    w->clock_ahead_us -= 7200 * SECOND_US;
    world_crash(w);
    assert_int_equal(world_get(w, id)->lined_us, since_us);
    world_turn(w);
    world_crash(w);
    assert_int_equal(world_get(w, id)->lined_us, since_us);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_start_is_committed_before_anybody_hears_of_it),
        TEST(an_end_and_the_start_that_it_makes_possible_are_one_commit),
        TEST(a_turn_without_changes_writes_nothing),
        TEST(reasons_to_wait_are_told_behind_the_answers),
        TEST(what_a_part_notes_is_read_by_all),
        TEST(a_start_that_cannot_be_prepared_was_not_decided),
        TEST(the_event_of_a_job_that_had_ended_outlives_what_is_taken_back),
        TEST(a_launch_that_fails_is_an_end_of_the_next_commit),
        TEST(a_refused_commit_tells_nobody),
        TEST(ends_wait_for_the_disk_and_are_told_once),
        TEST(before_the_commit_nothing_has_happened),
        TEST(after_the_commit_all_has_happened_but_what_can_be_seen),
        TEST(an_end_is_charged_once_whenever_the_daemon_dies),
        TEST(a_change_makes_a_turn_and_one_that_matters_a_plan),
        TEST(a_plan_that_cannot_be_now_is_made_later),
        TEST(a_job_of_later_wakes_the_turn),
        TEST(an_attempt_waits_for_the_row_of_the_one_before_it),
        TEST(upkeep_waits_for_quiet_but_not_for_ever),
        TEST(a_clock_that_is_set_moves_what_counts_from_it),
        TEST(a_clock_that_is_set_over_a_restart_moves_the_next_try),
        TEST(a_clock_that_is_set_is_followed_without_a_plan),
        TEST(a_user_is_not_charged_for_a_clock_that_is_set),
        TEST(time_in_line_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
