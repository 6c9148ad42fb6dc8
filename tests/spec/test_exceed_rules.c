/* on_exceed_gpus: valid rules, and invalid ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "spec/value.h"

static void
test_rules(void **state)
{
    enum on_exceed rules[GPU_MAX];
    (void)state;
    assert_int_equal(value_exceed_rules("", rules, NULL), 0);
    assert_int_equal(rules[0], ON_EXCEED_DEFAULT);
    assert_int_equal(value_exceed_rules("0-2=kill  4,63=Ignore 5=warn", rules, NULL), 0);
    assert_int_equal(rules[0], ON_EXCEED_KILL);
    assert_int_equal(rules[2], ON_EXCEED_KILL);
    assert_int_equal(rules[3], ON_EXCEED_DEFAULT);
    assert_int_equal(rules[4], ON_EXCEED_IGNORE);
    assert_int_equal(rules[5], ON_EXCEED_WARN);
    assert_int_equal(rules[63], ON_EXCEED_IGNORE);
}

static void
test_what_is_no_rule(void **state)
{
    static const struct {
        const char *text, *words;
    } rows[] = {{"kill", "'kill' is no rule; write 0-3=kill 5=ignore"},
                {"0=stop", "'stop' is not warn, kill or ignore"},
                {"0-1=kill 1=warn", "gpu 1 is named twice"},
                {"x=kill", "x"},
                {"64=kill", "64"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum on_exceed rules[GPU_MAX];
        struct err e = {0};
        assert_int_equal(value_exceed_rules(rows[i].text, rules, &e), -1);
        assert_non_null(strstr(e.text, rows[i].words));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_what_is_no_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
