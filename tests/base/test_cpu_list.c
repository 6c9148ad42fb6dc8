/* Lists of CPUs, as the kernel writes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cpu_list.h"

static void
test_both_ways(void **state)
{
    static const char *const cases[][2] = {
        {"0", "0"},         {"0-3\n", "0-3"},     {"0-3,8,10-11", "0-3,8,10-11"},
        {"5,0,1", "0-1,5"}, {"0-1,1-2,2", "0-2"}, {"1023", "1023"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        auto_buf struct buf out = BUF_INIT;
        cpu_set_t set;
        assert_true(cpu_list_read(cases[i][0], &set));
        cpu_list_add(&set, &out);
        assert_string_equal(buf_str(&out), cases[i][1]);
    }
}

static void
test_what_is_no_list(void **state)
{
    static const char *const cases[] = {"",   "\n", "a",     "1,",   ",1",     "3-1",
                                        "1-", "-1", "1-2-3", "1024", "0-1024", "1 2"};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cpu_set_t set;
        if (cpu_list_read(cases[i], &set))
            fail_msg("'%s' was taken", cases[i]);
        assert_int_equal(CPU_COUNT(&set), 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_what_is_no_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
