/* Times as text, and that the clocks run forward. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"

static void
writes_rfc3339(void **state)
{
    static const struct {
        int64_t us;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00Z"},
        {1, "1970-01-01T00:00:00Z"},
        {-1, "1969-12-31T23:59:59Z"},
        {-1000000, "1969-12-31T23:59:59Z"},
        {1772373730000000, "2026-03-01T14:02:10Z"},
        {1772373730999999, "2026-03-01T14:02:10Z"},
        {951782400000000, "2000-02-29T00:00:00Z"},
        {4102444800000000, "2100-01-01T00:00:00Z"},
    };
    char text[32];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(clock_rfc3339(cases[i].us, text), cases[i].text);
}

static void
survives_the_ends_of_time(void **state)
{
    char text[32];

    (void)state;
    assert_true(strlen(clock_rfc3339(INT64_MAX, text)) < sizeof text);
    assert_true(strlen(clock_rfc3339(INT64_MIN, text)) < sizeof text);
}

static void
boot_clock_never_goes_back(void **state)
{
    int64_t last = clock_boot_us();

    (void)state;
    assert_true(last > 0);
    for (int i = 0; i < 1000; i++) {
        int64_t now = clock_boot_us();
        assert_true(now >= last);
        last = now;
    }
    assert_true(clock_wall_us() > 1500000000000000); /* after 2017 */
}

static void
boot_id_stays(void **state)
{
    (void)state;
    assert_string_equal(clock_boot_id(), clock_boot_id());
    assert_true(strlen(clock_boot_id()) == 36 || strcmp(clock_boot_id(), "unknown") == 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_rfc3339),
        cmocka_unit_test(survives_the_ends_of_time),
        cmocka_unit_test(boot_clock_never_goes_back),
        cmocka_unit_test(boot_id_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
