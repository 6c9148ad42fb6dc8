/* The jobs as `berth run` tracks them, and the exit status that follows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/run/run_verb.h"

static struct run_job *
add(struct run_jobs *t, int64_t id, const char *state, int64_t status)
{
    struct run_job *job = run_jobs_get(t, id);

    run_jobs_set_state(job, state);
    job->status = status;
    job->in_file = true;
    return job;
}

static void
test_many_are_found_again(void **state)
{
    struct run_jobs t = {0};

    (void)state;
    for (int64_t id = 1; id < 5000; id += 7)
        add(&t, id, "COMPLETED", id);
    for (int64_t id = 1; id < 5000; id++) {
        struct run_job *job = run_jobs_find(&t, id);

        if ((id - 1) % 7 == 0)
            assert_int_equal(job->status, id);
        else
            assert_null(job);
    }
    run_jobs_free(&t);
    assert_null(run_jobs_find(&t, 1));
}

static void
test_highest_status_counts_earlier_runs_too(void **state)
{
    struct run_jobs t = {0};
    struct run_counts c;

    (void)state;
    add(&t, 1, "FAILED", 7)->before = true;
    add(&t, 2, "FAILED", 3);
    add(&t, 3, "COMPLETED", 0);
    add(&t, 4, "HELD", -1);
    add(&t, 5, "RUNNING", -1);
    run_jobs_count(&t, &c);
    assert_int_equal(c.highest, 7);
    assert_int_equal(c.total, 5);
    assert_int_equal(c.done, 3);
    assert_int_equal(c.failed, 2);
    assert_int_equal(c.before, 1);
    assert_int_equal(c.held, 1);
    assert_int_equal(c.running, 1);
    run_jobs_free(&t);
}

static void
test_all_have_ended_until_one_runs_again(void **state)
{
    struct run_jobs t = {0};

    (void)state;
    assert_true(run_jobs_have_ended(&t));
    for (int64_t id = 1; id <= 3; id++)
        add(&t, id, "RUNNING", -1);
    add(&t, 4, "PENDING", -1)->in_file = false; /* its line was removed */
    for (int64_t id = 3; id >= 1; id--) {
        assert_false(run_jobs_have_ended(&t));
        run_jobs_set_state(run_jobs_find(&t, id), id == 2 ? "FAILED" : "COMPLETED");
    }
    assert_true(run_jobs_have_ended(&t));
    run_jobs_set_state(run_jobs_find(&t, 1), "PENDING");
    assert_false(run_jobs_have_ended(&t));
    run_jobs_set_state(run_jobs_find(&t, 1), "COMPLETED");
    add(&t, 5, "HELD", -1);
    assert_false(run_jobs_have_ended(&t));
    run_jobs_free(&t);
}

static void
test_cancel_in_the_line_is_no_failure(void **state)
{
    struct run_jobs t = {0};
    struct run_counts c;

    (void)state;
    add(&t, 1, "CANCELLED", 130)->cancel = true;
    run_jobs_count(&t, &c);
    assert_int_equal(c.highest, 0);
    add(&t, 2, "CANCELLED", 130);
    run_jobs_count(&t, &c);
    assert_int_equal(c.highest, 130);
    run_jobs_free(&t);
}

static void
test_deleted_lines_count_only_if_they_ran(void **state)
{
    struct run_jobs t = {0};
    struct run_counts c;

    (void)state;
    add(&t, 1, "CANCELLED", 130)->in_file = false;
    add(&t, 2, "FAILED", 5)->in_file = false;
    run_jobs_get(&t, 2)->started = true;
    run_jobs_count(&t, &c);
    assert_int_equal(c.total, 1);
    assert_int_equal(c.highest, 5);
    run_jobs_free(&t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_are_found_again),
        cmocka_unit_test(test_highest_status_counts_earlier_runs_too),
        cmocka_unit_test(test_all_have_ended_until_one_runs_again),
        cmocka_unit_test(test_cancel_in_the_line_is_no_failure),
        cmocka_unit_test(test_deleted_lines_count_only_if_they_ran),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
