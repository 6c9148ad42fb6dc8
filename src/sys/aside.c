/* File access in a separate process: see aside.h. A file system that is frozen, or whose
 * server is gone, blocks every process that touches it, often beyond the reach of KILL. A
 * supervisor must not block like that, because it has processes to end. Called by stop.c and
 * log_tail.c.
 *
 * The process has no exit signal, so the waits for what is left of the job do not see it. When
 * its parent exits it becomes an ordinary child of the nursery. */
#include "sys/aside.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/libc.h"

#define FD_ABOVE 2

_Noreturn static void
run_child(int fd, int words, aside_fn fn, const void *ctx)
{
    fd = fcntl(fd, F_DUPFD, FD_ABOVE);
    words = fcntl(words, F_DUPFD, FD_ABOVE);
    if (fd >= 0 && words >= 0 && dup2(fd, ASIDE_FILE) >= 0 && dup2(words, ASIDE_WORDS) >= 0) {
        libc_close_from(FD_ABOVE);
        fn(ctx);
    }
    _exit(0);
}

/* Reads until the process closes its end of the pipe, the last descriptor it has open. */
static ssize_t
hear(int fd, int patience_ms, char *out, size_t size)
{
    int64_t until_us = clock_boot_us() + patience_ms * INT64_C(1000);
    size_t n = 0;
    for (;;) {
        char rest[512];
        int64_t left_us = until_us - clock_boot_us();
        if (left_us <= 0 || !file_await(fd, (int)(left_us / 1000) + 1)) {
            errno = ETIMEDOUT;
            return -1;
        }
        ssize_t got = n < size ? read(fd, out + n, size - n) : read(fd, rest, sizeof rest);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -1 : (ssize_t)n;
        n += (size_t)got;
    }
}

ssize_t
aside_run(int fd, aside_fn fn, const void *ctx, int patience_ms, char *out, size_t size)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    auto_close int ours = ends[0];
    auto_close int theirs = ends[1];
    pid_t pid = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0); /* no signal on exit */
    if (pid == 0)
        run_child(fd, theirs, fn, ctx);
    if (pid < 0)
        return -1;
    close(TAKE_FD(theirs));
    ssize_t n = hear(ours, patience_ms, out, size);
    while (n >= 0 && waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
        ;
    return n;
}
