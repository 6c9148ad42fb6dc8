/* See libc.h. close_range is missing before kernel 5.9, its CLOEXEC flag before 5.11 and from
 * headers of that time: then the process's descriptor list in /proc is walked. */
#include "base/libc.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define CLOEXEC_FLAG (1U << 2) /* CLOSE_RANGE_CLOEXEC */

static const char *const signal_names[] = {
    [SIGHUP] = "HUP",   [SIGINT] = "INT",       [SIGQUIT] = "QUIT", [SIGILL] = "ILL",
    [SIGTRAP] = "TRAP", [SIGABRT] = "ABRT",     [SIGBUS] = "BUS",   [SIGFPE] = "FPE",
    [SIGKILL] = "KILL", [SIGUSR1] = "USR1",     [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
    [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM",     [SIGTERM] = "TERM", [SIGSTKFLT] = "STKFLT",
    [SIGCHLD] = "CHLD", [SIGCONT] = "CONT",     [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP",
    [SIGTTIN] = "TTIN", [SIGTTOU] = "TTOU",     [SIGURG] = "URG",   [SIGXCPU] = "XCPU",
    [SIGXFSZ] = "XFSZ", [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH",
    [SIGPOLL] = "POLL", [SIGPWR] = "PWR",       [SIGSYS] = "SYS",
};

const char *
libc_signal_name(int number)
{
    if (number < 0 || (size_t)number >= sizeof signal_names / sizeof signal_names[0])
        return NULL;
    return signal_names[number];
}

static void
walk_from(int first, void (*change)(int fd))
{
    auto_dir DIR *dir = opendir("/proc/self/fd");

    if (!dir)
        return;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        int fd = entry->d_name[0] == '.' ? -1 : (int)strtol(entry->d_name, NULL, 10);

        if (fd >= first && fd != dirfd(dir))
            change(fd);
    }
}

static void
close_one(int fd)
{
    close(fd);
}

static void
cloexec_one(int fd)
{
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void
libc_close_from(int first)
{
    if (syscall(__NR_close_range, (unsigned)first, ~0U, 0U) < 0)
        walk_from(first, close_one);
}

void
libc_cloexec_from(int first)
{
    if (syscall(__NR_close_range, (unsigned)first, ~0U, CLOEXEC_FLAG) < 0)
        walk_from(first, cloexec_one);
}
