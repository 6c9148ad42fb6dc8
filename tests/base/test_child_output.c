/* Reading a program's output: its text, its exit status, and the limits on both. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/child_output.h"
#include "base/err.h"

static int
run(const char *script, bool with_errors, int patience_ms, struct buf *out, int *status,
    struct err *e)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    const struct child child = {
        .argv = argv, .patience_ms = patience_ms, .with_errors = with_errors};

    return child_output(&child, out, status, e);
}

static void
gives_words_and_status(void **state)
{
    auto_buf struct buf out = BUF_INIT;
    int status = -1;

    (void)state;
    assert_int_equal(run("echo one; echo two >&2; exit 3", false, 0, &out, &status, NULL), 0);
    assert_string_equal(buf_str(&out), "one\n");
    assert_int_equal(status, 3);
    assert_int_equal(run("echo one; echo two >&2", true, 0, &out, NULL, NULL), 0);
    assert_string_equal(buf_str(&out), "one\ntwo\n");
    assert_int_equal(run("kill -9 $$", false, 0, &out, &status, NULL), 0);
    assert_string_equal(buf_str(&out), "");
    assert_int_equal(status, 128 + 9);
}

static void
says_what_cannot_be_run(void **state)
{
    const char *const argv[] = {"/nowhere/program", NULL};
    auto_buf struct buf out = BUF_INIT;
    struct err e;

    (void)state;
    assert_int_equal(child_output(&(struct child){.argv = argv}, &out, NULL, &e), -1);
    assert_int_equal(e.errnum, ENOENT);
    assert_non_null(strstr(e.text, "cannot run /nowhere/program"));
}

static void
waits_no_longer_than_it_may(void **state)
{
    auto_buf struct buf out = BUF_INIT;
    struct err e;

    (void)state;
    assert_int_equal(run("echo first; exec sleep 1000", false, 300, &out, NULL, &e), -1);
    assert_int_equal(e.code, ERR_TIMED_OUT);
}

static void
takes_no_more_than_it_may(void **state)
{
    auto_buf struct buf out = BUF_INIT;
    struct err e;

    (void)state;
    assert_int_equal(run("exec yes", false, 0, &out, NULL, &e), -1);
    assert_int_equal(e.code, ERR_FAILED);
    assert_non_null(strstr(e.text, "more than 4 MiB"));
}

/* Whoever started this program may have SIGCHLD ignored: then no status is kept. */
static void
gives_words_without_a_status(void **state)
{
    auto_buf struct buf out = BUF_INIT;
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    int status = -1;

    (void)state;
    assert_int_equal(run("echo one", false, 0, &out, &status, NULL), 0);
    signal(SIGCHLD, before);
    assert_string_equal(buf_str(&out), "one\n");
    assert_int_equal(status, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_words_and_status),
        cmocka_unit_test(says_what_cannot_be_run),
        cmocka_unit_test(waits_no_longer_than_it_may),
        cmocka_unit_test(takes_no_more_than_it_may),
        cmocka_unit_test(gives_words_without_a_status),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
