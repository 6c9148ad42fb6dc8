/* Passes over the processes that are meant. A list of processes is old the moment it is read,
 * so nothing here is one-shot: callers repeat until waitpid, or an empty list, says that it is
 * done. Called by stop.c, attempt.c and deliver.c for what their own process started, by
 * sweep.c and children.c for what a dead shepherd left. */
#include "shepherd/attempt/kill.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "sys/procs.h"

#define PASSES_BEFORE_STOPPING 3
#define STOP_ROUNDS_MAX        64

static bool
is_in(const struct procs *ps, pid_t pid)
{
    for (size_t i = 0; i < ps->n; i++)
        if (ps->v[i].pid == pid)
            return true;
    return false;
}

/* Takes the process and its descendants out of the list. */
static void
leave_out(pid_t spared, struct procs *ps)
{
    auto_procs struct procs under = PROCS_INIT;
    size_t n = 0;
    (void)procs_read_descendants(spared, &under);
    for (size_t i = 0; i < ps->n; i++)
        if (ps->v[i].pid != spared && !is_in(&under, ps->v[i].pid))
            ps->v[n++] = ps->v[i];
    ps->n = n;
}

int
kill_find_own(void *ctx, struct procs *out)
{
    const pid_t *spared = ctx;
    if (procs_read_descendants(getpid(), out) < 0)
        return -1;
    if (spared && *spared > 0)
        leave_out(*spared, out);
    return 0;
}

static void
signal_each(const struct procs *ps, int sig)
{
    for (size_t i = 0; i < ps->n; i++)
        (void)proc_signal(&ps->v[i], sig);
}

size_t
kill_signal_all(kill_find find, void *ctx, int sig)
{
    auto_procs struct procs found = PROCS_INIT;
    if (find(ctx, &found) < 0)
        return 0;
    signal_each(&found, sig);
    signal_each(&found, SIGCONT);
    return found.n;
}

static bool
is_notice(int sig)
{
    return sig == SIGUSR1 || sig == SIGUSR2 || sig >= 34; /* below: the C library's own */
}

void
kill_notify(pid_t command, int sig, pid_t spared)
{
    auto_procs struct procs found = PROCS_INIT;
    if (kill_find_own(&spared, &found) < 0)
        return;
    bool spare = is_notice(sig) && found.n > 1 && !proc_catches(command, sig);
    for (size_t i = 0; i < found.n; i++)
        if (!spare || found.v[i].pid != command)
            (void)proc_signal(&found.v[i], sig);
}

static void
drop_stopped(struct procs *ps)
{
    size_t n = 0;
    for (size_t i = 0; i < ps->n; i++)
        if (ps->v[i].state != 'T')
            ps->v[n++] = ps->v[i];
    ps->n = n;
}

static bool
are_same(const struct procs *a, const struct procs *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = a->v[i].pid == b->v[i].pid && a->v[i].start_ticks == b->v[i].start_ticks;
    return same;
}

/* STOP to everything until a round finds nothing that runs, or only what it has found before:
 * with a STOP on its way nothing forks, and one that sleeps in the kernel never shows as
 * stopped. */
static void
stop_all(kill_find find, void *ctx)
{
    auto_procs struct procs found = PROCS_INIT, before = PROCS_INIT;
    for (int round = 0; round < STOP_ROUNDS_MAX; round++) {
        if (find(ctx, &found) < 0)
            return;
        drop_stopped(&found);
        if (found.n == 0 || are_same(&found, &before))
            return;
        signal_each(&found, SIGSTOP);
        struct procs swapped = before;
        before = found;
        found = swapped;
    }
}

size_t
kill_pass(kill_find find, void *ctx, unsigned pass)
{
    auto_procs struct procs found = PROCS_INIT;
    if (pass >= PASSES_BEFORE_STOPPING)
        stop_all(find, ctx);
    if (find(ctx, &found) < 0)
        return 1; /* not known: not done */
    signal_each(&found, SIGKILL);
    return found.n;
}
