/* Samples kept over time: of a GPU (core/learn/series.h) and of an attempt
 * (core/learn/trace.h). */
#include "core/learn/series.h"
#include "core/learn/trace.h"
#include "machine.h"

#define S INT64_C(1000000)

struct seen {
    struct series_point points[4096];
    size_t n;
};

static void
on_point(const struct series_point *p, void *arg)
{
    struct seen *seen = arg;
    assert_true(seen->n < sizeof seen->points / sizeof seen->points[0]);
    seen->points[seen->n++] = *p;
}

static struct seen *
walk(const struct series *s, int64_t since_us, int64_t step_us)
{
    static struct seen seen;
    seen.n = 0;
    series_walk(s, since_us, step_us, on_point, &seen);
    for (size_t i = 1; i < seen.n; i++)
        assert_true(seen.points[i - 1].at_us < seen.points[i].at_us);
    return &seen;
}

static void
add(struct series *s, int64_t at_us, int used, int util)
{
    const struct series_point p = {.at_us = at_us,
                                   .used_mib = used,
                                   .held_mib = used / 2,
                                   .external_mib = -1,
                                   .util = (int16_t)util,
                                   .temperature_c = 40};
    series_add(s, &p);
}

static void
test_samples_within_a_step_are_their_maximum(void **state)
{
    (void)state;
    struct series *s = series_new();
    assert_int_equal(series_oldest_us(s), INT64_MAX);
    assert_int_equal(walk(s, INT64_MIN, SERIES_STEP_US)->n, 0);
    add(s, 10 * S, 100, 90);
    add(s, 11 * S, 300, -1);
    add(s, 12 * S, 200, -1);
    const struct seen *seen = walk(s, 0, SERIES_STEP_US);
    assert_int_equal(seen->n, 2);
    assert_int_equal(seen->points[0].at_us, 10 * S);
    assert_int_equal(seen->points[0].used_mib, 300);
    assert_int_equal(seen->points[0].held_mib, 150);
    assert_int_equal(seen->points[0].external_mib, -1);
    assert_int_equal(seen->points[0].util, 90);
    assert_int_equal(seen->points[1].used_mib, 200);
    assert_int_equal(seen->points[1].util, -1);
    series_free(s);
}

/* However long it runs: an hour of samples, a day of minutes, and the peak is among them. */
static void
test_old_samples_become_minutes(void **state)
{
    (void)state;
    struct series *s = series_new();
    int64_t end_us = INT64_C(2) * 86400 * S, day_us = INT64_C(86400) * S;
    for (int64_t at_us = 0; at_us < end_us; at_us += S)
        add(s, at_us, at_us == end_us - 7200 * S ? 9000 : 5, 1);
    assert_in_range(end_us - series_oldest_us(s), day_us - 61 * S, day_us + 61 * S);
    const struct seen *all = walk(s, INT64_MIN, SERIES_STEP_US);
    assert_in_range(all->n, SERIES_POINTS + 1379, SERIES_POINTS + 1381);
    int most = 0;
    for (size_t i = 0; i < all->n; i++)
        most = all->points[i].used_mib > most ? all->points[i].used_mib : most;
    assert_int_equal(most, 9000);
    assert_int_equal(walk(s, end_us - 3600 * S, SERIES_STEP_US)->n, SERIES_POINTS);
    assert_int_equal(walk(s, end_us, SERIES_STEP_US)->n, 0);
    series_free(s);
}

static void
test_no_more_points_than_asked_for(void **state)
{
    (void)state;
    static const int64_t windows_s[] = {0, 1, 59, 3600, 7201, 86400, 1000000};
    struct series *s = series_new();
    int64_t end_us = INT64_C(100000) * S;
    for (int64_t at_us = 0; at_us <= end_us; at_us += S)
        add(s, at_us, (int)(at_us / S), 1);
    for (size_t i = 0; i < sizeof windows_s / sizeof windows_s[0]; i++) {
        for (int64_t max = 2; max < 3000; max = max * 3 / 2 + 1) {
            int64_t since_us = end_us - windows_s[i] * S;
            int64_t step_us = series_step_us(since_us, end_us, max);
            const struct seen *seen = walk(s, since_us, step_us);
            assert_in_range(seen->n, 1, max);
            assert_int_equal(seen->points[seen->n - 1].used_mib, end_us / S);
        }
    }
    series_free(s);
}

static void
test_minutes_outlive_the_daemon(void **state)
{
    (void)state;
    struct series *s = series_new(), *back = series_new(), *half = series_new();
    auto_buf struct buf bytes = BUF_INIT;
    int64_t offset_us = INT64_C(1700000000) * S;
    for (int i = 0; i < 3000; i++)
        add(s, i * 60 * S, i % 7 ? i : -1, i % 101);
    series_encode(s, offset_us, &bytes);
    assert_in_range(bytes.len, SERIES_MINUTES, SERIES_MINUTES * 16);
    /* after a reboot: the same wall times are before the boot */
    assert_int_equal(series_decode(back, offset_us + 180000 * S, 0, bytes.data, bytes.len), 0);
    const struct seen *seen = walk(back, INT64_MIN, SERIES_STEP_US);
    assert_int_equal(seen->n, SERIES_MINUTES);
    for (size_t i = 0; i < seen->n; i++) {
        int n = 3000 - SERIES_MINUTES + (int)i;
        assert_int_equal(seen->points[i].at_us, (n * 60 - 180000) * S);
        assert_int_equal(seen->points[i].used_mib, n % 7 ? n : -1);
        assert_int_equal(seen->points[i].util, n % 101);
    }
    /* the clock was set back: samples from the future are dropped */
    assert_int_equal(series_decode(half, offset_us, 2900 * 60 * S, bytes.data, bytes.len), 0);
    assert_int_equal(walk(half, INT64_MIN, SERIES_STEP_US)->points[0].at_us, 1560 * 60 * S);
    for (size_t cut = 0; cut < bytes.len; cut += 97) {
        struct series *broken = series_new();
        assert_int_equal(series_decode(broken, offset_us, 0, bytes.data, cut), -1);
        series_free(broken);
    }
    series_free(s);
    series_free(back);
    series_free(half);
}

/* Whatever happened to the bytes on disk: refused, or safe to walk. */
static void
test_damaged_bytes(void **state)
{
    (void)state;
    auto_buf struct buf minutes = BUF_INIT, run = BUF_INIT;
    struct series *s = series_new();
    struct trace *t = trace_new(2, INT64_C(1700000000) * S);
    uint64_t seed = 1;
    int read = 0;
    for (int i = 0; i < 300; i++) {
        const int32_t mib[2] = {i * 37 % 24000, -1};
        add(s, i * 60 * S, i, i % 101);
        trace_add(t, i * 977, mib, i % 101);
    }
    series_encode(s, INT64_C(1700000000) * S, &minutes);
    trace_encode(t, &run);
    for (int i = 0; i < 20000; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        char *a = &minutes.data[(seed >> 33) % minutes.len], was_a = *a;
        char *b = &run.data[(seed >> 33) % run.len], was_b = *b;
        *a = *b = (char)(seed >> 56);
        struct series *back = series_new();
        struct trace *other = trace_decode(run.data, run.len);
        if (series_decode(back, 0, INT64_MAX, minutes.data, minutes.len) == 0) {
            walk(back, INT64_MIN, series_step_us(0, INT64_MAX / 8, 100));
            read++;
        }
        for (int k = 0; other && k < trace_n(other); k++)
            assert_true(trace_at(other, k).mib[1] >= -1);
        if (other) {
            trace_thin(other, 2);
            read++;
        }
        trace_free(other);
        series_free(back);
        *a = was_a;
        *b = was_b;
    }
    assert_in_range(read, 10000, 40000); /* most numbers are plausible */
    series_free(s);
    trace_free(t);
}

/* --- attempts --- */

static int32_t
highest(const struct trace *t, int gpu)
{
    int32_t most = -1;
    for (int i = 0; i < trace_n(t); i++)
        most = trace_at(t, i).mib[gpu] > most ? trace_at(t, i).mib[gpu] : most;
    return most;
}

static void
test_a_run_of_any_length_fits(void **state)
{
    (void)state;
    struct trace *t = trace_new(2, 1000 * S);
    int32_t peak = 0;
    int doubled = 0;
    for (int64_t ms = 0; ms < 40000000; ms += 997) {
        const int32_t mib[2] = {(int32_t)(ms * 7919 % 24000), -1};
        doubled += trace_add(t, ms, mib, (int)(ms % 100));
        peak = mib[0] > peak ? mib[0] : peak;
        assert_in_range(trace_n(t), 1, TRACE_POINTS - 1);
        if (ms % 1000 == 0)
            assert_int_equal(highest(t, 0), peak);
    }
    assert_int_equal(highest(t, 0), peak);
    assert_int_equal(highest(t, 1), -1);
    assert_in_range(trace_n(t), TRACE_POINTS / 2, TRACE_POINTS);
    assert_in_range(doubled, 5, 20);
    assert_int_equal(trace_at(t, 0).at_us, 1000 * S);
    for (int i = 1; i < trace_n(t); i++)
        assert_int_equal((trace_at(t, i).at_us - 1000 * S) % (trace_step_ms(t) * 1000), 0);
    trace_thin(t, 10);
    assert_in_range(trace_n(t), 5, 10);
    assert_int_equal(highest(t, 0), peak);
    trace_free(t);
}

static void
test_times_that_make_no_sense(void **state)
{
    (void)state;
    struct trace *t = trace_new(1, 0);
    const int32_t one = 1, two = 2;
    trace_add(t, -5, &one, -1);
    trace_add(t, INT64_C(1) << 50, &one, 50);
    trace_add(t, 3, &two, 60); /* back in time: counts for the newest */
    assert_int_equal(trace_n(t), 2);
    assert_int_equal(trace_at(t, 0).mib[0], 1);
    assert_int_equal(trace_at(t, 0).util, -1);
    assert_int_equal(trace_at(t, 1).mib[0], 2);
    assert_int_equal(trace_at(t, 1).util, 60);
    trace_free(t);
}

static void
assert_same_trace(const struct trace *a, const struct trace *b)
{
    assert_int_equal(trace_n(a), trace_n(b));
    assert_int_equal(trace_n_gpus(a), trace_n_gpus(b));
    assert_int_equal(trace_step_ms(a), trace_step_ms(b));
    for (int i = 0; i < trace_n(a); i++) {
        struct trace_point p = trace_at(a, i), q = trace_at(b, i);
        assert_int_equal(p.at_us, q.at_us);
        assert_int_equal(p.util, q.util);
        for (int k = 0; k < trace_n_gpus(a); k++)
            assert_int_equal(p.mib[k], q.mib[k]);
    }
}

static void
test_traces_are_encoded(void **state)
{
    (void)state;
    static const int gpus[] = {1, 8, GPU_MAX};
    for (size_t g = 0; g < sizeof gpus / sizeof gpus[0]; g++) {
        auto_buf struct buf bytes = BUF_INIT;
        struct trace *t = trace_new(gpus[g], INT64_C(1700000000) * S);
        for (int i = 0; i < 500; i++) {
            int32_t mib[GPU_MAX];
            for (int k = 0; k < gpus[g]; k++)
                mib[k] = i * k % 11 ? i * k : i % 3 ? -1 : INT32_MAX;
            trace_add(t, i * 1000, mib, i % 5 ? i % 101 : -1);
        }
        trace_encode(t, &bytes);
        struct trace *back = trace_decode(bytes.data, bytes.len);
        assert_non_null(back);
        assert_same_trace(t, back);
        trace_free(back);
        for (size_t cut = 0; cut < bytes.len; cut += bytes.len / 100 + 1)
            assert_null(trace_decode(bytes.data, cut));
        trace_free(t);
    }
}

/* Most attempts are one flat hour on one GPU. */
static void
test_a_flat_trace_is_small(void **state)
{
    (void)state;
    auto_buf struct buf bytes = BUF_INIT;
    struct trace *t = trace_new(1, INT64_C(1700000000) * S);
    const int32_t mib = 18000;
    for (int i = 0; i < 3600; i++)
        trace_add(t, i * 1000, &mib, 99);
    trace_encode(t, &bytes);
    assert_in_range(bytes.len, 100, TRACE_POINTS * 3 + 32);
    trace_free(t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_within_a_step_are_their_maximum),
        cmocka_unit_test(test_old_samples_become_minutes),
        cmocka_unit_test(test_no_more_points_than_asked_for),
        cmocka_unit_test(test_minutes_outlive_the_daemon),
        cmocka_unit_test(test_damaged_bytes),
        cmocka_unit_test(test_a_run_of_any_length_fits),
        cmocka_unit_test(test_times_that_make_no_sense),
        cmocka_unit_test(test_traces_are_encoded),
        cmocka_unit_test(test_a_flat_trace_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
