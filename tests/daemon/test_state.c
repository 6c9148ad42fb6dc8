/* The lifecycle of jobs by the daemon's own code, in virtual time: submitted, started, ended,
 * cancelled, held, in arrays, with dependencies, within limits; and a daemon that dies at any
 * point between. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "core/queue/array.h"
#include "daemon/state/array_turns.h"
#include "daemon/state/unique.h"
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

/* --- one job --- */

static void
a_job_from_submission_to_end(void **state)
{
    struct world *w = *state;
    uint32_t id = world_submit(w, world_job(w, ALICE, 1));
    assert_told(w, "entered 1");
    world_turn(w);
    assert_told(w, "started 1");
    assert_int_equal(w->n_launched, 1);
    world_runs(w, id);
    assert_int_equal(world_get(w, id)->state, JOB_RUNNING);
    world_ends(w, id, 0);
    assert_told(w, "awaited 1"); /* waiting for its memory */
    world_turn(w);
    assert_int_equal(world_stored(w, id), JOB_PENDING);
    world_sample(w);
    assert_told(w, "ended 1 COMPLETED");
    world_turn(w);
    assert_null(world_get(w, id));
    assert_int_equal(world_stored(w, id), JOB_COMPLETED);
    assert_true(fair_usage(w->s.fair, ALICE, w->now_us) > 0);
}

/* A plan is costly, so it is requested only when it may find something: not while memory is
 * awaited. */
static void
an_end_asks_for_a_plan_once_its_memory_is_back(void **state)
{
    struct world *w = *state;
    uint32_t id = world_submit(w, world_job(w, ALICE, 1));
    assert_true(w->n_plans_due > 0);
    world_turn(w);
    world_runs(w, id);
    w->n_plans_due = 0;
    world_ends(w, id, 0);
    assert_int_equal(w->n_plans_due, 0);
    world_sample(w);
    assert_true(w->n_plans_due > 0);
}

/* The GPU of an ended job is reused in the same turn, and one commit has both. */
static void
an_end_makes_room_in_the_same_turn(void **state)
{
    struct world *w = *state;
    uint32_t first = world_submit(w, world_job(w, ALICE, 2));
    uint32_t second = world_submit(w, world_job(w, ALICE, 2));
    world_turn(w);
    world_runs(w, first);
    world_ends(w, first, 0);
    world_sample(w);
    w->told[0] = '\0';
    world_turn(w);
    assert_told(w, "awaited 1, ended 1 COMPLETED, started 2");
    assert_int_equal(world_get(w, second)->state, JOB_STARTING);
    assert_int_equal(world_stored(w, first), JOB_COMPLETED);
}

static void
a_failure_is_tried_again_later(void **state)
{
    struct world *w = *state;
    struct job *job = world_job(w, ALICE, 1);
    job->req.retries = 1;
    uint32_t id = world_submit(w, job);
    world_turn(w);
    world_runs(w, id);
    world_ends(w, id, 1);
    world_sample(w);
    assert_int_equal(job->state, JOB_PENDING);
    w->told[0] = '\0';
    world_turn(w);
    assert_told(w, "awaited 1, retried 1");
    assert_int_equal(w->n_launched, 1); /* not before its begin time */
    w->now_us = job->begin_us;
    world_turn(w);
    assert_int_equal(w->n_launched, 2);
    world_runs(w, id);
    world_ends(w, id, 1);
    world_sample(w);
    world_turn(w);
    assert_int_equal(world_stored(w, id), JOB_FAILED);
}

/* --- a daemon that dies --- */

static void
a_start_that_was_not_committed_never_was(void **state)
{
    struct world *w = *state;
    uint32_t id = world_submit(w, world_job(w, ALICE, 1));
    world_turn_without_plan(w);
    world_turn_dies(w, DEATH_BEFORE_COMMIT);
    assert_int_equal(world_get(w, id)->state, JOB_STARTING);
    world_crash(w);
    assert_int_equal(world_get(w, id)->state, JOB_PENDING);
    assert_int_equal(world_get(w, id)->attempts, 0);
    world_turn(w);
    assert_int_equal(w->n_launched, 1);
}

static void
a_start_that_was_committed_is_taken_up(void **state)
{
    struct world *w = *state;
    uint32_t id = world_submit(w, world_job(w, ALICE, 2));
    uint32_t other = world_submit(w, world_job(w, ALICE, 1));
    world_turn(w);
    world_runs(w, id);
    world_crash(w);
    assert_int_equal(world_get(w, id)->state, JOB_STARTING);
    world_turn(w);
    assert_int_equal(w->n_launched, 0); /* neither it nor the other is launched */
    world_runs(w, id);
    world_ends(w, id, 0);
    world_sample(w);
    world_turn(w);
    assert_int_equal(world_stored(w, id), JOB_COMPLETED);
    assert_int_equal(world_get(w, other)->state, JOB_STARTING);
}

static void
an_end_that_was_not_committed_is_told_again(void **state)
{
    struct world *w = *state;
    uint32_t id = world_submit(w, world_job(w, ALICE, 1));
    world_turn(w);
    world_runs(w, id);
    world_ends(w, id, 3);
    world_sample(w);
    assert_int_equal(world_get(w, id)->state, JOB_FAILED);
    world_crash(w);
    assert_int_equal(world_get(w, id)->state, JOB_STARTING);
    world_ends(w, id, 3); /* its record still says so */
    world_sample(w);
    world_turn(w);
    assert_int_equal(world_stored(w, id), JOB_FAILED);
}

static void
what_never_ran_starts_again_and_what_is_lost_does_not(void **state)
{
    struct world *w = *state;
    uint32_t never = world_submit(w, world_job(w, ALICE, 1));
    uint32_t lost = world_submit(w, world_job(w, ALICE, 1));
    world_turn(w);
    world_crash(w);
    world_is_lost(w, never, OUTCOME_NEVER_RAN);
    world_is_lost(w, lost, OUTCOME_LOST);
    world_sample(w);
    world_turn(w);
    assert_int_equal(world_stored(w, lost), JOB_LOST);
    assert_int_equal(world_get(w, never)->state, JOB_PENDING);
    world_turn(w); /* after the previous attempt's row */
    assert_int_equal(w->n_launched, 1);
    assert_int_equal(w->launched[0], never);
}

/* --- a disk that is full --- */

static void
a_refused_commit_takes_back_what_nobody_knows(void **state)
{
    struct world *w = *state;
    uint32_t kept = world_submit(w, world_job(w, ALICE, 2));
    world_turn_without_plan(w);
    uint32_t fresh = world_submit(w, world_job(w, ALICE, 1));
    world_turn_on_full_disk(w);
    assert_null(world_get(w, fresh));
    assert_int_equal(world_get(w, kept)->state, JOB_PENDING);
    assert_int_equal(world_get(w, kept)->attempts, 0);
    assert_false(ledger_holds(w->s.ledger, kept));
    assert_int_equal(w->n_launched, 0);
    world_pass(w, RETRY_US);
    world_turn(w);
    assert_int_equal(w->n_launched, 1);
}

static void
a_refused_start_leaves_the_attempt_before_it(void **state)
{
    struct world *w = *state;
    struct job *job = world_job(w, ALICE, 1);
    job->req.requeue = true;
    uint32_t id = world_submit(w, job);
    world_turn(w);
    world_runs(w, id);
    world_is_lost(w, id, OUTCOME_LOST);
    world_sample(w);
    world_turn_without_plan(w);
    world_turn_on_full_disk(w);
    assert_int_equal(job->attempts, 1);
    assert_non_null(job->run);
    assert_int_equal(job->run->number, 1);
    assert_int_equal(job->run->ending.outcome, OUTCOME_LOST);
}

static void
a_refused_commit_keeps_ends_for_the_next(void **state)
{
    struct world *w = *state;
    uint32_t id = world_submit(w, world_job(w, ALICE, 1));
    world_turn(w);
    world_runs(w, id);
    world_ends(w, id, 0);
    world_sample(w);
    world_turn_on_full_disk(w);
    assert_int_equal(world_get(w, id)->state, JOB_COMPLETED);
    world_turn(w);
    assert_null(world_get(w, id));
    assert_int_equal(world_stored(w, id), JOB_COMPLETED);
}

/* Loads it from the store, as method_requeue.c does. */
static struct job *
come_back(struct world *w, uint32_t id)
{
    struct err e = {0};
    struct job *job = store_job_load(w->store, id, &e);
    assert_non_null(job);
    queue_add(w->s.queue, job);
    assert_int_equal(jobs_requeue(&w->s, job, "alice", false, &e), 0);
    return job;
}

static void
a_requeue_that_was_refused_is_none(void **state)
{
    struct world *w = *state;
    uint32_t id = world_submit(w, world_job(w, ALICE, 1));
    world_turn(w);
    world_runs(w, id);
    world_ends(w, id, 1);
    world_sample(w);
    world_turn(w);
    come_back(w, id);
    world_turn_on_full_disk(w);
    assert_null(world_get(w, id));
    assert_int_equal(w->s.changes.n_unsaved, 0);
    world_pass(w, RETRY_US);
    world_turn(w);
    assert_int_equal(w->n_launched, 1);
    assert_int_equal(world_stored(w, id), JOB_FAILED);
    assert_int_equal(world_n_events(w, "back"), 0);
    come_back(w, id);
    world_turn(w);
    world_turn(w);
    assert_int_equal(w->n_launched, 2);
}

/* The job it would have depended on is gone. */
static void
a_change_that_needs_a_refused_job_is_none(void **state)
{
    struct world *w = *state;
    struct job *job = world_job(w, ALICE, 1);
    job->req.hold = true;
    uint32_t id = world_submit(w, job);
    world_turn(w);
    uint32_t other = world_submit(w, world_job(w, ALICE, 1));
    job = world_get(w, id);
    job->req.deps = xcalloc(1, sizeof *job->req.deps);
    job->req.deps[0] = (struct dep){.type = DEP_SUCCESS, .job = other, .task = -1};
    job->req.n_deps = 1;
    state_save(&w->s, job, SAVE_JOB);
    state_note(&w->s, CHANGE_UPDATED, job);
    assert_true(depend_enter(&w->s, job, NULL));
    assert_true(job->parked & PARK_DEPENDENCY);
    world_turn_on_full_disk(w);
    assert_null(world_get(w, other));
    assert_int_equal(world_get(w, id)->req.n_deps, 0);
    assert_false(world_get(w, id)->parked & PARK_DEPENDENCY);
    world_pass(w, RETRY_US);
    world_turn(w);
    assert_int_equal(world_n_events(w, "updated"), 0);
    world_crash(w);
    assert_int_equal(world_get(w, id)->req.n_deps, 0);
}

/* --- users' requests --- */

static void
a_cancel_is_passed_on_each_time(void **state)
{
    struct world *w = *state;
    uint32_t id = world_submit(w, world_job(w, ALICE, 1));
    world_turn(w);
    world_runs(w, id);
    w->told[0] = '\0';
    assert_int_equal(jobs_cancel(&w->s, world_get(w, id), "alice"), 0);
    assert_told(w, "cancel 1");
    assert_int_equal(jobs_cancel(&w->s, world_get(w, id), "alice"), 0);
    assert_told(w, "cancel-more 1");
    assert_int_equal(jobs_cancel(&w->s, world_get(w, id), "root"), 0);
    assert_told(w, "cancel 1");
    world_crash(w);
    assert_false(world_get(w, id)->cancel_asked); /* nothing of it was stored */
    jobs_cancel(&w->s, world_get(w, id), "alice");
    world_turn(w);
    world_crash(w);
    assert_true(world_get(w, id)->cancel_asked);
    world_is_lost(w, id, OUTCOME_CANCELLED);
    world_sample(w);
    world_turn(w);
    assert_int_equal(world_stored(w, id), JOB_CANCELLED);
}

static void
a_grace_of_a_cancel_outlives_a_restart_and_not_the_stop(void **state)
{
    struct world *w = *state;
    struct err e = {0};
    struct job *job = world_job(w, ALICE, 1);
    job->req.grace_ms = 300000;
    uint32_t id = world_submit(w, job);
    world_turn(w);
    world_runs(w, id);
    jobs_set_stop_grace(&w->s, world_get(w, id), 0);
    jobs_cancel(&w->s, world_get(w, id), "alice");
    world_turn(w);
    world_crash(w);
    assert_int_equal(job_grace_ms(world_get(w, id)), 0);
    world_is_lost(w, id, OUTCOME_CANCELLED);
    world_sample(w);
    assert_int_equal(jobs_requeue(&w->s, world_get(w, id), "alice", false, &e), 0);
    assert_int_equal(job_grace_ms(world_get(w, id)), 300000);
    world_turn(w);
    world_crash(w);
    assert_int_equal(world_get(w, id)->req.grace_ms, 300000);
    assert_int_equal(job_grace_ms(world_get(w, id)), 300000);
}

/* The job it depends on runs again, and fails. */
static void
a_dependency_that_was_met_stays_so_over_a_restart(void **state)
{
    struct world *w = *state;
    struct err e = {0};
    uint32_t first = world_submit(w, world_job(w, ALICE, 1));
    struct job *job = world_job(w, ALICE, 1);
    job->req.hold = true;
    job->req.deps = xcalloc(1, sizeof *job->req.deps);
    job->req.deps[0] = (struct dep){.type = DEP_SUCCESS, .job = first, .task = -1};
    job->req.n_deps = 1;
    uint32_t second = world_submit(w, job);
    world_turn(w);
    assert_true(world_get(w, second)->parked & PARK_DEPENDENCY);
    world_runs(w, first);
    world_ends(w, first, 0);
    world_sample(w);
    assert_int_equal(jobs_requeue(&w->s, world_get(w, first), "alice", false, &e), 0);
    world_turn(w);
    world_crash(w);
    assert_false(world_get(w, second)->parked & PARK_DEPENDENCY);
    world_turn(w);
    world_runs(w, first);
    world_ends(w, first, 1);
    world_sample(w);
    world_turn(w);
    assert_int_equal(world_stored(w, first), JOB_FAILED);
    assert_int_equal(world_get(w, second)->state, JOB_HELD);
}

/* Requested in the turn in which the job ended: the end is still reported unchanged. */
static void
one_that_has_just_ended_runs_again(void **state)
{
    struct world *w = *state;
    struct err e = {0};
    uint32_t id = world_submit(w, world_job(w, ALICE, 1));
    world_turn(w);
    world_runs(w, id);
    world_ends(w, id, 0);
    world_sample(w);
    w->told[0] = '\0';
    assert_int_equal(jobs_requeue(&w->s, world_get(w, id), "alice", false, &e), 0);
    assert_told(w, "awaited 1, ended 1 COMPLETED, back 1");
    world_turn(w);
    assert_int_equal(world_stored(w, id), JOB_PENDING);
    world_turn(w);
    assert_int_equal(w->n_launched, 2);
}

static void
a_user_cannot_release_what_an_admin_holds(void **state)
{
    struct world *w = *state;
    struct err e = {0};
    struct job *job = world_get(w, world_submit(w, world_job(w, ALICE, 1)));
    w->s.asker = (struct asker){.is_known = true, .admin = true, .uid = 0};
    assert_int_equal(jobs_hold(&w->s, job, &e), 0);
    world_turn(w);
    world_crash(w);
    job = world_get(w, 1);
    w->s.asker = (struct asker){.is_known = true, .uid = ALICE};
    assert_int_equal(jobs_release(&w->s, job, &e), -1);
    assert_int_equal(e.code, ERR_PERMISSION);
    w->s.asker = (struct asker){.is_known = true, .admin = true, .uid = 0};
    assert_int_equal(jobs_release(&w->s, job, &e), 0);
    assert_told(w, "released 1");
    world_turn(w);
    assert_int_equal(w->n_launched, 1);
}

static void
what_is_to_be_unique_is_refused_twice(void **state)
{
    struct world *w = *state;
    struct err e = {0};
    uint32_t id = world_submit(w, world_job(w, ALICE, 1));
    struct job *second = world_job(w, ALICE, 1);
    second->req.unique = true;
    assert_int_equal(unique_check(&w->s, second, &e), -1); /* new in this turn */
    world_turn(w);
    world_runs(w, id);
    world_ends(w, id, 0);
    world_sample(w);
    world_turn(w);
    assert_null(world_get(w, id));
    assert_int_equal(unique_check(&w->s, second, &e), -1); /* only in the store */
    job_free(second);
    struct job *others = world_job(w, BOB, 1);
    others->req.unique = true;
    assert_int_equal(unique_check(&w->s, others, &e), 0);
    job_free(others);
}

/* --- limits --- */

static void
a_user_runs_as_many_as_the_limit_allows(void **state)
{
    struct world *w = *state;
    w->limits.each.running = 1;
    uint32_t first = world_submit(w, world_job(w, ALICE, 1));
    world_submit(w, world_job(w, ALICE, 1));
    uint32_t bobs = world_submit(w, world_job(w, BOB, 1));
    world_turn(w);
    assert_int_equal(w->n_launched, 2);
    assert_int_equal(w->launched[0], first);
    assert_int_equal(w->launched[1], bobs);
    world_runs(w, first);
    world_ends(w, first, 0);
    world_sample(w);
    world_turn(w);
    assert_int_equal(w->n_launched, 3);
}

static void
what_is_above_a_limit_never_enters_the_line(void **state)
{
    struct world *w = *state;
    w->limits.each.gpus = 1;
    struct job *job = world_job(w, ALICE, 2);
    auto_free char *why = NULL;
    jobs_add(&w->s, job, &why);
    assert_int_equal(job->state, JOB_INFEASIBLE);
    assert_non_null(strstr(why, "alice may have 1 at the same time (user_max_gpus)"));
    assert_told(w, "entered 1, ended 1 INFEASIBLE");
    world_turn(w);
    assert_int_equal(world_stored(w, 1), JOB_INFEASIBLE);
}

/* --- arrays --- */

static struct job *
array_of(struct world *w, int32_t first, int32_t last, int32_t most)
{
    struct job *job = world_job(w, ALICE, 1);
    job->req.array.ranges = xcalloc(1, sizeof *job->req.array.ranges);
    job->req.array.ranges[0] = (struct task_range){first, last};
    job->req.array.n = 1;
    job->req.array_max = most;
    return job;
}

static void
end_task(struct world *w, uint32_t id, int code)
{
    world_runs(w, id);
    world_ends(w, id, code);
    world_sample(w);
}

static void
an_array_ends_with_its_last_task(void **state)
{
    struct world *w = *state;
    uint32_t array = world_submit(w, array_of(w, 0, 2, 1));
    world_turn(w);
    assert_int_equal(w->n_launched, 1); /* one at a time, though there are two GPUs */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(world_get(w, w->launched[i])->task, i);
        end_task(w, w->launched[i], i == 1 ? 7 : 0);
        world_turn(w);
        world_turn(w);
    }
    assert_null(world_get(w, array));
    assert_int_equal(world_stored(w, array), JOB_FAILED);
    assert_int_equal(w->n_launched, 3);
}

static void
an_array_survives_with_what_has_left_it(void **state)
{
    struct world *w = *state;
    uint32_t array = world_submit(w, array_of(w, 0, 3, 0));
    world_turn(w);
    assert_int_equal(w->n_launched, 2);
    uint32_t task = w->launched[0];
    world_crash(w);
    assert_int_equal(array_n_pending(world_get(w, array)), 2);
    assert_int_equal(world_get(w, array)->tasks->active, 2);
    end_task(w, task, 0);
    world_turn(w);
    assert_int_equal(w->n_launched, 1);
    assert_int_equal(world_get(w, w->launched[0])->task, 2);
}

static void
a_requeue_of_a_task_that_was_refused_is_none(void **state)
{
    struct world *w = *state;
    uint32_t id = world_submit(w, array_of(w, 0, 1, 0));
    world_turn(w);
    uint32_t first = w->launched[0], second = w->launched[1];
    world_runs(w, first);
    world_runs(w, second);
    world_ends(w, first, 3);
    world_sample(w);
    world_turn(w);
    assert_null(world_get(w, first));
    come_back(w, first);
    assert_int_equal(world_get(w, id)->tasks->live, 2);
    world_turn_on_full_disk(w);
    assert_null(world_get(w, first));
    const struct tasks *t = world_get(w, id)->tasks;
    assert_int_equal(t->live, 1);
    assert_int_equal(t->ended[JOB_FAILED], 1);
    assert_int_equal(array_exit_status(t), 3);
    world_ends(w, second, 0);
    world_pass(w, RETRY_US);
    world_sample(w);
    world_turn(w);
    assert_int_equal(world_stored(w, id), JOB_FAILED);
    assert_int_equal(w->n_launched, 2);
}

static void
a_refused_commit_puts_tasks_back(void **state)
{
    struct world *w = *state;
    uint32_t array = world_submit(w, array_of(w, 0, 3, 0));
    world_turn_without_plan(w);
    world_turn_on_full_disk(w);
    assert_non_null(strstr(w->steps, "planned 2"));
    assert_int_equal(array_n_pending(world_get(w, array)), 4);
    assert_int_equal(queue_n(w->s.queue), 1);
    world_pass(w, RETRY_US);
    world_turn(w);
    assert_int_equal(world_get(w, w->launched[0])->task, 0);
}

/* A task that runs again no longer counts for its array's outcome. */
static void
an_array_has_the_status_of_the_tasks_that_ended_last(void **state)
{
    struct world *w = *state;
    struct err e = {0};
    uint32_t array = world_submit(w, array_of(w, 0, 2, 0));
    world_turn(w);
    uint32_t first = w->launched[0], second = w->launched[1];
    end_task(w, second, 1);
    end_task(w, first, 5);
    assert_int_equal(array_exit_status(world_get(w, array)->tasks), 5);
    assert_int_equal(jobs_requeue(&w->s, world_get(w, first), "alice", false, &e), 0);
    assert_int_equal(array_exit_status(world_get(w, array)->tasks), 1);
    world_turn(w);
    world_turn(w);
    end_task(w, first, 0);
    end_task(w, w->launched[2] == first ? w->launched[3] : w->launched[2], 0);
    assert_int_equal(world_get(w, array)->state, JOB_FAILED);
    assert_int_equal(array_exit_status(world_get(w, array)->tasks), 1);
}

static void
a_cancelled_array_drops_what_has_not_left(void **state)
{
    struct world *w = *state;
    uint32_t array = world_submit(w, array_of(w, 0, 4, 0));
    world_turn(w);
    uint32_t first = w->launched[0], second = w->launched[1];
    w->told[0] = '\0';
    assert_int_equal(jobs_cancel(&w->s, world_get(w, array), "alice"), 0);
    assert_told(w, "cancel 2, cancel 3, dropped 1 3, cancel 1");
    world_is_lost(w, first, OUTCOME_CANCELLED);
    world_is_lost(w, second, OUTCOME_CANCELLED);
    world_sample(w);
    world_turn(w);
    assert_int_equal(queue_n(w->s.queue), 0);
    assert_int_equal(world_stored(w, array), JOB_CANCELLED);
}

/* --- dependencies --- */

static uint32_t
submit_after_task(struct world *w, uint32_t id, int32_t task, enum dep_type type)
{
    struct job *job = world_job(w, ALICE, 1);
    job->req.deps = xcalloc(1, sizeof *job->req.deps);
    job->req.deps[0] = (struct dep){.type = type, .job = id, .task = task};
    job->req.n_deps = 1;
    return world_submit(w, job);
}

static uint32_t
submit_after(struct world *w, uint32_t id, enum dep_type type)
{
    return submit_after_task(w, id, -1, type);
}

static void
a_chain_falls_in_one_turn(void **state)
{
    struct world *w = *state;
    uint32_t first = world_submit(w, world_job(w, ALICE, 1));
    uint32_t second = submit_after(w, first, DEP_SUCCESS);
    uint32_t third = submit_after(w, second, DEP_SUCCESS);
    uint32_t any = submit_after(w, third, DEP_ANY);
    world_turn(w);
    assert_int_equal(w->n_launched, 1);
    end_task(w, first, 1);
    w->told[0] = '\0';
    world_turn(w);
    assert_told(w,
                "awaited 1, ended 1 FAILED, ended 2 CANCELLED, ended 3 CANCELLED, started 4");
    assert_int_equal(world_stored(w, third), JOB_CANCELLED);
    assert_int_equal(world_get(w, any)->state, JOB_STARTING);
}

static void
who_waits_for_another_still_does_after_a_crash(void **state)
{
    struct world *w = *state;
    uint32_t first = world_submit(w, world_job(w, ALICE, 1));
    uint32_t second = submit_after(w, first, DEP_SUCCESS);
    world_turn(w);
    world_crash(w);
    world_turn(w);
    assert_int_equal(world_get(w, second)->state, JOB_PENDING);
    end_task(w, first, 0);
    world_turn(w);
    assert_int_equal(world_get(w, second)->state, JOB_STARTING);
    world_crash(w); /* its dependency is history, and was met */
    assert_int_equal(world_get(w, second)->state, JOB_STARTING);
}

static void
what_can_never_be_met_ends_at_once(void **state)
{
    struct world *w = *state;
    uint32_t first = world_submit(w, world_job(w, ALICE, 1));
    world_turn(w);
    end_task(w, first, 1);
    world_turn(w);
    uint32_t second = submit_after(w, first, DEP_SUCCESS);
    world_turn(w);
    assert_int_equal(world_stored(w, second), JOB_CANCELLED);
}

/* The store still has the state from before for a task that ended in this turn; the same for
 * the array, which ends with its last task. */
static void
a_task_that_has_just_ended_is_not_waited_for(void **state)
{
    struct world *w = *state;
    uint32_t array = world_submit(w, array_of(w, 0, 1, 0));
    world_turn(w);
    uint32_t tasks[] = {w->launched[0], w->launched[1]};
    for (int32_t i = 0; i < 2; i++) {
        end_task(w, tasks[i], i);
        uint32_t id = submit_after_task(w, array, i, i ? DEP_FAILED : DEP_SUCCESS);
        assert_int_equal(world_get(w, id)->deps_unmet, 0);
        assert_int_equal(world_get(w, id)->state, JOB_PENDING);
        world_turn(w);
        assert_int_equal(world_get(w, id)->state, JOB_STARTING);
    }
}

static void
expect_wait(struct world *w, uint32_t id, const char *words)
{
    auto_buf struct buf text = BUF_INIT;
    plan_explain_text(w->s.queue, world_get(w, id), &text);
    assert_string_equal(buf_str(&text), words);
}

/* A job that has ended, in this turn or before, is no longer waited for; tasks are named as
 * users write them. */
static void
a_reason_to_wait_names_what_is_still_waited_for(void **state)
{
    struct world *w = *state;
    uint32_t first = world_submit(w, world_job(w, ALICE, 1));
    uint32_t array = world_submit(w, array_of(w, 0, 3, 1));
    struct job *job = world_job(w, ALICE, 1);
    job->req.deps = xcalloc(3, sizeof *job->req.deps);
    job->req.deps[0] = (struct dep){.type = DEP_SUCCESS, .job = first, .task = -1};
    job->req.deps[1] = (struct dep){.type = DEP_ANY, .job = array, .task = 0};
    job->req.deps[2] = (struct dep){.type = DEP_FAILED, .job = array, .task = 2};
    job->req.n_deps = 3;
    uint32_t id = world_submit(w, job);
    uint32_t last = submit_after_task(w, array, 3, DEP_ANY);
    expect_wait(w, id, "Dependency: waits for job 1 to succeed, and for 2 more");
    expect_wait(w, last, "Dependency: waits for job 2_3 to end");
    world_turn(w);
    end_task(w, first, 0);
    expect_wait(w, id, "Dependency: waits for job 2_0 to end, and for 1 more");
    world_turn(w);
    expect_wait(w, id, "Dependency: waits for job 2_0 to end, and for 1 more");
    end_task(w, w->launched[1], 0);
    expect_wait(w, id, "Dependency: waits for job 2_2 to fail");
    for (int i = 2; i < 4; i++) {
        world_turn(w);
        world_turn(w);
        expect_wait(w, id, "Dependency: waits for job 2_2 to fail");
        end_task(w, w->launched[i], 1);
    }
    assert_int_equal(world_get(w, id)->deps_unmet, 0);
}

/* A task split off its array waits only for the array's remaining dependencies: jobs already
 * met may have been removed since. */
static void
a_task_of_its_own_waits_on_though_what_was_met_is_gone(void **state)
{
    struct world *w = *state;
    struct err e;
    uint32_t first = world_submit(w, world_job(w, ALICE, 1));
    uint32_t second = world_submit(w, world_job(w, ALICE, 1));
    struct job *array = array_of(w, 0, 2, 0);
    array->req.deps = xcalloc(2, sizeof *array->req.deps);
    array->req.deps[0] = (struct dep){.type = DEP_SUCCESS, .job = first, .task = -1};
    array->req.deps[1] = (struct dep){.type = DEP_SUCCESS, .job = second, .task = -1};
    array->req.n_deps = 2;
    uint32_t id = world_submit(w, array);
    world_turn(w);
    end_task(w, first, 0);
    world_turn(w);
    assert_int_equal(store_prune(w->store, INT64_MAX, 0, 1, &e), 1);
    struct job *task = arrays_split(&w->s, world_get(w, id), 1, 0);
    assert_int_equal(task->deps_unmet, 1);
    end_task(w, second, 0);
    world_turn(w);
    assert_int_equal(task->deps_unmet, 0);
}

/* --- what is learned --- */

static void
a_run_teaches_those_that_wait_with_the_same_command(void **state)
{
    struct world *w = *state;
    uint32_t first = world_submit(w, world_job(w, ALICE, 2));
    uint32_t second = world_submit(w, world_job(w, ALICE, 2));
    world_turn(w);
    assert_int_equal(world_get(w, second)->estimate_ms, 0);
    end_task(w, first, 0);
    world_turn(w);
    assert_int_equal(world_get(w, second)->estimate_ms, 60000);
    world_crash(w);
    uint32_t third = world_submit(w, world_job(w, ALICE, 2));
    assert_int_equal(world_get(w, third)->estimate_ms, 60000);
}

/* Learned with the end of the run: in the commit that succeeds, after one that failed. */
static void
a_refused_commit_loses_nothing_that_was_learned(void **state)
{
    struct world *w = *state;
    struct job *job = world_job(w, ALICE, 1);
    job->req.vram_auto = true;
    uint32_t id = world_submit(w, job);
    world_turn(w);
    world_runs(w, id);
    world_get(w, id)->run->peak_mib[0] = 1000;
    world_ends(w, id, 0);
    world_sample(w);
    for (int i = 0; i < 2; i++)
        world_turn_on_full_disk(w);
    world_turn(w);
    assert_int_equal(world_stored(w, id), JOB_COMPLETED);
    world_crash(w);
    job = world_job(w, ALICE, 1);
    job->req.vram_auto = true;
    id = world_submit(w, job);
    assert_int_equal(world_get(w, id)->auto_runs, 1);
    assert_true(world_get(w, id)->req.demand.vram_mib > 0);
}

/* --- changes --- */

/* A change noted after its readers' turn is delivered in the next. */
static void
a_change_that_nobody_has_read_is_kept(void **state)
{
    (void)state;
    struct changes c = {0};
    for (uint32_t i = 1; i <= 4; i++)
        changes_add(&c, CHANGE_HELD)->job = i;
    c.n_read = 3;
    assert_true(changes_drop_read(&c));
    assert_int_equal(c.n, 1);
    assert_int_equal(c.n_read, 0);
    assert_int_equal(c.list[0].job, 4);
    c.n_read = 1;
    assert_false(changes_drop_read(&c));
    assert_int_equal(c.n, 0);
    changes_free(&c);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* Both fit, and the plan starts both: whichever of that name starts first holds back the
 * singleton. */
static void
a_singleton_waits_for_another_of_its_name_in_one_plan(void **state)
{
    struct world *w = *state;
    struct job *single = world_job(w, ALICE, 1), *other = world_job(w, ALICE, 1);
    single->req.name = xstrdup("x");
    single->req.singleton = true;
    other->req.name = xstrdup("x");
    other->req.priority = 5;
    uint32_t s = world_submit(w, single), o = world_submit(w, other);
    world_turn(w);
    assert_int_equal(world_get(w, o)->state, JOB_STARTING);
    assert_int_equal(world_get(w, s)->state, JOB_PENDING);
    world_runs(w, o);
    world_turn(w);
    assert_int_equal(world_get(w, s)->state, JOB_PENDING);
    world_ends(w, o, 0);
    world_sample(w);
    world_turn(w);
    assert_int_equal(world_get(w, s)->state, JOB_STARTING);
}

/* The explanation of a job that can never start, after its dependencies or its name
 * changed. */
static void
expect_circle(struct world *w, struct job *job, bool renamed, const char *words)
{
    auto_buf struct buf why = BUF_INIT;
    queue_refile(w->s.queue, job);
    assert_false(renamed ? depend_renamed(&w->s, job, &why) : depend_enter(&w->s, job, &why));
    assert_int_equal(job->state, JOB_CANCELLED);
    if (!strstr(buf_str(&why), words))
        fail_msg("%s", buf_str(&why));
}

/* The first of two waits, through a third, for the second, which is a singleton. */
static void
a_circle_over_a_singleton_can_never_start(void **state)
{
    for (int renamed = 0; renamed <= 1; renamed++) {
        struct world *w = *state;
        const char *name = renamed ? "x" : "y";
        struct job *first = world_job(w, ALICE, 1), *single = world_job(w, ALICE, 1);
        if (!renamed)
            first->req.name = xstrdup(name);
        single->req.name = xstrdup(name);
        single->req.singleton = true;
        world_submit(w, first);
        uint32_t middle = submit_after(w, world_submit(w, single), DEP_ANY);
        first->req.deps = xcalloc(1, sizeof *first->req.deps);
        first->req.deps[0] = (struct dep){.type = DEP_ANY, .job = middle, .task = -1};
        first->req.n_deps = 1;
        if (renamed) {
            assert_true(depend_enter(&w->s, first, NULL));
            first->req.name = xstrdup(name);
        }
        char words[80];
        snprintf(words, sizeof words,
                 "it would wait for job %u, which waits for it: singletons", middle);
        expect_circle(w, first, renamed, words);
        world_turn(w);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_job_from_submission_to_end),
        TEST(an_end_asks_for_a_plan_once_its_memory_is_back),
        TEST(an_end_makes_room_in_the_same_turn),
        TEST(a_failure_is_tried_again_later),
        TEST(a_start_that_was_not_committed_never_was),
        TEST(a_start_that_was_committed_is_taken_up),
        TEST(an_end_that_was_not_committed_is_told_again),
        TEST(what_never_ran_starts_again_and_what_is_lost_does_not),
        TEST(a_refused_commit_takes_back_what_nobody_knows),
        TEST(a_refused_start_leaves_the_attempt_before_it),
        TEST(a_refused_commit_keeps_ends_for_the_next),
        TEST(a_cancel_is_passed_on_each_time),
        TEST(a_dependency_that_was_met_stays_so_over_a_restart),
        TEST(a_grace_of_a_cancel_outlives_a_restart_and_not_the_stop),
        TEST(one_that_has_just_ended_runs_again),
        TEST(a_user_cannot_release_what_an_admin_holds),
        TEST(what_is_to_be_unique_is_refused_twice),
        TEST(a_user_runs_as_many_as_the_limit_allows),
        TEST(what_is_above_a_limit_never_enters_the_line),
        TEST(a_singleton_waits_for_another_of_its_name_in_one_plan),
        TEST(a_circle_over_a_singleton_can_never_start),
        TEST(an_array_ends_with_its_last_task),
        TEST(an_array_survives_with_what_has_left_it),
        TEST(a_requeue_of_a_task_that_was_refused_is_none),
        TEST(a_requeue_that_was_refused_is_none),
        TEST(a_change_that_needs_a_refused_job_is_none),
        TEST(a_refused_commit_puts_tasks_back),
        TEST(an_array_has_the_status_of_the_tasks_that_ended_last),
        TEST(a_cancelled_array_drops_what_has_not_left),
        TEST(a_chain_falls_in_one_turn),
        TEST(who_waits_for_another_still_does_after_a_crash),
        TEST(what_can_never_be_met_ends_at_once),
        TEST(a_task_that_has_just_ended_is_not_waited_for),
        TEST(a_task_of_its_own_waits_on_though_what_was_met_is_gone),
        TEST(a_reason_to_wait_names_what_is_still_waited_for),
        TEST(a_run_teaches_those_that_wait_with_the_same_command),
        TEST(a_refused_commit_loses_nothing_that_was_learned),
        TEST(a_change_that_nobody_has_read_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
