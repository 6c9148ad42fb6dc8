/* Which commands count as the same, and which do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/request.h"
#include "spec/fingerprint.h"

static void
test_same_or_not(void **state)
{
    (void)state;
    /* Rows of the same `group` have the same fingerprint, rows of different groups have
     * different ones. */
    static const struct {
        int group;
        char *argv[4];
        char *command;
        const char *cwd;
        char *setup, *conda;
    } cases[] = {
        {0, {"python", "a.py", NULL}, NULL, "/w", NULL, NULL},
        {0, {"python", "a.py", NULL}, "not looked at", "/w", NULL, NULL},
        {1, {"a.py", "python", NULL}, NULL, "/w", NULL, NULL},
        {2, {"python a.py", NULL}, NULL, "/w", NULL, NULL},
        {3, {NULL}, "python a.py", "/w", NULL, NULL},
        {4, {"python", "a.py", NULL}, NULL, "/w2", NULL, NULL},
        {5, {"python", "a.py", NULL}, NULL, "/w", "source venv/bin/activate", NULL},
        {6, {"python", "a.py", "", NULL}, NULL, "/w", NULL, NULL},
        {7, {NULL}, "python a.py", "/w2", NULL, NULL},
        {8, {NULL}, "", NULL, NULL, NULL},
        {9, {"python", "a.py", NULL}, NULL, "/w", NULL, "torch"},
        {10, {"python", "a.py", NULL}, NULL, "/w", "torch", NULL},
        {11, {"python", "a.py", NULL}, NULL, "/w", "source venv/bin/activate", "torch"},
        {0, {"python", "a.py", NULL}, NULL, "/w", "", ""},
    };
    const size_t n = sizeof cases / sizeof cases[0];
    char made[sizeof cases / sizeof cases[0]][FINGERPRINT_HEX + 1];
    for (size_t i = 0; i < n; i++) {
        struct request r;
        request_init(&r);
        r.argv = cases[i].argv[0] ? (char **)cases[i].argv : NULL;
        r.command = cases[i].command;
        r.env_setup = cases[i].setup;
        r.conda = cases[i].conda;
        fingerprint_make(&r, cases[i].cwd, made[i]);
        assert_int_equal(strlen(made[i]), FINGERPRINT_HEX);
        assert_int_equal(strspn(made[i], "0123456789abcdef"), FINGERPRINT_HEX);
        for (size_t k = 0; k < i; k++)
            assert_int_equal(strcmp(made[i], made[k]) == 0, cases[i].group == cases[k].group);
    }
    /* It outlives the daemon, so it must not change between versions. */
    assert_string_equal(made[4], "a3fbd643a3c3b804");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_or_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
