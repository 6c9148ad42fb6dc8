/* A child process with a pipe, a bound on its words and on its time. A child that the driver
 * holds cannot be killed; nothing waits for it. */
#include "gpu/smi_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"

#define OUTPUT_MAX (4 * 1024 * 1024)

/* Its output goes to the pipe, its complaints nowhere (the words that matter are on its
 * standard output), and it dies of a broken pipe although we do not. */
static int
spawn(char *const *argv, int out_fd, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t defaults;

    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out_fd, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigdefault(&attr, &defaults);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
    int failed = posix_spawnp(pid, argv[0], &files, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

/* Until the end of the output; false when time or space ran out, with why in e. */
static bool
read_output(int fd, const char *name, int limit_ms, struct buf *out, struct err *e)
{
    int64_t deadline_us = clock_boot_us() + (int64_t)limit_ms * 1000;

    for (;;) {
        char bytes[16384];
        int64_t left_us = deadline_us - clock_boot_us();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = left_us > 0 ? poll(&p, 1, (int)(left_us / 1000 + 1)) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0) {
            err_set(e, ERR_FAILED, "%s has not answered for %d s; the driver may hang", name,
                    limit_ms / 1000);
            return false;
        }
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return true;
        if (out->len + (size_t)n > OUTPUT_MAX) {
            err_set(e, ERR_FAILED, "%s prints more than 4 MiB", name);
            return false;
        }
        buf_add(out, bytes, (size_t)n);
    }
}

int
smi_run(char *const *argv, int limit_ms, struct buf *out, int *status, struct err *e)
{
    int ends[2], how;
    pid_t pid;

    buf_clear(out);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make a pipe for %s", argv[0]);
    auto_close int in = ends[0];
    int failed = spawn(argv, ends[1], &pid);
    close(ends[1]);
    if (failed)
        return err_errno(e, ERR_FAILED, failed, "cannot run %s", argv[0]);
    if (!read_output(in, argv[0], limit_ms, out, e)) {
        kill(pid, SIGKILL);
        waitpid(pid, &how, WNOHANG);
        return -1;
    }
    while (waitpid(pid, &how, 0) < 0) {
        if (errno != EINTR)
            return err_errno(e, ERR_FAILED, errno, "cannot wait for %s", argv[0]);
    }
    *status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
    return 0;
}
