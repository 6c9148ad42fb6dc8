/* LD_PRELOAD library for a shell, a signal at the worst moment: a process forked by a shell
 * that traps USR1 receives USR2 right after each fork of its own. With SIGNAL_SECOND=1 in the
 * environment it is the second process forked by such a shell, before its first step. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

static bool is_child;
static int n_forked;

static bool
has_trap(void)
{
    struct sigaction now;

    return sigaction(SIGUSR1, NULL, &now) == 0 && now.sa_handler != SIG_DFL &&
           now.sa_handler != SIG_IGN;
}

pid_t
fork(void)
{
    pid_t (*real)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
    bool of_trapper = has_trap();
    bool second = getenv("SIGNAL_SECOND") != NULL;
    pid_t pid;

    n_forked += of_trapper;
    pid = real();
    if (pid == 0 && second && of_trapper && n_forked == 2)
        kill(getpid(), SIGUSR2);
    else if (pid == 0)
        is_child = of_trapper && !second;
    else if (is_child)
        kill(getpid(), SIGUSR2);
    return pid;
}
