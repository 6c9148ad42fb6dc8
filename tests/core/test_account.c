/* Numbers for the outcome of an attempt. */
#include <errno.h>

#include "machine.h"

static void
test_verdicts(void **state)
{
    (void)state;
    static const struct {
        int32_t declared, peak;
        enum verdict v;
    } cases[] = {
        {0, 500, VERDICT_NONE},
        {8000, -1, VERDICT_UNATTRIBUTED},
        {8000, 8800, VERDICT_WITHIN},
        {8000, 8801, VERDICT_UNDER},
        {8000, 7200, VERDICT_WITHIN},
        {8000, 7199, VERDICT_OVER},
        {8000, 12000, VERDICT_UNDER},
        {12000, 4000, VERDICT_OVER},
        {8000, 0, VERDICT_OVER},
        {15, 16, VERDICT_WITHIN},
        {15, 17, VERDICT_UNDER},
        {VRAM_MAX_MIB, VRAM_MAX_MIB, VERDICT_WITHIN},
        {VRAM_MAX_MIB, INT32_MAX, VERDICT_UNDER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(account_verdict(cases[i].declared, cases[i].peak, 100), cases[i].v);
    assert_string_equal(verdict_name(VERDICT_UNDER), "under");
    assert_null(verdict_name(VERDICT_NONE));
}

static void
test_percent_rounds_half_away(void **state)
{
    (void)state;
    assert_int_equal(account_percent(8000, 12000), 50);
    assert_int_equal(account_percent(12000, 4000), -67);
    assert_int_equal(account_percent(200, 201), 1);
    assert_int_equal(account_percent(200, 199), -1);
    assert_int_equal(account_percent(201, 202), 0);
    assert_int_equal(account_percent(1000, 1000), 0);
    assert_int_equal(account_percent(12288, 5038), -59);
}

static void
test_oom_next_is_exact(void **state)
{
    (void)state;
    assert_int_equal(account_oom_next_mib(1500, 2000), 2500);
    assert_int_equal(account_oom_next_mib(2001, 2000), 2502);
    assert_int_equal(account_oom_next_mib(2002, 2000), 2503);
    assert_int_equal(account_oom_next_mib(2003, 2000), 2504);
    assert_int_equal(account_oom_next_mib(-1, 1), 2);
    assert_int_equal(account_oom_next_mib(-1, 0), 0);
    assert_int_equal(account_oom_next_mib(400, 0), 500);
    assert_int_equal(account_oom_next_mib(INT32_MAX, 0), VRAM_MAX_MIB);
}

static void
test_averages_and_peaks(void **state)
{
    (void)state;
    struct attempt a = {.n_gpus = 3, .peak_mib = {-1, 300, 200}};
    assert_int_equal(attempt_peak_mib(&a), 300);
    assert_int_equal(attempt_util(&a), -1);
    a.util_sum = 191;
    a.util_count = 2;
    assert_int_equal(attempt_util(&a), 96);
    a.n_gpus = 1;
    assert_int_equal(attempt_peak_mib(&a), -1);
}

/* An attempt that repeatedly could not be started ends with the reason, as far as known. */
static void
test_an_end_without_a_start(void **state)
{
    const struct {
        struct ending ending;
        enum job_state becomes;
        const char *words;
    } cases[] = {
        {{.outcome = OUTCOME_NEVER_RAN},
         JOB_LOST,
         "its supervisor died before the command started"},
        {{.outcome = OUTCOME_NEVER_RAN, .errno_value = ENOSPC, .text = "cannot open the log"},
         JOB_FAILED,
         "could not start: cannot open the log"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        auto_buf struct buf words = BUF_INIT;
        assert_int_equal(ending_state(&cases[i].ending), cases[i].becomes);
        ending_text(&cases[i].ending, &words);
        assert_string_equal(buf_str(&words), cases[i].words);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_percent_rounds_half_away),
        cmocka_unit_test(test_oom_next_is_exact),
        cmocka_unit_test(test_averages_and_peaks),
        cmocka_unit_test(test_an_end_without_a_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
