/* Times as users write them, with a clock that stands still. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "spec/when.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ZONE_S   3600 /* the local clock is an hour east of UTC, all year */

static time_t
to_time(struct tm *local)
{
    time_t t = timegm(local);

    return t == (time_t)-1 ? t : t - ZONE_S;
}

/* 2026-11-21 14:30:00 on the local clock. */
static struct when_clock
the_clock(void)
{
    struct when_clock clock = {.local = {.tm_year = 126,
                                         .tm_mon = 10,
                                         .tm_mday = 21,
                                         .tm_hour = 14,
                                         .tm_min = 30,
                                         .tm_sec = 0},
                               .to_time = to_time};
    struct tm copy = clock.local;

    clock.now_us = (int64_t)to_time(&copy) * 1000000;
    return clock;
}

/* The clock was set back by an hour at the midnight before. */
static time_t
to_time_of_autumn(struct tm *local)
{
    time_t t = to_time(local);

    return local->tm_mday < 21 ? t - ZONE_S : t;
}

/* Local time as date and time of day. */
static void
show(int64_t us, char *out, size_t size)
{
    time_t t = (time_t)(us / 1000000) + ZONE_S;
    struct tm tm;

    gmtime_r(&t, &tm);
    strftime(out, size, "%Y-%m-%d %H:%M:%S", &tm);
}

static void
reads_moments(void **state)
{
    static const struct {
        const char *text, *local;
    } cases[] = {
        {"now", "2026-11-21 14:30:00"},
        {"now+90s", "2026-11-21 14:31:30"},
        {"+1h", "2026-11-21 15:30:00"},
        {"now+60", "2026-11-21 14:31:00"},
        {"now + 1hour", "2026-11-21 15:30:00"},
        {"now + 1 hour", "2026-11-21 15:30:00"},
        {"now+90 minutes", "2026-11-21 16:00:00"},
        {"16:00 tomorrow", "2026-11-22 16:00:00"},
        {"4:00PM 12/24/26", "2026-12-24 16:00:00"},
        {"4:00 pm 122426", "2026-12-24 16:00:00"},
        {"16:00:05 2026-12-24", "2026-12-24 16:00:05"},
        {"now +90", "2026-11-21 14:31:30"},
        {"4:00PM", "2026-11-21 16:00:00"},
        {"04:15:30 pm", "2026-11-21 16:15:30"},
        {"9:15AM", "2026-11-22 09:15:00"},
        {"12:00am", "2026-11-22 00:00:00"},
        {"12:30PM", "2026-11-22 12:30:00"},
        {"tomorrow 4:00PM", "2026-11-22 16:00:00"},
        {"teatime", "2026-11-21 16:00:00"},
        {"fika", "2026-11-21 15:00:00"},
        {"elevenses", "2026-11-22 11:00:00"},
        {"122426", "2026-12-24 00:00:00"},
        {"122426T18:30", "2026-12-24 18:30:00"},
        {"12/24", "2026-12-24 00:00:00"},
        {"1/2", "2027-01-02 00:00:00"},
        {"11/21", "2027-11-21 00:00:00"}, /* midnight has passed */
        {"11/21-16:00", "2026-11-21 16:00:00"},
        {"12/24/26", "2026-12-24 00:00:00"},
        {"12/24/2026-6:30PM", "2026-12-24 18:30:00"},
        {"uts1766600000", "2025-12-24 19:13:20"},
        {"now+2hours", "2026-11-21 16:30:00"},
        {"now+1hour", "2026-11-21 15:30:00"},
        {"NOW+3days", "2026-11-24 14:30:00"},
        {"now+1week", "2026-11-28 14:30:00"},
        {"now+30minutes", "2026-11-21 15:00:00"},
        {"16:00", "2026-11-21 16:00:00"},
        {"16:00:30", "2026-11-21 16:00:30"},
        {"9:15", "2026-11-22 09:15:00"},
        {"14:30", "2026-11-22 14:30:00"}, /* now is not after now */
        {"noon", "2026-11-22 12:00:00"},
        {"midnight", "2026-11-22 00:00:00"},
        {"today", "2026-11-21 00:00:00"},
        {"today 16:00", "2026-11-21 16:00:00"},
        {"tomorrow", "2026-11-22 00:00:00"},
        {"tomorrow 16:00", "2026-11-22 16:00:00"},
        {"tomorrowT07:05", "2026-11-22 07:05:00"},
        {"2026-12-24", "2026-12-24 00:00:00"},
        {"2026-12-24T18:30", "2026-12-24 18:30:00"},
        {"2026-12-24 18:30:15", "2026-12-24 18:30:15"},
        {"2026-12-24T18:30Z", "2026-12-24 19:30:00"},
        {"2026-12-24T18:30+01:00", "2026-12-24 18:30:00"},
        {"2026-12-24T18:30:00-0530", "2026-12-25 01:00:00"},
        {"2028-02-29T00:00Z", "2028-02-29 01:00:00"},
        {"2000-03-01T00:00Z", "2000-03-01 01:00:00"},
        {"@1766600000", "2025-12-24 19:13:20"},
    };
    struct when_clock clock = the_clock();

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t us = 0;
        char local[64];
        struct err e;
        if (when_parse(cases[i].text, &clock, &us, &e) < 0)
            fail_msg("'%s': %s", cases[i].text, e.text);
        show(us, local, sizeof local);
        if (strcmp(local, cases[i].local) != 0)
            fail_msg("'%s' is %s", cases[i].text, local);
    }
}

static void
looks_back(void **state)
{
    static const struct {
        const char *text, *local;
    } cases[] = {
        {"14:00", "2026-11-21 14:00:00"},       {"14:30", "2026-11-21 14:30:00"},
        {"16:00", "2026-11-20 16:00:00"},       {"noon", "2026-11-21 12:00:00"},
        {"teatime", "2026-11-20 16:00:00"},     {"11/22", "2025-11-22 00:00:00"},
        {"today 16:00", "2026-11-21 16:00:00"},
    };
    struct when_clock clock = the_clock();
    struct err e;

    (void)state;
    clock.past = true;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t us = 0;
        char local[64];

        assert_int_equal(when_parse(cases[i].text, &clock, &us, &e), 0);
        show(us, local, sizeof local);
        if (strcmp(local, cases[i].local) != 0)
            fail_msg("'%s' is %s", cases[i].text, local);
    }
    clock.to_time = to_time_of_autumn;
    int64_t us = 0;
    assert_int_equal(when_parse("16:00", &clock, &us, &e), 0);
    assert_int_equal((clock.now_us - us) / 1000000, (22 * 60 + 30) * 60 + ZONE_S);
}

static void
refuses_what_is_none(void **state)
{
    static const char *const cases[] = {
        "",
        "soon",
        "now+",
        "now-1h",
        "24:00",
        "16:60",
        "16",
        "16:0",
        "tomorrow16:00",
        "tomorrow 16",
        "noon 3:00",
        "2026-13-01",
        "2026-02-29",
        "2026-11-31",
        "2026-1-1",
        "@",
        "@-5",
        "@1e9",
        "2026-12-24T",
        "2026-12-24T25:00",
        "now+1year",
        "now + ",
        "now + 1 ",
        "16:00 17:00",
        "16:00 now",
        "16:00 noon",
        "16:00 tomorrow 17:00",
        "13:00PM",
        "0:30am",
        "4:00xm",
        "13/01",
        "12/32",
        "02/30/26",
        "12/24-",
        "12/24/026",
        "133126",
        "1234567",
        "uts",
        "utsx",
        "now+9999weeks",
        "+",
        "2026-12-24T18:30+1",
        "1969-12-31",
        "2026-12-24T18:30Zx",
        "16:00 ",
    };
    struct when_clock clock = the_clock();

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t us = 0;
        struct err e = {0};
        if (when_parse(cases[i], &clock, &us, &e) == 0)
            fail_msg("'%s' is accepted", cases[i]);
        assert_int_equal(e.code, ERR_USAGE);
    }
}

static void
needs_a_clock_for_some(void **state)
{
    static const char *const cases[] = {"now", "+1h", "16:00", "tomorrow", "2026-12-24T18:30"};
    int64_t us = 0;
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(when_parse(cases[i], NULL, &us, &e), -1);
        assert_non_null(strstr(e.text, "clock"));
    }
    assert_int_equal(when_parse("1970-01-02T00:00Z", NULL, &us, &e), 0);
    assert_int_equal(us, 86400000000);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_moments),
        cmocka_unit_test(looks_back),
        cmocka_unit_test(refuses_what_is_none),
        cmocka_unit_test(needs_a_clock_for_some),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
