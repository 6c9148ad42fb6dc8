/* Replacements for functions that older C libraries lack. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/libc.h"

static void
names_signals_as_libc_does(void **state)
{
    (void)state;
#if __GLIBC_PREREQ(2, 32)
    for (int n = -1; n < 70; n++) {
        const char *theirs = n < 0 ? NULL : sigabbrev_np(n), *ours = libc_signal_name(n);

        assert_int_equal(!theirs, !ours);
        if (theirs)
            assert_string_equal(theirs, ours);
    }
#else
    assert_string_equal(libc_signal_name(SIGTERM), "TERM");
    assert_null(libc_signal_name(0));
    assert_null(libc_signal_name(SIGRTMIN));
#endif
}

/* Behaves like a kernel without close_range. */
static void
refuse_close_range(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_close_range, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &program))
        _exit(77);
    if (syscall(__NR_close_range, ~0U, ~0U, 0U) == 0 || errno != ENOSYS)
        _exit(78);
}

/* Checks descriptors 40, 41 and 90 before and after, in a process of its own. */
static void
descriptors(bool old_kernel)
{
    static const int fds[] = {40, 41, 90};
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid > 0) {
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        return;
    }
    if (old_kernel)
        refuse_close_range();
    for (int i = 0; i < 3; i++)
        if (dup2(2, fds[i]) < 0)
            _exit(1);
    libc_cloexec_from(41);
    for (int i = 0; i < 3; i++)
        if (fcntl(fds[i], F_GETFD) != (fds[i] >= 41 ? FD_CLOEXEC : 0))
            _exit(2);
    libc_close_from(41);
    for (int i = 0; i < 3; i++)
        if ((fcntl(fds[i], F_GETFD) >= 0) != (fds[i] < 41))
            _exit(3);
    _exit(0);
}

static void
changes_descriptors(void **state)
{
    (void)state;
    descriptors(false);
}

static void
changes_descriptors_on_old_kernels(void **state)
{
    (void)state;
    descriptors(true);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_signals_as_libc_does),
        cmocka_unit_test(changes_descriptors),
        cmocka_unit_test(changes_descriptors_on_old_kernels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
