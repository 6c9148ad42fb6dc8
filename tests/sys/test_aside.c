/* Files that may never answer, read by a helper process. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sys/aside.h"

#define LONG_MS 300000 /* deadline of a step on a busy machine */

/* The file's first bytes, returned to the caller. */
static void
hand_on(const void *ctx)
{
    char words[16];
    ssize_t n = pread(ASIDE_FILE, words, sizeof words, *(const off_t *)ctx);
    if (n > 0 && write(ASIDE_WORDS, words, (size_t)n) != n)
        abort();
}

/* Reports its pid and never ends, like a process blocked on a lost file server. */
static void
hang(const void *ctx)
{
    char words[16];
    (void)ctx;
    int n = snprintf(words, sizeof words, "%d", (int)getpid());
    if (write(ASIDE_WORDS, words, (size_t)n) == n)
        for (;;)
            pause();
}

static void
say_much(const void *ctx)
{
    static char much[200000];
    (void)ctx;
    for (size_t at = 0; at < sizeof much;) {
        ssize_t n = write(ASIDE_WORDS, much + at, sizeof much - at);
        if (n <= 0)
            return;
        at += (size_t)n;
    }
}

static int
a_file(const char *words)
{
    char path[] = "/tmp/berth-aside.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(write(fd, words, strlen(words)), (ssize_t)strlen(words));
    return fd;
}

static void
test_what_it_says_is_heard_and_it_is_waited_for(void **state)
{
    char out[64];
    off_t from = 2;
    int fd = a_file("a few words");
    (void)state;
    assert_int_equal(aside_run(fd, hand_on, &from, LONG_MS, out, sizeof out), 9);
    assert_memory_equal(out, "few words", 9);
    errno = 0;
    assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    close(fd);
}

static void
test_more_than_there_is_room_for_keeps_nobody(void **state)
{
    char out[10];
    int fd = a_file("");
    (void)state;
    assert_int_equal(aside_run(fd, say_much, NULL, LONG_MS, out, sizeof out), 200000);
    assert_int_equal(aside_run(fd, say_much, NULL, LONG_MS, NULL, 0), 200000);
    close(fd);
}

static void
test_one_that_hangs_is_left_and_is_no_child_that_others_wait_for(void **state)
{
    char out[16] = "";
    int fd = a_file("");
    (void)state;
    do { /* until it got this far in time */
        assert_int_equal(aside_run(fd, hang, NULL, 200, out, sizeof out - 1), -1);
        assert_int_equal(errno, ETIMEDOUT);
    } while (!out[0]);
    errno = 0;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    pid_t pid = (pid_t)strtol(out, NULL, 10);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, __WCLONE), pid);
    close(fd);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_it_says_is_heard_and_it_is_waited_for),
        cmocka_unit_test(test_more_than_there_is_room_for_keeps_nobody),
        cmocka_unit_test(test_one_that_hangs_is_left_and_is_no_child_that_others_wait_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
