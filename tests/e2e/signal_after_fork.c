/* The signal that comes at the worst moment, as far as a shell can tell that this is preloaded
 * into: a process that a shell with a trap for USR1 has forked gets USR2 right behind each fork
 * of its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

static bool is_child;

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
    pid_t pid = real();

    if (pid == 0)
        is_child = of_trapper;
    else if (is_child)
        kill(getpid(), SIGUSR2);
    return pid;
}
