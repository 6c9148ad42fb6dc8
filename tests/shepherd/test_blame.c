/* Whether a failed start is charged to the job or to the machine. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "shepherd/begin/blame.h"

static void
test_descriptors_and_memory_are_the_machines(void **state)
{
    (void)state;
    assert_int_equal(blame_of(false, STEP_OURS, ENOMEM), BLAME_MACHINE);
    assert_int_equal(blame_of(false, STEP_ACCOUNT, ENFILE), BLAME_MACHINE);
    assert_int_equal(blame_of(false, STEP_FORK, ENOMEM), BLAME_MACHINE);
    assert_int_equal(blame_of(true, STEP_LOG, ENOMEM), BLAME_MACHINE);
}

static void
test_what_a_job_names_keeps_its_user_only_whatever_it_answers(void **state)
{
    static const int errnums[] = {ENOMEM, EMFILE, ENFILE, ENOBUFS, EIO, ENOTCONN};
    (void)state;
    for (size_t i = 0; i < sizeof errnums / sizeof *errnums; i++) {
        assert_int_equal(blame_of(true, STEP_FOLDER, errnums[i]), BLAME_USER);
        assert_int_equal(blame_of(true, STEP_PLACE, errnums[i]), BLAME_USER);
        assert_int_equal(blame_of(true, STEP_ERROR, errnums[i]), BLAME_USER);
        assert_int_equal(blame_of(true, STEP_CHILD, errnums[i]), BLAME_USER);
        assert_int_equal(blame_of(true, STEP_EXEC, errnums[i]), BLAME_USER);
        assert_int_equal(blame_of(false, STEP_LOG, errnums[i]), BLAME_USER);
    }
}

static void
test_a_terminal_that_cannot_be_made_is_waited_for_only_if_all_are_taken(void **state)
{
    (void)state;
    assert_int_equal(blame_of(true, STEP_TERMINAL, ENOSPC), BLAME_USER);
    assert_int_equal(blame_of(true, STEP_TERMINAL, ENOENT), BLAME_COMMAND);
    assert_int_equal(blame_of(true, STEP_TERMINAL, ENOTTY), BLAME_COMMAND);
    assert_int_equal(blame_of(true, STEP_TERMINAL, ENODEV), BLAME_COMMAND);
    assert_int_equal(blame_of(true, STEP_TERMINAL, ENFILE), BLAME_MACHINE);
}

static void
test_what_was_interrupted_or_busy_is_tried_again(void **state)
{
    (void)state;
    assert_int_equal(blame_of(true, STEP_LOG, EINTR), BLAME_MACHINE);
    assert_int_equal(blame_of(false, STEP_LOG, EINTR), BLAME_USER);
    assert_int_equal(blame_of(true, STEP_CHILD, EBUSY), BLAME_USER);
    assert_int_equal(blame_of(true, STEP_ACCOUNT, ETOOMANYREFS), BLAME_USER);
}

static void
test_a_job_is_charged_for_its_own_words(void **state)
{
    (void)state;
    assert_int_equal(blame_of(true, STEP_FOLDER, ENOENT), BLAME_COMMAND);
    assert_int_equal(blame_of(true, STEP_ERROR, ENOENT), BLAME_COMMAND);
    assert_int_equal(blame_of(true, STEP_EXEC, EACCES), BLAME_COMMAND);
    assert_int_equal(blame_of(false, STEP_LOG, ENOENT), BLAME_COMMAND);
    assert_int_equal(blame_of(true, STEP_LOG, ENOENT), BLAME_MACHINE);
}

static void
test_the_daemon_decides_about_an_account_that_was_not_found(void **state)
{
    (void)state;
    assert_int_equal(blame_of(true, STEP_NOBODY, 0), BLAME_ACCOUNT);
    assert_int_equal(blame_of(true, STEP_ACCOUNT, 0), BLAME_COMMAND);
    assert_int_equal(blame_of(true, STEP_ACCOUNT, EAGAIN), BLAME_USER);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptors_and_memory_are_the_machines),
        cmocka_unit_test(test_what_a_job_names_keeps_its_user_only_whatever_it_answers),
        cmocka_unit_test(
            test_a_terminal_that_cannot_be_made_is_waited_for_only_if_all_are_taken),
        cmocka_unit_test(test_what_was_interrupted_or_busy_is_tried_again),
        cmocka_unit_test(test_a_job_is_charged_for_its_own_words),
        cmocka_unit_test(test_the_daemon_decides_about_an_account_that_was_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
