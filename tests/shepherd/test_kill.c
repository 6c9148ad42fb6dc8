/* Kill passes over processes that do not end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "shepherd/attempt/kill.h"
#include "sys/procs.h"

#define NOBODY 999999999 /* above any real pid */

struct looks {
    int n;
    int until_new; /* a new process appears after this many looks */
};

static int
find(void *ctx, struct procs *out)
{
    struct looks *l = ctx;
    const struct proc stuck = {.pid = NOBODY, .state = 'D'};
    out->n = 0;
    procs_add(out, &stuck);
    for (int i = 0; i < l->n && i < l->until_new; i++) {
        const struct proc forked = {.pid = NOBODY - 1 - i, .state = 'R'};
        procs_add(out, &forked);
    }
    l->n++;
    return 0;
}

static void
what_never_stops_is_not_looked_at_for_ever(void **state)
{
    struct looks l = {0};
    (void)state;
    assert_int_equal(kill_pass(find, &l, 0), 1);
    assert_int_equal(l.n, 1);
    assert_int_equal(kill_pass(find, &l, 100), 1);
    assert_int_equal(l.n, 1 + 3);
}

static void
what_forks_is_stopped_until_nothing_is_new(void **state)
{
    struct looks l = {.until_new = 10};
    (void)state;
    assert_int_equal(kill_pass(find, &l, 100), 11);
    assert_int_equal(l.n, 13);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_never_stops_is_not_looked_at_for_ever),
        cmocka_unit_test(what_forks_is_stopped_until_nothing_is_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
