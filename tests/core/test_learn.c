/* What is learned of a command's memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/learn/demands.h"

/* Steps: a number is the peak of a run that completed, a negative one an out of memory. */
static void
test_demands(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        int32_t steps[8];
        int32_t demand;
    } cases[] = {
        {"nothing", {0}, 0},
        {"one run", {6000}, 6600},
        {"rounded up", {6001}, 6602},
        {"of few the largest", {6000, 7000, 5000}, 7700},
        {"very little", {1}, 2},
        {"only an out of memory", {-8000}, 10000},
        {"it needs more than it had", {6000, -8000}, 10000},
        {"less after it says nothing yet", {6000, -8000, 6000}, 10000},
        {"until it is known", {6000, -8000, 9500}, 10450},
        {"two of them", {-8000, -10000, -9000}, 12500},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct learned l = {0};
        for (int k = 0; k < 8 && cases[i].steps[k]; k++) {
            if (cases[i].steps[k] > 0)
                learn_completed(&l, cases[i].steps[k]);
            else
                learn_oom(&l, -cases[i].steps[k]);
        }
        if (learn_demand_mib(&l) != cases[i].demand)
            fail_msg("%s: %d", cases[i].what, (int)learn_demand_mib(&l));
    }
}

static void
test_percentile(void **state)
{
    (void)state;
    struct learned l = {0};
    learn_completed(&l, 20000);
    for (int i = 0; i < 18; i++)
        learn_completed(&l, 1000);
    assert_int_equal(learn_demand_mib(&l), 22000); /* one of 19 is more than a twentieth */
    learn_completed(&l, 1000);
    assert_int_equal(learn_demand_mib(&l), 1100);
}

static void
test_old_runs_are_forgotten(void **state)
{
    (void)state;
    struct learned l = {0};
    for (int i = 0; i < 1000; i++)
        learn_completed(&l, 1000 + i);
    assert_int_equal(l.n, LEARN_RUNS);
    assert_int_equal(l.peaks_mib[0], 2000 - LEARN_RUNS);
    assert_int_equal(learn_demand_mib(&l), (1998 * 11 + 9) / 10);
    learn_oom(&l, 50000);
    for (int i = 0; i < LEARN_OOM_RUNS - 1; i++)
        learn_completed(&l, 1000);
    assert_int_equal(learn_demand_mib(&l), 62500);
    learn_completed(&l, 1000);
    assert_int_equal(learn_demand_mib(&l), (1998 * 11 + 9) / 10);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_demands),
        cmocka_unit_test(test_percentile),
        cmocka_unit_test(test_old_runs_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
