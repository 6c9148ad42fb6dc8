/* Signals delivered through a descriptor: blocked, complete, and none before they are sent. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sys/signals.h"

static void
test_what_comes_is_told(void **state)
{
    struct signalfd_siginfo info;
    struct err e = {0};
    auto_close int fd = signals_to_fd((const int[]){SIGUSR1, SIGTERM, 0}, &e);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(read(fd, &info, sizeof info), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(raise(SIGTERM), 0);
    assert_int_equal(read(fd, &info, sizeof info), sizeof info);
    assert_int_equal(info.ssi_signo, SIGTERM);
    assert_int_equal(read(fd, &info, sizeof info), -1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_comes_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
