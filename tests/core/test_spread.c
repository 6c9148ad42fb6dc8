/* Quantiles from counters, compared with sorted values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "core/learn/spread.h"

static int
compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void
test_empty_and_one(void **state)
{
    (void)state;
    struct spread s = {0};
    assert_int_equal(spread_quantile(&s, 950), -1);
    assert_int_equal(spread_mean(&s), -1);
    spread_add(&s, 123456789);
    assert_int_equal(spread_quantile(&s, 0), 123456789);
    assert_int_equal(spread_quantile(&s, 950), 123456789);
    assert_int_equal(spread_mean(&s), 123456789);
    spread_add(&s, -5);
    assert_int_equal(s.min, 0);
    spread_free(&s);
}

static void
check_quantiles(const int64_t *sorted, size_t n, const struct spread *s)
{
    static const int ranks[] = {1, 100, 500, 950, 999, 1000};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        int64_t exact = sorted[((int64_t)n * ranks[i] + 999) / 1000 - 1];
        int64_t got = spread_quantile(s, ranks[i]);
        assert_true(got >= exact);
        assert_true(got <= exact + exact / 32);
    }
}

static void
test_against_sorted(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252U;
    for (int round = 0; round < 60; round++) {
        size_t n = 1 + (size_t)round * 7;
        int64_t *values = xcalloc(n, sizeof *values), sum = 0;
        struct spread s = {0};
        for (size_t i = 0; i < n; i++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            values[i] = (int64_t)(seed >> (seed % 50 + 14));
            spread_add(&s, values[i]);
            sum += values[i];
        }
        qsort(values, n, sizeof *values, compare);
        check_quantiles(values, n, &s);
        assert_true(s.sum == sum && s.min == values[0] && s.max == values[n - 1]);
        spread_free(&s);
        free(values);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_and_one),
        cmocka_unit_test(test_against_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
