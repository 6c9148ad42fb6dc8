/* Errors: text, codes, truncation; and how a broken invariant ends a process. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"

static void
sets_and_prefixes(void **state)
{
    struct err e;

    (void)state;
    assert_int_equal(err_set(&e, ERR_USAGE, "bad %s %d", "thing", 7), -1);
    assert_int_equal(e.code, ERR_USAGE);
    assert_string_equal(e.text, "bad thing 7");
    assert_int_equal(err_prefix(&e, "in %s", "file"), -1);
    assert_int_equal(e.code, ERR_USAGE);
    assert_string_equal(e.text, "in file: bad thing 7");
    assert_int_equal(err_set(NULL, ERR_USAGE, "nobody asks"), -1);
    assert_int_equal(err_prefix(NULL, "nobody"), -1);
    assert_int_equal(err_errno(NULL, ERR_FAILED, ENOENT, "nobody"), -1);
}

static void
errno_finds_its_code(void **state)
{
    static const struct {
        enum err_code given;
        int number;
        enum err_code code;
    } cases[] = {
        {ERR_FAILED, ENOENT, ERR_FAILED},       {ERR_FAILED, ENOSPC, ERR_NO_SPACE},
        {ERR_FAILED, EDQUOT, ERR_NO_SPACE},     {ERR_FAILED, EACCES, ERR_PERMISSION},
        {ERR_FAILED, EPERM, ERR_PERMISSION},    {ERR_UNREACHABLE, EACCES, ERR_UNREACHABLE},
        {ERR_TIMED_OUT, ENOSPC, ERR_TIMED_OUT},
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        err_errno(&e, cases[i].given, cases[i].number, "cannot open %s", "x");
        assert_int_equal(e.code, cases[i].code);
        assert_memory_equal(e.text, "cannot open x: ", 15);
        assert_string_equal(e.text + 15, strerror(cases[i].number));
    }
}

/* n filler bytes followed by the given characters stay valid UTF-8 wherever the text is
 * truncated. */
static void
cuts_between_characters(void **state)
{
    static const char *const characters[] = {"x", "\xc3\xa9", "\xe2\x82\xac",
                                             "\xf0\x9f\x98\x80"};
    struct err e;

    (void)state;
    for (size_t c = 0; c < 4; c++) {
        for (size_t shift = 0; shift < 5; shift++) {
            char text[2048] = "";
            memset(text, 'a', shift);
            for (size_t at = shift; at + 4 < sizeof text; at += strlen(characters[c]))
                memcpy(text + at, characters[c], strlen(characters[c]) + 1);
            err_set(&e, ERR_FAILED, "%s", text);
            size_t n = strlen(e.text);
            assert_true(text_is_utf8(e.text, n, NULL));
            assert_true(n < sizeof e.text && n > sizeof e.text - 5);
            err_prefix(&e, "%s", "front");
            assert_true(text_is_utf8(e.text, strlen(e.text), NULL));
        }
    }
}

static void
codes_and_names_agree(void **state)
{
    static const int statuses[] = {0, 1, 2, 3, 4, 5, 6, 7, 1};

    (void)state;
    for (int code = ERR_NONE; code <= ERR_NO_SPACE; code++) {
        assert_int_equal(err_exit_status((enum err_code)code), statuses[code]);
        assert_int_equal(err_from_name(err_name((enum err_code)code)), code);
    }
    assert_int_equal(err_from_name("no such word"), ERR_FAILED);
    assert_int_equal(err_from_name(NULL), ERR_FAILED);
    assert_int_equal(err_exit_status((enum err_code)1000), 1);
}

static void
aborts_with_words(void **state)
{
    char said[256] = "";
    int pipe_fds[2], status;

    (void)state;
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(pipe_fds[1], STDERR_FILENO);
        err_abort("queue holds %d of %d", 3, 2);
    }
    close(pipe_fds[1]);
    assert_true(read(pipe_fds[0], said, sizeof said - 1) > 0);
    close(pipe_fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, "test_err.c:"));
}

static void
grows_by_doubling(void **state)
{
    (void)state;
    unsigned long cap = 0;
    int *list = NULL;
    for (unsigned long n = 0; n < 200; n++) {
        list = xgrow(list, n, &cap, sizeof *list);
        assert_true(n < cap);
        list[n] = (int)n;
    }
    assert_int_equal(cap, 256);
    assert_int_equal(list[199], 199);
    free(list);
}

static void
allocates_even_nothing(void **state)
{
    (void)state;
    auto_free char *a = xmalloc(0);
    auto_free char *b = xcalloc(0, 8);
    auto_free char *c = xrealloc(NULL, 0);
    auto_free char *d = xstrndup("abcdef", 3);
    auto_free char *f = xstrndup("ab", 30);
    auto_free char *g = xasprintf("%d-%s", 5, "x");
    assert_true(a && b && c);
    assert_string_equal(d, "abc");
    assert_string_equal(f, "ab");
    assert_string_equal(g, "5-x");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_by_doubling),      cmocka_unit_test(sets_and_prefixes),
        cmocka_unit_test(errno_finds_its_code),   cmocka_unit_test(cuts_between_characters),
        cmocka_unit_test(codes_and_names_agree),  cmocka_unit_test(aborts_with_words),
        cmocka_unit_test(allocates_even_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
