/* A jobs file that is sent again after each edit: which lines become jobs, change their jobs,
 * or remove them; and a daemon that dies between any two pieces of that. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/counted_text.h"
#include "daemon/common/caller.h"
#include "daemon/state/unique.h"
#include "file_words.h"
#include "store/store.h"

#define SECOND_US INT64_C(1000000)

static int
setup(void **state)
{
    *state = door_open(2);
    return 0;
}

static int
teardown(void **state)
{
    door_close(*state);
    return 0;
}

/* --- lines are added, changed and removed --- */

static void
a_new_line_becomes_a_job_once(void **state)
{
    struct door *d = *state;
    struct answer a = sync_file(d, "a b#2 c:500");
    assert_string_equal(a.said, "a 1 PENDING, b 2 PENDING, c 3 PENDING");
    assert_int_equal(a.n_new, 3);
    assert_int_equal(job_of_line(d, "b")->req.demand.gpus, 2);
    assert_int_equal(job_of_line(d, "b")->line, 2);
    assert_false(job_of_line(d, "b")->req.cancel);
    assert_string_equal(job_of_line(d, "a")->cwd, "/home/alice");
    assert_string_equal(job_of_line(d, "a")->user, "alice");
    a = sync_file(d, "a b#2 c:500 d");
    assert_string_equal(a.said, "a 1 PENDING, b 2 PENDING, c 3 PENDING, d 4 PENDING");
    assert_int_equal(a.n_new, 1);
    assert_int_equal(a.n_updated, 0);
    assert_int_equal(a.n_removed, 0);
    assert_int_equal(world_n_events(d->w, "updated"), 0);
}

static void
an_edited_line_changes_its_job(void **state)
{
    struct door *d = *state;
    sync_file(d, "a b c");
    struct answer a = sync_file(d, "a*7 b:900 c");
    assert_string_equal(a.said, "a 1 PENDING, b 2 PENDING, c 3 PENDING");
    assert_int_equal(a.n_new, 0);
    assert_int_equal(a.n_updated, 2);
    assert_int_equal(world_n_events(d->w, "updated"), 2);
    door_crash(d);
    assert_int_equal(job_of_line(d, "a")->req.priority, 7);
    assert_int_equal(job_of_line(d, "b")->req.demand.vram_mib, 900);
    assert_int_equal(job_of_line(d, "b")->declared_mib, 900);
    a = sync_file(d, "a b:900 c");
    assert_int_equal(a.n_updated, 1);
    assert_int_equal(job_of_line(d, "a")->req.priority, 0);
}

static void
a_line_that_is_gone_takes_its_waiting_job_along(void **state)
{
    struct door *d = *state;
    sync_file(d, "a b% c#2 d#2");
    world_turn(d->w);
    world_runs(d->w, 1);
    struct answer a = sync_file(d, "d#2");
    assert_int_equal(a.n_removed, 2); /* held and pending ones; running ones go on */
    assert_int_equal(a.removed[0], 2);
    assert_int_equal(a.removed[1], 3);
    assert_int_equal(world_stored(d->w, 2), JOB_CANCELLED);
    assert_int_equal(world_get(d->w, 1)->state, JOB_RUNNING);
    /* The key is free again: the line is a new one when it comes back. */
    a = sync_file(d, "a d#2 c#2");
    assert_string_equal(a.said, "a 1 RUNNING, d 4 PENDING, c 5 PENDING");
    assert_int_equal(a.n_new, 1);
}

/* Several clients may each send lines of the same file. */
static void
a_part_of_a_file_takes_no_job_along(void **state)
{
    struct door *d = *state;
    struct sync s = {.is_part = true};
    sync_file(d, "a b");
    file_begin(d, &s, "c");
    assert_int_equal(file_go_on(&s, INT64_MAX), WORK_DONE);
    world_turn(d->w);
    assert_string_equal(file_end(&s).said, "c 3 PENDING");
    assert_non_null(job_of_line(d, "a"));
    assert_non_null(job_of_line(d, "b"));
}

static void
what_runs_or_has_ended_is_left_alone(void **state)
{
    struct door *d = *state;
    sync_file(d, "a b");
    world_turn(d->w);
    line_ends(d, 2, 7);
    world_runs(d->w, 1);
    struct answer a = sync_file(d, "a*5 b*5");
    assert_string_equal(a.said, "a 1 RUNNING, b 2 FAILED 7");
    assert_int_equal(a.n_new + a.n_updated, 0);
    assert_int_equal(world_get(d->w, 1)->req.priority, 0);
}

static void
an_ended_line_runs_again_where_it_says_so(void **state)
{
    struct door *d = *state;
    sync_file(d, "a b c");
    world_turn(d->w);
    line_ends(d, 1, 0);
    struct answer a = sync_file(d, "a! b! c!"); /* the "!" applies to the ended one */
    assert_string_equal(a.said, "a 4 PENDING, b 2 STARTING, c 3 PENDING");
    assert_int_equal(a.n_new, 1);
    door_crash(d);
    a = sync_file(d, "a b c");
    assert_string_equal(a.said, "a 4 PENDING, b 2 STARTING, c 3 PENDING");
}

/* Jobs that end after the request, or were made by it, are not affected. */
static void
again_means_once(void **state)
{
    struct door *d = *state;
    struct sync s = {.is_resumed = true};
    sync_file(d, "a");
    world_turn(d->w);
    line_ends(d, 1, 0);
    sync_file(d, "a!");
    world_turn(d->w);
    line_ends(d, 2, 0);
    s.first_job = 2; /* the resumed request began there */
    file_begin(d, &s, "a!");
    assert_int_equal(file_go_on(&s, INT64_MAX), WORK_DONE);
    world_turn(d->w);
    assert_string_equal(file_end(&s).said, "a 2 COMPLETED 0");
}

static void
a_fresh_file_has_no_past(void **state)
{
    struct door *d = *state;
    struct sync s = {.is_fresh = true};
    sync_file(d, "a b c");
    world_turn(d->w);
    line_ends(d, 1, 0);
    file_begin(d, &s, "a b c");
    assert_int_equal(file_go_on(&s, INT64_MAX), WORK_DONE);
    world_turn_without_plan(d->w);
    assert_string_equal(file_end(&s).said, "a 4 PENDING, b 2 STARTING, c 3 PENDING");
}

/* However long the file, a bounded number of changes goes into one commit. */
static void
a_piece_has_a_bounded_number_of_changes(void **state)
{
    struct door *d = *state;
    for (int round = 0; round < 2; round++) {
        auto_buf struct buf words = BUF_INIT;
        struct sync s = {.n = 0};
        for (int i = 0; i < 600; i++)
            buf_addf(&words, "k%d*%d ", i, round);
        file_begin(d, &s, buf_str(&words));
        assert_int_equal(file_go_on(&s, INT64_MAX), WORK_MORE);
        assert_int_equal(s.n_new + s.n_updated, 500);
        assert_int_equal(file_go_on(&s, INT64_MAX), WORK_DONE);
        assert_int_equal(s.n_new, round == 0 ? 600 : 0);
        assert_int_equal(s.n_updated, round == 0 ? 0 : 600);
        file_sync_free(&s);
    }
    assert_int_equal(queue_n(d->w->s.queue), 600);
}

/* --- facts about a job that its line does not state --- */

static void
the_folder_is_the_files_unless_a_line_has_one(void **state)
{
    struct door *d = *state;
    sync_file(d, "a/data b");
    assert_string_equal(job_of_line(d, "a")->cwd, "/data");
    sync_file(d, "a/more b/data");
    assert_string_equal(job_of_line(d, "a")->cwd, "/more");
    assert_string_equal(job_of_line(d, "b")->cwd, "/data");
    /* The job's command differs from the line's. */
    struct err e;
    struct job *same = world_job(d->w, ALICE, 1);
    free(same->req.command);
    same->req.command = xstrdup("run a");
    same->req.unique = true;
    shared_free(same->cwd);
    same->cwd = shared_new("/more");
    assert_int_equal(unique_check(&d->w->s, same, &e), -1);
    job_free(same);
    sync_file(d, "a b/data*1");
    assert_string_equal(job_of_line(d, "a")->cwd, "/home/alice");
    assert_string_equal(job_of_line(d, "b")->cwd, "/data");
}

/* "In an hour" counts from the first time it was sent. */
static void
a_begin_stays_while_its_words_do(void **state)
{
    struct door *d = *state;
    sync_file(d, "a+60 b");
    int64_t begin_us = job_of_line(d, "a")->begin_us;
    assert_true(begin_us > d->w->now_us);
    world_pass(d->w, SECOND_US);
    assert_int_equal(sync_file(d, "a+60 b").n_updated, 0);
    assert_int_equal(sync_file(d, "a+60*1 b").n_updated, 1);
    assert_int_equal(job_of_line(d, "a")->begin_us, begin_us);
    assert_int_equal(job_of_line(d, "a")->req.begin_us, begin_us);
    job_of_line(d, "b")->begin_us =
        d->w->now_us + 5 * SECOND_US; /* failed, waiting for its retry */
    sync_file(d, "a+90*1 b*1");
    assert_int_equal(job_of_line(d, "a")->begin_us, d->w->now_us + 90 * SECOND_US);
    assert_int_equal(job_of_line(d, "b")->begin_us, d->w->now_us + 5 * SECOND_US);
}

static void
a_learned_demand_is_not_said_in_the_line(void **state)
{
    struct door *d = *state;
    sync_file(d, "a& b");
    world_turn(d->w);
    world_runs(d->w, 1);
    world_get(d->w, 1)->run->peak_mib[0] = 1000;
    world_ends(d->w, 1, 0);
    world_sample(d->w);
    world_turn_without_plan(d->w);
    sync_file(d, "a&! b");
    int32_t learned_mib = job_of_line(d, "a")->req.demand.vram_mib;
    assert_true(learned_mib > 0);
    struct answer a = sync_file(d, "a& b");
    assert_int_equal(a.n_updated, 0);
    a = sync_file(d, "a&*1 b");
    assert_int_equal(a.n_updated, 1);
    assert_int_equal(job_of_line(d, "a")->req.demand.vram_mib, learned_mib);
    sync_file(d, "a*1 b"); /* a whole GPU, the default */
    assert_int_equal(job_of_line(d, "a")->req.demand.vram_mib, 0);
    sync_file(d, "a*1& b");
    assert_int_equal(job_of_line(d, "a")->req.demand.vram_mib, learned_mib);
}

/* --- words that act --- */

static void
a_line_that_moves_up_is_known_by_its_new_number(void **state)
{
    struct door *d = *state;
    sync_file(d, "a b c");
    struct answer a = sync_file(d, "b c");
    assert_int_equal(a.n_updated, 0);
    door_crash(d);
    assert_int_equal(job_of_line(d, "b")->line, 1);
}

/* The daemon died before it could answer; results told to an earlier request are not
 * repeated. */
static void
a_refusal_is_told_to_the_request_that_it_was_for(void **state)
{
    struct door *d = *state;
    sync_file(d, "a#3 b#4");
    for (int first_job = 1; first_job <= 3; first_job++) {
        struct sync s = {.is_resumed = true, .first_job = (uint32_t)first_job};
        file_begin(d, &s, "a#3 b#4");
        assert_int_equal(file_go_on(&s, INT64_MAX), WORK_DONE);
        struct answer a = file_end(&s);
        assert_int_equal(strstr(a.said, "needs 3 GPUs") != NULL, first_job <= 1);
        assert_int_equal(strstr(a.said, "needs 4 GPUs") != NULL, first_job <= 2);
    }
}

static void
hold_and_cancel_follow_the_line(void **state)
{
    struct door *d = *state;
    struct answer a = sync_file(d, "a% b c-");
    assert_string_equal(a.said, "a 1 HELD, b 2 PENDING, c 3 CANCELLED 130");
    a = sync_file(d, "a b% c-");
    assert_string_equal(a.said, "a 1 PENDING, b 2 HELD, c 3 CANCELLED 130");
    assert_int_equal(a.n_updated, 2);
    world_turn(d->w);
    world_runs(d->w, 1);
    a = sync_file(d, "a- b- c");
    assert_string_equal(a.said, "a 1 RUNNING, b 2 CANCELLED 130, c 3 CANCELLED 130");
    assert_true(world_get(d->w, 1)->cancel_asked);
    assert_int_equal(world_stored(d->w, 2), JOB_CANCELLED);
}

static void
what_can_never_start_says_so_until_it_can(void **state)
{
    struct door *d = *state;
    struct answer a = sync_file(d, "a#3 b");
    assert_non_null(strstr(a.said, "a 1 INFEASIBLE 1 (needs 3 GPUs"));
    a = sync_file(d, "a#3 b");
    assert_string_equal(a.said, "a 1 INFEASIBLE 1, b 2 PENDING");
    assert_int_equal(a.n_new, 0);
    a = sync_file(d, "a#2 b#9");
    assert_non_null(strstr(a.said, "a 3 PENDING, b 2 INFEASIBLE 1 (needs 9 GPUs"));
    assert_int_equal(world_stored(d->w, 2), JOB_INFEASIBLE);
}

static void
a_time_above_the_longest_leaves_the_line_out(void **state)
{
    struct door *d = *state;
    d->config.time_max_s = 60;
    struct answer a = sync_file(d, "a^61 b^60 c");
    assert_non_null(strstr(a.said, "a 1 INFEASIBLE 1 (its time limit"));
    assert_non_null(strstr(a.said, ", b 2 PENDING, c 3 PENDING"));
    assert_int_equal(job_of_line(d, "c")->req.limit_ms, 60000);
    a = sync_file(d, "a^61 b^99 c");
    assert_int_equal(a.n_new, 0); /* no new job for what is still too long */
    assert_non_null(strstr(a.said, "b 2 INFEASIBLE 1 (its time limit"));
}

static void
what_is_unique_is_refused_a_second_time(void **state)
{
    struct door *d = *state;
    struct job *job = world_job(d->w, ALICE, 1);
    free(job->req.command);
    job->req.command = xstrdup("run a");
    shared_free(job->cwd);
    job->cwd = shared_new("/home/alice");
    world_submit(d->w, job);
    struct answer a = sync_file(d, "a= b=");
    assert_non_null(strstr(a.said, "a 2 CANCELLED 130 ("));
    assert_non_null(strstr(a.said, ", b 3 PENDING"));
}

/* --- lines that depend on lines --- */

static void
lines_wait_for_lines_wherever_they_stand(void **state)
{
    struct door *d = *state;
    struct answer a = sync_file(d, "a<c b c");
    assert_string_equal(a.said, "a 1 PENDING, b 2 PENDING, c 3 PENDING");
    assert_int_equal(job_of_line(d, "a")->req.deps[0].job, 3);
    assert_string_equal(waiting_lines(d), "a b c");
    world_turn(d->w);
    assert_int_equal(world_get(d->w, 1)->state, JOB_PENDING);
    line_ends(d, 3, 0);
    world_turn(d->w);
    assert_int_equal(world_get(d->w, 1)->state, JOB_STARTING);
}

static void
a_dependency_that_changes_is_the_one_that_counts(void **state)
{
    struct door *d = *state;
    sync_file(d, "a#2 b#2 c<a");
    sync_file(d, "a#2 b#2 c<b");
    assert_int_equal(job_of_line(d, "c")->req.deps[0].job, 2);
    world_turn(d->w);
    line_ends(d, 1, 5); /* c no longer waits for it */
    assert_int_equal(job_of_line(d, "c")->state, JOB_PENDING);
    world_turn(d->w);
    line_ends(d, 2, 5);
    assert_null(job_of_line(d, "c"));
    assert_int_equal(world_stored(d->w, 3), JOB_CANCELLED);
}

static void
a_dependency_that_has_failed_refuses_the_line(void **state)
{
    struct door *d = *state;
    sync_file(d, "a");
    world_turn(d->w);
    line_ends(d, 1, 5);
    struct answer a = sync_file(d, "a b<a c");
    assert_non_null(strstr(a.said, "a 1 FAILED 5, b 2 CANCELLED 130 ("));
    assert_non_null(strstr(a.said, ", c 3 PENDING"));
    a = sync_file(d, "a b<a c<a");
    assert_non_null(strstr(a.said, "c 3 CANCELLED 130 ("));
}

static void
a_line_waits_for_a_job_that_is_no_line(void **state)
{
    struct door *d = *state;
    struct job *job = world_job(d->w, ALICE, 2);
    job->req.name = xstrdup("other");
    uint32_t id = world_submit(d->w, job);
    sync_file(d, "a<other b<a");
    assert_int_equal(job_of_line(d, "a")->req.deps[0].job, id);
    assert_int_equal(job_of_line(d, "b")->req.deps[0].job, job_of_line(d, "a")->id);
}

/* Removes this many of the oldest ended jobs, as after keep_days. */
static void
prune(struct door *d, int n)
{
    struct err e = {0};
    assert_int_equal(store_prune(d->w->store, INT64_MAX, 0, n, &e), n);
    world_turn_without_plan(d->w);
}

static void
a_line_that_ended_long_ago_is_judged_by_what_is_kept_of_it(void **state)
{
    struct door *d = *state;
    sync_file(d, "a b");
    world_turn(d->w);
    line_ends(d, 1, 0);
    line_ends(d, 2, 5);
    prune(d, 2);
    struct answer a = sync_file(d, "a b c<a d<b");
    assert_non_null(strstr(a.said, "a 1 COMPLETED 0, b 2 FAILED 5, c 3 PENDING, d 4 CANCELLED "
                                   "130 (dependency: job 2 ended FAILED)"));
    a = sync_file(d, "a b c<a d<b");
    assert_non_null(strstr(a.said, "c 3 PENDING"));
    assert_int_equal(a.n_updated, 0);
    a = sync_file(d, "a b c<b d<b");
    assert_non_null(strstr(a.said, "c 3 CANCELLED 130 (dependency: job 2 ended FAILED)"));
    sync_file(d, "a b c<b d<b e<a");
    door_crash(d);
    world_turn(d->w);
    assert_int_equal(job_of_line(d, "e")->state, JOB_STARTING);
}

/* Their dependencies have been met, or no longer matter. */
static void
a_job_outside_that_is_gone_refuses_no_line_that_waited_for_it(void **state)
{
    struct door *d = *state;
    struct sync s = {.n = 0};
    struct err e = {0};
    struct job *job = world_job(d->w, ALICE, 1);
    job->req.name = xstrdup("other");
    uint32_t id = world_submit(d->w, job);
    world_turn(d->w);
    sync_file(d, "a<other b<other c%<other");
    line_ends(d, id, 0);
    world_turn(d->w);
    line_ends(d, job_of_line(d, "a")->id, 0);
    world_runs(d->w, job_of_line(d, "b")->id);
    prune(d, 1);
    struct answer a = sync_file(d, "a<other b<other c%<other");
    assert_string_equal(a.said, "a 2 COMPLETED 0, b 3 RUNNING, c 4 HELD");
    assert_int_equal(a.n_updated, 0);
    sync_file(d, "a<other b<other c<other");
    world_turn(d->w);
    assert_int_equal(job_of_line(d, "c")->state, JOB_STARTING);
    /* A new line cannot depend on it. */
    file_begin(d, &s, "a b c d<other");
    assert_int_equal(file_load_known(&s, INT64_MAX, &e), WORK_DONE);
    assert_int_equal(file_resolve_deps(&s, INT64_MAX, &e), -1);
    assert_non_null(strstr(e.text, "line 4: it should run after 'other', but none of your"));
    file_sync_free(&s);
}

/* The singleton waits for every earlier job of its name, and so, through a third, for the
 * line. */
static void
a_new_name_may_close_a_circle(void **state)
{
    struct door *d = *state;
    sync_file(d, "a@y b");
    struct job *single = world_job(d->w, ALICE, 1), *middle = world_job(d->w, ALICE, 1);
    single->req.name = xstrdup("x");
    single->req.singleton = true;
    uint32_t id = world_submit(d->w, single);
    middle->req.name = xstrdup("middle");
    middle->req.deps = xcalloc(1, sizeof *middle->req.deps);
    middle->req.deps[0] = (struct dep){.task = -1, .job = id};
    middle->req.n_deps = 1;
    world_submit(d->w, middle);
    struct answer a = sync_file(d, "a@y<middle b");
    assert_string_equal(a.said, "a 1 PENDING, b 2 PENDING");
    a = sync_file(d, "a@z<middle b@x");
    assert_string_equal(a.said, "a 1 PENDING, b 2 PENDING");
    a = sync_file(d, "a@x<middle b@x");
    assert_non_null(strstr(a.said, "a 1 CANCELLED 130 (dependency: it would wait for job 4"));
}

/* --- the order of the lines --- */

static void
the_order_is_that_of_the_lines_within_their_places(void **state)
{
    struct door *d = *state;
    sync_file(d, "a b c d");
    struct job *other = world_job(d->w, BOB, 1);
    other->key = xstrdup("other");
    world_submit(d->w, other);
    sync_file(d, "a b c d e");
    assert_string_equal(waiting_lines(d), "a b c d other e");
    sync_file(d, "e d c b a");
    assert_string_equal(waiting_lines(d), "e d c b other a");
    assert_int_equal(job_of_line(d, "e")->line, 1);
    door_crash(d);
    free(queue_get(d->w->s.queue, 5)->key);
    queue_get(d->w->s.queue, 5)->key = xstrdup("other");
    assert_string_equal(waiting_lines(d), "e d c b other a");
    sync_file(d, "c e a");
    assert_string_equal(waiting_lines(d), "c e other a");
}

/* One job starts between two pieces: its position is not given to another. */
static void
a_job_that_begins_meanwhile_keeps_its_place(void **state)
{
    struct door *d = *state;
    struct sync s = {.n = 0};
    sync_file(d, "a#2 b#2 c#2 d#2");
    file_begin(d, &s, "d#2 c#2 b#2 a#2");
    while (s.phase < 4)
        assert_int_equal(file_go_on(&s, 0), WORK_MORE);
    world_turn(d->w); /* after the first two have swapped places */
    assert_int_equal(job_of_line(d, "d")->state, JOB_STARTING);
    while (file_go_on(&s, 0) == WORK_MORE)
        world_turn(d->w);
    file_end(&s);
    assert_string_equal(waiting_lines(d), "c b a");
}

/* --- feasibility --- */

static void
the_first_lines_enter_where_not_all_may(void **state)
{
    struct door *d = *state;
    struct sync s = {.fits = true};
    d->w->limits.each.pending = 3;
    sync_file(d, "a b");
    file_begin(d, &s, "b c d e");
    assert_int_equal(file_go_on(&s, INT64_MAX), WORK_DONE);
    assert_non_null(strstr(s.full.text, "user_max_pending"));
    assert_int_equal(s.n_more, 0);
    world_turn_without_plan(d->w);
    assert_string_equal(file_end(&s).said, "b 2 PENDING, c 3 PENDING, d 4 PENDING, e left");
    assert_int_equal(queue_n_waiting(d->w->s.queue), 3);
}

/* --- demands that did not come from the line --- */

static void
a_demand_that_was_raised_stays_until_another_is_declared(void **state)
{
    struct door *d = *state;
    sync_file(d, "a:500 b");
    struct job *job = job_of_line(d, "a");
    job->req.demand.vram_mib = 800; /* after an OOM */
    queue_refile(d->w->s.queue, job);
    struct answer a = sync_file(d, "a:500 b");
    assert_int_equal(a.n_updated, 0);
    assert_int_equal(job->req.demand.vram_mib, 800);
    a = sync_file(d, "a:500*1 b");
    assert_int_equal(a.n_updated, 1);
    assert_int_equal(job->req.demand.vram_mib, 800);
    a = sync_file(d, "a:600*1 b");
    assert_int_equal(a.n_updated, 1);
    assert_int_equal(job->req.demand.vram_mib, 600);
    assert_int_equal(job->declared_mib, 600);
}

/* --- a daemon that dies --- */

/* Old lines that were edited, removed, ended, repeated or moved, and new ones; the client asks
 * again each time that the daemon dies, between any two pieces. */
static void
each_line_is_one_job_wherever_the_daemon_dies(void **state)
{
    static const char edited[] = "new<late two*3 done! late also%";
    int n_pieces = 0;
    (void)state;
    for (bool is_over = false; !is_over; n_pieces++) {
        struct door *d = door_open(2);
        struct sync s = {.n = 0};
        sync_file(d, "done one two gone also");
        world_turn(d->w);
        line_ends(d, 1, 0);
        jobs_cancel(&d->w->s, world_get(d->w, 2), "alice"); /* so that all others wait */
        world_is_lost(d->w, 2, OUTCOME_CANCELLED);
        world_sample(d->w);
        world_turn_without_plan(d->w);
        file_begin(d, &s, edited);
        uint32_t first_job = s.first_job;
        for (int i = 0; i < n_pieces && !is_over; i++) {
            is_over = file_go_on(&s, 0) == WORK_DONE;
            world_turn_without_plan(d->w);
        }
        if (n_pieces % 2)
            (void)file_go_on(&s, 0); /* nothing of which is on disk */
        file_sync_free(&s);
        door_crash(d);
        s = (struct sync){.is_resumed = true, .first_job = first_job};
        file_begin(d, &s, edited);
        assert_int_equal(file_go_on(&s, INT64_MAX), WORK_DONE);
        world_turn_without_plan(d->w);
        file_end(&s);
        assert_string_equal(waiting_lines(d), "new two done late also");
        assert_int_equal(job_of_line(d, "two")->id, 3);
        assert_int_equal(job_of_line(d, "two")->req.priority, 3);
        assert_int_equal(job_of_line(d, "also")->id, 5);
        assert_int_equal(job_of_line(d, "also")->state, JOB_HELD);
        assert_int_equal(job_of_line(d, "new")->req.deps[0].job, job_of_line(d, "late")->id);
        assert_int_equal(world_stored(d->w, 4), JOB_CANCELLED);
        assert_int_equal(world_n_events(d->w, "entered"), 5 + 3);
        door_close(d);
    }
    assert_true(n_pieces > 8);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_line_becomes_a_job_once),
        TEST(an_edited_line_changes_its_job),
        TEST(a_line_that_is_gone_takes_its_waiting_job_along),
        TEST(a_part_of_a_file_takes_no_job_along),
        TEST(what_runs_or_has_ended_is_left_alone),
        TEST(an_ended_line_runs_again_where_it_says_so),
        TEST(again_means_once),
        TEST(a_fresh_file_has_no_past),
        TEST(a_piece_has_a_bounded_number_of_changes),
        TEST(the_folder_is_the_files_unless_a_line_has_one),
        TEST(a_begin_stays_while_its_words_do),
        TEST(a_learned_demand_is_not_said_in_the_line),
        TEST(a_line_that_moves_up_is_known_by_its_new_number),
        TEST(a_refusal_is_told_to_the_request_that_it_was_for),
        TEST(hold_and_cancel_follow_the_line),
        TEST(what_can_never_start_says_so_until_it_can),
        TEST(a_time_above_the_longest_leaves_the_line_out),
        TEST(what_is_unique_is_refused_a_second_time),
        TEST(lines_wait_for_lines_wherever_they_stand),
        TEST(a_dependency_that_changes_is_the_one_that_counts),
        TEST(a_dependency_that_has_failed_refuses_the_line),
        TEST(a_line_waits_for_a_job_that_is_no_line),
        TEST(a_line_that_ended_long_ago_is_judged_by_what_is_kept_of_it),
        TEST(a_job_outside_that_is_gone_refuses_no_line_that_waited_for_it),
        TEST(a_new_name_may_close_a_circle),
        TEST(the_order_is_that_of_the_lines_within_their_places),
        TEST(a_job_that_begins_meanwhile_keeps_its_place),
        TEST(the_first_lines_enter_where_not_all_may),
        TEST(a_demand_that_was_raised_stays_until_another_is_declared),
        cmocka_unit_test(each_line_is_one_job_wherever_the_daemon_dies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
