/* See child_output.h. A child that a driver holds cannot be killed, so nothing waits for
 * it. */
#include "base/child_output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"

#define OUTPUT_MAX (4 * 1024 * 1024)

/* The child gets the default SIGPIPE action and an empty signal mask, whatever ours are. */
static int
spawn(const struct child *c, int out_fd, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t defaults, none;

    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out_fd, STDOUT_FILENO);
    if (c->with_errors)
        posix_spawn_file_actions_adddup2(&files, out_fd, STDERR_FILENO);
    else
        posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &defaults);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int failed = posix_spawnp(pid, c->argv[0], &files, &attr, (char *const *)(uintptr_t)c->argv,
                              environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

/* Time left for poll; 0: the deadline has passed. */
static int
left_ms(const struct child *c, int64_t deadline_us)
{
    int64_t left_us = deadline_us - clock_boot_us();

    return c->patience_ms == 0 ? -1 : left_us > 0 ? (int)(left_us / 1000 + 1) : 0;
}

/* Reads to the end of the output. -1: time or space ran out. */
static int
read_output(const struct child *c, int fd, struct buf *out, struct err *e)
{
    int64_t deadline_us = clock_boot_us() + c->patience_ms * INT64_C(1000);

    for (;;) {
        char bytes[16384];
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, left_ms(c, deadline_us));
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return err_set(e, ERR_TIMED_OUT, "%s has not answered for %d s", c->argv[0],
                           c->patience_ms / 1000);
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        if (out->len + (size_t)n > OUTPUT_MAX)
            return err_set(e, ERR_FAILED, "%s prints more than 4 MiB", c->argv[0]);
        buf_add(out, bytes, (size_t)n);
    }
}

int
child_output(const struct child *c, struct buf *out, int *status, struct err *e)
{
    int ends[2], how;
    pid_t pid;

    buf_clear(out);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make a pipe for %s", c->argv[0]);
    auto_close int in = ends[0];
    int failed = spawn(c, ends[1], &pid);
    close(ends[1]);
    if (failed)
        return err_errno(e, ERR_FAILED, failed, "cannot run %s", c->argv[0]);
    if (read_output(c, in, out, e) < 0) {
        kill(pid, SIGKILL);
        waitpid(pid, &how, WNOHANG);
        return -1;
    }
    while (waitpid(pid, &how, 0) < 0) {
        if (errno == EINTR)
            continue;
        if (errno != ECHILD)
            return err_errno(e, ERR_FAILED, errno, "cannot wait for %s", c->argv[0]);
        how = 0; /* SIGCHLD was ignored when we were started: the status is not kept */
        break;
    }
    if (status)
        *status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
    return 0;
}
