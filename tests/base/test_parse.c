/* Numbers, sizes, durations, index lists: tables of accepted and refused texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define BAD      INT64_MIN /* in a table: refused */

/* Refused as a number, a size and a duration. */
static const char *const nonsense[] = {
    "",     " ",   " 5",  "5 ",      "nan",  "NaN", "inf",  "-inf",  "infinity",
    "0x10", "1e3", "--5", "5-",      "+5",   "1,5", "1..5", "1.2.3", ".",
    "5.",   "-",   "abc", "\x1b[1m", "\xff", "1\n", "١",
};

/* A refusal has code ERR_USAGE, quotes the input, and is safe to print. */
static void
check_refusal(const char *s, const struct err *e)
{
    assert_int_equal(e->code, ERR_USAGE);
    assert_true(strlen(e->text) > 15);
    assert_true(text_is_utf8(e->text, strlen(e->text), NULL));
    for (const char *c = e->text; *c; c++)
        assert_true((unsigned char)*c >= 0x20);
    if (!*s)
        assert_non_null(strstr(e->text, "empty"));
}

static void
refuses_nonsense(void **state)
{
    struct err e;
    int64_t v = 42;
    double d = 42;

    (void)state;
    for (size_t i = 0; i < COUNT(nonsense); i++) {
        const char *s = nonsense[i];
        memset(&e, 0, sizeof e);
        assert_int_equal(parse_int(s, INT64_MIN, INT64_MAX, &v, &e), -1);
        check_refusal(s, &e);
        assert_int_equal(parse_double(s, -1e300, 1e300, &d, &e), -1);
        check_refusal(s, &e);
        assert_int_equal(parse_size_mib(s, &v, &e), -1);
        check_refusal(s, &e);
        assert_int_equal(parse_duration_ms(s, 1000, &v, &e), -1);
        check_refusal(s, &e);
        assert_int_equal(parse_size_mib(s, &v, NULL), -1);
    }
    assert_int_equal(v, 42); /* untouched */
    assert_true(d > 41.9 && d < 42.1);
}

static void
reads_whole_numbers(void **state)
{
    static const struct {
        const char *s;
        int64_t min, max, want;
    } cases[] = {
        {"0", 0, 9, 0},
        {"-0", 0, 9, 0},
        {"007", 0, 9, 7},
        {"9", 0, 9, 9},
        {"10", 0, 9, BAD},
        {"-1", 0, 9, BAD},
        {"-1000", -1000, 1000, -1000},
        {"-1001", -1000, 1000, BAD},
        {"9223372036854775807", 0, INT64_MAX, INT64_MAX},
        {"9223372036854775808", 0, INT64_MAX - 1, BAD},
        {"99999999999999999999999", 0, 1000000, BAD},
        {"-99999999999999999999999", -1000000, 0, BAD},
        {"1.0", 0, 9, BAD},
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t v = BAD;
        int rc = parse_int(cases[i].s, cases[i].min, cases[i].max, &v, &e);
        if (rc != (cases[i].want == BAD ? -1 : 0) || v != cases[i].want)
            fail_msg("'%s': %d, %lld", cases[i].s, rc, (long long)v);
    }
    assert_int_equal(parse_int("65", 0, 64, &(int64_t){0}, &e), -1);
    assert_string_equal(e.text, "'65' is not a whole number from 0 to 64");
}

static void
reads_fractions(void **state)
{
    static const struct {
        const char *s;
        double want; /* -1: refused; the range is 0..1000 */
    } cases[] = {
        {"0", 0},
        {"0.1", 0.1},
        {".5", 0.5},
        {"1000", 1000},
        {"1000.1", -1},
        {"-0.5", -1},
        {"0.10", 0.1},
        {"2.5x", -1},
        {"93.7", 93.7},
        {"0.10000000000000000000000000000001", 0.1},
        {"99999999999999999999999999999999999999999999999", -1},
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        double v = -1;
        int rc = parse_double(cases[i].s, 0, 1000, &v, &e);
        if (rc != (cases[i].want < 0 ? -1 : 0) || v != cases[i].want)
            fail_msg("'%s': %d, %g", cases[i].s, rc, v);
    }
}

static void
digits_without_end_are_refused(void **state)
{
    char s[1001];
    struct err e;
    int64_t v;
    double d;

    (void)state;
    memset(s, '9', sizeof s - 1);
    s[sizeof s - 1] = '\0';
    assert_int_equal(parse_int(s, 0, 1000, &v, &e), -1);
    assert_int_equal(parse_double(s, 0, 1e300, &d, &e), -1); /* overflows to infinity */
    assert_int_equal(parse_size_mib(s, &v, &e), -1);
    assert_int_equal(parse_duration_ms(s, 1000, &v, &e), -1);
}

static void
reads_truth(void **state)
{
    static const char *const yes[] = {"true", "yes", "on", "1", "TRUE", "Yes"};
    static const char *const no[] = {"false", "no", "off", "0", "False"};
    static const char *const neither[] = {"", "2", "y", "yess", " yes"};
    struct err e;
    bool v;

    (void)state;
    for (size_t i = 0; i < COUNT(yes); i++)
        assert_true(parse_bool(yes[i], &v, &e) == 0 && v);
    for (size_t i = 0; i < COUNT(no); i++)
        assert_true(parse_bool(no[i], &v, &e) == 0 && !v);
    for (size_t i = 0; i < COUNT(neither); i++)
        assert_int_equal(parse_bool(neither[i], &v, &e), -1);
}

static void
reads_sizes(void **state)
{
    static const struct {
        const char *s;
        int64_t mib;
    } cases[] = {
        {"8192", 8192}, {"8G", 8192},   {"8g", 8192},          {"8gb", 8192},   {"8GiB", 8192},
        {"8GB", 8192},  {"1.5G", 1536}, {".5g", 512},          {"642M", 642},   {"642mib", 642},
        {"642MB", 642}, {"2048k", 2},   {"2048KiB", 2},        {"1T", 1 << 20}, {"0.6", 1},
        {"1.4", 1},     {"1.5", 2},     {"24576", 24576},      {"0.001G", 1},   {"0", BAD},
        {"0G", BAD},    {"0.4", BAD},   {"1k", BAD},           {"-8G", BAD},    {"8X", BAD},
        {"8 G", BAD},   {"8GG", BAD},   {"8Gi", BAD},          {"G", BAD},      {"8b", BAD},
        {"8G ", BAD},   {"8G,", BAD},   {"99999999999T", BAD},
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t v = BAD;
        int rc = parse_size_mib(cases[i].s, &v, &e);
        if (rc != (cases[i].mib == BAD ? -1 : 0) || v != cases[i].mib)
            fail_msg("'%s': %d, %lld", cases[i].s, rc, (long long)v);
        if (rc != 0)
            check_refusal(cases[i].s, &e);
    }
    parse_size_mib("8X", &(int64_t){0}, &e);
    assert_string_equal(e.text, "'8X' is not a size; write 8G, 8192M or 8192 (MiB)");
}

static void
reads_durations(void **state)
{
    static const struct {
        const char *s;
        int64_t ms; /* a bare number counts 1000 */
    } cases[] = {
        {"90", 90000},
        {"0.4", 400},
        {"90s", 90000},
        {"0.4s", 400},
        {"15m", 900000},
        {"2h", 7200000},
        {"1d", 86400000},
        {"1d12h", 129600000},
        {"1.5h", 5400000},
        {"1D12H", 129600000},
        {"500ms", 500},
        {"1m500ms", 60500},
        {"1h30m10s", 5410000},
        {"00:01:30", 90000},
        {"12:30:00", 45000000},
        {"100:00:00", 360000000},
        {"01:30", 90000},
        {"90:00", 5400000},
        {"1-00:00:00", 86400000},
        {"1-12:00:00", 129600000},
        {"2-12", 216000000},
        {"1-06:30", 109800000},
        {"0-00:00:01", 1000},
        {"36500d", 3153600000000},
        {"0", BAD},
        {"0s", BAD},
        {"0.0001s", BAD},
        {"00:00:00", BAD},
        {"-5s", BAD},
        {"5x", BAD},
        {"5 s", BAD},
        {"1h1h", BAD},
        {"1m1h", BAD},
        {"1h30", BAD},
        {"h", BAD},
        {"12:60:00", BAD},
        {"12:00:60", BAD},
        {"1-24:00:00", BAD},
        {"1:2:3:4", BAD},
        {"1:", BAD},
        {":30", BAD},
        {"1-", BAD},
        {"-1:00", BAD},
        {"1--2", BAD},
        {"1.5:00", BAD},
        {"36501d", BAD},
        {"99999999999999999999d", BAD},
        {"9999999999:00:00", BAD},
        {"1-2-3", BAD},
        {"2h ", BAD},
        {"5sec", BAD},
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t v = BAD;
        int rc = parse_duration_ms(cases[i].s, 1000, &v, &e);
        if (rc != (cases[i].ms == BAD ? -1 : 0) || v != cases[i].ms)
            fail_msg("'%s': %d, %lld (%s)", cases[i].s, rc, (long long)v, e.text);
        if (rc != 0)
            check_refusal(cases[i].s, &e);
    }
    int64_t v;
    assert_int_equal(parse_duration_ms("90", 60000, &v, &e), 0); /* Slurm's minutes */
    assert_int_equal(v, 5400000);
    assert_int_equal(parse_duration_ms("90s", 60000, &v, &e), 0);
    assert_int_equal(v, 90000);
}

static void
reads_index_sets(void **state)
{
    static const struct {
        const char *s;
        uint64_t set; /* 0: refused */
    } cases[] = {
        {"0", 1},
        {"63", UINT64_C(1) << 63},
        {"0-3", 0xf},
        {"0-3,6", 0x4f},
        {"6,0-3", 0x4f},
        {"1,1", 2},
        {"0-63", UINT64_MAX},
        {"5-5", 0x20},
        {"", 0},
        {",", 0},
        {"1,", 0},
        {",1", 0},
        {"1,,2", 0},
        {"3-1", 0},
        {"64", 0},
        {"0-64", 0},
        {"a", 0},
        {"1 ,2", 0},
        {"-1", 0},
        {"1-", 0},
        {"1-2-3", 0},
        {"99999999999999999999", 0},
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t set = 0;
        int rc = parse_index_set(cases[i].s, &set, &e);
        if (rc != (cases[i].set ? 0 : -1) || set != cases[i].set)
            fail_msg("'%s': %d, %llx", cases[i].s, rc, (unsigned long long)set);
        if (rc != 0)
            check_refusal(cases[i].s, &e);
    }
}

static void
reads_signals(void **state)
{
    static const struct {
        const char *s;
        int sig;
    } cases[] = {
        {"USR2", 12}, {"SIGUSR2", 12}, {"usr2", 12}, {"sigterm", 15}, {"9", 9},
        {"64", 64},   {"0", -1},       {"65", -1},   {"-9", -1},      {"USR3", -1},
        {"SIG", -1},  {"SIG12", -1},   {"", -1},     {"12x", -1},
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int sig = -1;
        int rc = parse_signal(cases[i].s, &sig, &e);
        if (rc != (cases[i].sig > 0 ? 0 : -1) || sig != cases[i].sig)
            fail_msg("'%s': %d, %d", cases[i].s, rc, sig);
        if (rc != 0)
            check_refusal(cases[i].s, &e);
    }
}

static void
reads_index_lists(void **state)
{
    static const struct {
        const char *s;
        int n;
        uint8_t ids[4];
    } cases[] = {
        {"3,1", 2, {3, 1}},
        {"0", 1, {0}},
        {"2-4,0", 4, {2, 3, 4, 0}},
        {"0,1,2,3", 4, {0, 1, 2, 3}},
        {"0-4", -1, {0}},
        {"1,1", -1, {0}},
        {"0-2,1", -1, {0}},
        {"64", -1, {0}},
        {"", -1, {0}},
        {"2,", -1, {0}},
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint8_t ids[4] = {0};
        int n = parse_index_list(cases[i].s, ids, 4, &e);
        if (n != cases[i].n)
            fail_msg("'%s': %d", cases[i].s, n);
        if (n > 0)
            assert_memory_equal(ids, cases[i].ids, (size_t)n);
        else
            check_refusal(cases[i].s, &e);
    }
}

static void
formats_for_people(void **state)
{
    static const struct {
        int64_t mib;
        const char *text;
    } sizes[] = {
        {-1, "n/a"},       {0, "0 MiB"},        {642, "642 MiB"},
        {1024, "1.0 GiB"}, {18432, "18.0 GiB"}, {24576, "24.0 GiB"},
    };
    static const struct {
        int64_t ms;
        const char *text;
    } durations[] = {
        {-1, "n/a"},          {0, "0.0s"},        {400, "0.4s"},      {9949, "9.9s"},
        {9950, "10s"},        {59499, "59s"},     {59500, "1m00s"},   {1774000, "29m34s"},
        {3599499, "59m59s"},  {3599500, "1h00m"}, {3660000, "1h01m"}, {86400000, "1d00h"},
        {183600000, "2d03h"},
    };
    static const struct {
        int64_t mib;
        const char *text;
    } asks[] = {
        {1, "1M"},    {1023, "1023M"}, {1024, "1030M"}, {3300, "3300M"},    {5119, "5120M"},
        {5120, "5G"}, {6872, "6.7G"},  {10188, "9.9G"}, {24 * 1024, "24G"},
    };
    char out[24];

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++)
        assert_string_equal(format_mib(sizes[i].mib, out), sizes[i].text);
    for (size_t i = 0; i < COUNT(asks); i++)
        assert_string_equal(format_ask_mib(asks[i].mib, out), asks[i].text);
    for (size_t i = 0; i < COUNT(durations); i++)
        assert_string_equal(format_duration(durations[i].ms, out), durations[i].text);
    assert_true(strlen(format_mib(INT64_MAX, out)) < sizeof out);
    assert_true(strlen(format_duration(INT64_MAX, out)) < sizeof out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_nonsense),   cmocka_unit_test(reads_whole_numbers),
        cmocka_unit_test(reads_fractions),    cmocka_unit_test(digits_without_end_are_refused),
        cmocka_unit_test(reads_truth),        cmocka_unit_test(reads_sizes),
        cmocka_unit_test(reads_durations),    cmocka_unit_test(reads_index_sets),
        cmocka_unit_test(reads_signals),      cmocka_unit_test(reads_index_lists),
        cmocka_unit_test(formats_for_people),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
