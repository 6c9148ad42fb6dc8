/* The setting mps: the GPUs it selects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "spec/value.h"

static void
test_gpus(void **state)
{
    uint64_t gpus;
    (void)state;
    assert_int_equal(value_mps("off", &gpus, NULL), 0);
    assert_true(gpus == 0);
    assert_int_equal(value_mps("on", &gpus, NULL), 0);
    assert_true(gpus == UINT64_MAX);
    assert_int_equal(value_mps("0-2,5", &gpus, NULL), 0);
    assert_true(gpus == 0x27);
}

static void
test_what_is_none(void **state)
{
    static const char *const texts[] = {"", "yes", "64", "1-", "-1", "on,1"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint64_t gpus;
        struct err e = {0};
        assert_int_equal(value_mps(texts[i], &gpus, &e), -1);
        assert_true(e.text[0] != '\0');
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
