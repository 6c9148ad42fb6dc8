/* Whose jobs a report counts: those of the requested user, even after that account was
 * removed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/counted_text.h"
#include "base/err.h"
#include "daemon/common/user_names.h"
#include "daemon/view/report_data.h"

#define GONE 4000000001U /* no account has this uid */

/* One ended job of that user. */
static struct store_ended
job_of(uint32_t uid, const char *user)
{
    struct store_ended x = {.id = 1, .uid = uid, .state = JOB_CANCELLED, .ended_us = 5};
    strncpy(x.user, user, sizeof x.user - 1);
    return x;
}

/* The number of these jobs that a report about this user counts. */
static int64_t
counted(const char *user)
{
    const struct store_ended jobs[] = {job_of(GONE, "ann"), job_of(GONE + 1, "bob"),
                                       job_of(GONE + 2, "")};
    struct report r = {.until_us = 10, .bins = 1, .user = user ? xstrdup(user) : NULL};
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
        report_add_ended(&r, &jobs[i]);
    int64_t n = r.total.jobs;
    report_free(&r);
    return n;
}

static void
a_removed_account_is_found_by_the_name_that_was_kept(void **state)
{
    (void)state;
    assert_int_equal(counted("ann"), 1);
    assert_int_equal(counted("bob"), 1);
    assert_int_equal(counted("carl"), 0);
    assert_int_equal(counted("uid:4000000003"), 1); /* no name was stored */
    assert_int_equal(counted(NULL), 3);
    assert_string_equal(daemon_user_name(GONE), "ann"); /* as listed among the report's users */
}

/* Two accounts that had one uid one after the other; listings made in between must not
 * matter. */
static void
the_name_of_each_job_counts(void **state)
{
    struct job job = {.uid = GONE, .user = shared_new("zoe")};
    (void)state;
    assert_string_equal(daemon_owner_name(&job), "zoe");
    assert_int_equal(counted("ann"), 1);
    assert_int_equal(counted("zoe"), 0);
    shared_free(job.user);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_removed_account_is_found_by_the_name_that_was_kept),
        cmocka_unit_test(the_name_of_each_job_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
