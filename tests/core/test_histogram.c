/* Durations counted by how long they were. */
#include "core/learn/histogram.h"
#include "machine.h"

static const int64_t bounds[] = {10, 100, 1000};

static void
test_what_falls_where(void **state)
{
    (void)state;
    static const struct {
        int64_t us;
        uint64_t at_most[4];
    } cases[] = {
        {-5, {1, 1, 1, 1}},   {0, {1, 1, 1, 1}},       {10, {1, 1, 1, 1}},
        {11, {0, 1, 1, 1}},   {100, {0, 1, 1, 1}},     {1000, {0, 0, 1, 1}},
        {1001, {0, 0, 0, 1}}, {1 << 30, {0, 0, 0, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct histogram h;
        histogram_init(&h, bounds, 3);
        histogram_add(&h, cases[i].us);
        for (int b = 0; b < 4; b++)
            assert_int_equal(histogram_at_most(&h, b), cases[i].at_most[b]);
        assert_int_equal(histogram_count(&h), 1);
        assert_int_equal(h.sum_us, cases[i].us < 0 ? 0 : cases[i].us);
    }
}

static void
test_buckets_add_up(void **state)
{
    (void)state;
    struct histogram h;
    histogram_init(&h, bounds, 3);
    for (int64_t us = 0; us < 2000; us++)
        histogram_add(&h, us);
    assert_int_equal(histogram_at_most(&h, 0), 11);
    assert_int_equal(histogram_at_most(&h, 1), 101);
    assert_int_equal(histogram_at_most(&h, 2), 1001);
    assert_int_equal(histogram_count(&h), 2000);
    assert_int_equal(h.sum_us, 1999 * 1000);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_falls_where),
        cmocka_unit_test(test_buckets_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
