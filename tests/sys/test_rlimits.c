/* Resource limits as text: this process's own, written and parsed, and invalid texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "sys/rlimits.h"

static void
test_what_the_kernel_says(void **state)
{
    auto_buf struct buf text = BUF_INIT;
    struct rlimits all;
    struct err e;
    (void)state;
    assert_int_equal(rlimits_of(getpid(), &text), 0);
    assert_in_range(text.len, 100, RLIMITS_TEXT_MAX - 1);
    assert_int_equal(rlimits_parse(buf_str(&text), &all, &e), 0);
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        struct rlimit r;
        assert_int_equal(getrlimit((__rlimit_resource_t)i, &r), 0);
        assert_true(all.of[i].is_set);
        assert_int_equal(all.of[i].value.rlim_cur, r.rlim_cur);
        assert_int_equal(all.of[i].value.rlim_max, r.rlim_max);
    }
    buf_clear(&text);
    assert_int_equal(rlimits_of(-1, &text), -1);
}

static void
test_texts(void **state)
{
    static const struct {
        const char *text;
        int rc;
    } cases[] = {
        {"", 0},
        {"nofile=1024:-", 0},
        {"nofile=1024:4096 core=0:0", 0},
        {"nofile", -1},
        {"nofile=", -1},
        {"nofile=1", -1},
        {"nofile=1:", -1},
        {"nofile=2:1", -1}, /* soft above hard */
        {"nofile=-:1", -1},
        {"nofile=1:2:3", -1},
        {"nofile=-1:2", -1},
        {"nofiles=1:2", -1},
        {"=1:2", -1},
    };
    struct rlimits out;
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (rlimits_parse(cases[i].text, &out, &e) != cases[i].rc)
            fail_msg("'%s' is not %d", cases[i].text, cases[i].rc);
}

/* In a child, since a lowered limit cannot be raised again. */
static void
test_lower_ones_are_set_and_higher_ones_cut(void **state)
{
    struct rlimits want;
    struct err e;
    int status;
    (void)state;
    assert_int_equal(rlimits_parse("nofile=50:60 fsize=1000:2000 core=0:-", &want, &e), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit r;
        const struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        if (rlimits_apply(&want) || getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur != 50 ||
            r.rlim_max != 60)
            _exit(1);
        if (getrlimit(RLIMIT_FSIZE, &r) || r.rlim_cur == 1000)
            _exit(2); /* it still has to write */
        if (rlimits_apply_fsize(&want) || getrlimit(RLIMIT_FSIZE, &r) || r.rlim_cur != 1000)
            _exit(3);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_the_kernel_says),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_lower_ones_are_set_and_higher_ones_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
