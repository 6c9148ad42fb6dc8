/* Signals as a descriptor; see signals.h. */
#include "sys/signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/err.h"

void
signals_default(void)
{
    struct sigaction dfl = {.sa_handler = SIG_DFL};

    for (int sig = 1; sig < NSIG; sig++)
        if (sig != SIGKILL && sig != SIGSTOP)
            sigaction(sig, &dfl, NULL);
}

bool
signals_has_systemd(void)
{
    return access("/run/systemd/system", F_OK) == 0; /* as sd_booted(3) */
}

bool
signals_is_systemd(uint32_t pid)
{
    return pid == 1 && signals_has_systemd();
}

int
signals_to_fd(const int *numbers, struct err *e)
{
    struct sigaction now;
    sigset_t set;
    int fd;

    sigemptyset(&set);
    for (; *numbers; numbers++) {
        /* A blocked signal is queued even if it is ignored, which would defeat nohup. */
        if (*numbers == SIGHUP && sigaction(SIGHUP, NULL, &now) == 0 &&
            now.sa_handler == SIG_IGN)
            continue;
        sigaddset(&set, *numbers);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? err_errno(e, ERR_FAILED, errno, "cannot wait for signals") : fd;
}
