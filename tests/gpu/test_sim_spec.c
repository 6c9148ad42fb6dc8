/* Accepted values of --sim, and the errors for others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "gpu/sim_spec.h"

static void
test_good_specs(void **state)
{
    static const struct {
        const char *text;
        int n;
        int32_t first, last;
        uint64_t linked;
    } cases[] = {
        {"1", 1, 24576, 24576, 0},
        {"2", 2, 24576, 24576, 0},
        {"64", 64, 24576, 24576, 0},
        {"4x80G", 4, 81920, 81920, 0},
        {"4X80gib", 4, 81920, 81920, 0},
        {"1x8000", 1, 8000, 8000, 0},
        {"2x24G,1x80G", 3, 24576, 81920, 0},
        {"1,1x512M", 2, 24576, 512, 0},
        {"4x80G+nvlink", 4, 81920, 81920, 0x5},
        {"3+nvlink", 3, 24576, 24576, 0x1},
        {"1,4x80G+nvlink,2", 7, 24576, 24576, 0xa},
        {"60,4", 64, 24576, 24576, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sim_spec spec;
        struct err e;
        if (sim_spec_parse(cases[i].text, &spec, &e) < 0)
            fail_msg("%s: %s", cases[i].text, e.text);
        assert_int_equal(spec.n, cases[i].n);
        assert_int_equal(spec.total_mib[0], cases[i].first);
        assert_int_equal(spec.total_mib[spec.n - 1], cases[i].last);
        for (int card = 0; card < GPU_MAX; card++)
            assert_int_equal(spec.linked[card], cases[i].linked >> card & 1);
    }
}

static void
test_bad_specs_say_what_is_wrong(void **state)
{
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"", "count from 1 to 64"},
        {"0", "count from 1 to 64"},
        {"65", "count from 1 to 64"},
        {"-1", "count from 1 to 64"},
        {"x80G", "count from 1 to"},
        {"2x", "not a size"},
        {"2x8X", "8X"},
        {"2,", "count from 1 to 64"},
        {",2", "count from 1 to 64"},
        {"2x1,63", "the maximum is 64 GPUs"},
        {"2+nv", "only +nvlink, +cap, +numaN, +ccN and +migN"},
        {"1+mig", "+mig takes a number of instances"},
        {"1+mig5", "1, 2, 3, 4 or 7"},
        {"10+mig7", "the maximum is 64 GPUs"},
        {"2+mig2+nvlink", "neither +nvlink nor +cap"},
        {"2+cap+mig2", "neither +nvlink nor +cap"},
        {"2+numa", "+numa takes the number of a node"},
        {"2+numa8", "from 0 to 7"},
        {"2+cc", "+cc takes a compute capability"},
        {"2+cc8.x", "+cc8.6"},
        {"2 ", "count from 1 to 64"},
        {"1x17T", "the maximum of a GPU is 16T"},
        {"2x0", "'0'"},
        {"80G", "count from 1 to 64"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sim_spec spec;
        struct err e = {.code = ERR_NONE};
        if (sim_spec_parse(cases[i].text, &spec, &e) == 0)
            fail_msg("'%s' was taken", cases[i].text);
        assert_int_equal(e.code, ERR_USAGE);
        if (!strstr(e.text, cases[i].words))
            fail_msg("'%s' gives: %s", cases[i].text, e.text);
        assert_non_null(strstr(e.text, "4x80G"));
    }
}

static void
test_nodes_and_capabilities(void **state)
{
    struct sim_spec spec;
    struct err e;

    (void)state;
    assert_int_equal(sim_spec_parse("2x24G+numa0+cc8.6,1+cc9+numa7+nvlink,1", &spec, &e), 0);
    static const int numa[] = {0, 0, 7, -1}, cc[] = {86, 86, 90, 0};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(spec.numa[i], numa[i]);
        assert_int_equal(spec.cc[i], cc[i]);
    }
}

static void
test_instances_take_the_place_of_their_gpu(void **state)
{
    struct sim_spec spec;
    struct err e;

    (void)state;
    assert_int_equal(sim_spec_parse("1x24G,2x80G+mig3+numa1,1", &spec, &e), 0);
    assert_int_equal(spec.n, 8);
    static const int gpu[] = {0, 1, 1, 1, 2, 2, 2, 3};
    for (int i = 0; i < 8; i++) {
        assert_int_equal(spec.gpu[i], gpu[i]);
        assert_int_equal(spec.profile[i] != NULL, i > 0 && i < 7);
        assert_int_equal(spec.total_mib[i], i > 0 && i < 7 ? 20 * 1024 : 24 * 1024);
        assert_int_equal(spec.numa[i], i > 0 && i < 7 ? 1 : -1);
    }
    assert_int_equal(sim_spec_parse("9+mig7", &spec, &e), 0);
    assert_int_equal(spec.n, 63);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_specs),
        cmocka_unit_test(test_nodes_and_capabilities),
        cmocka_unit_test(test_instances_take_the_place_of_their_gpu),
        cmocka_unit_test(test_bad_specs_say_what_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
