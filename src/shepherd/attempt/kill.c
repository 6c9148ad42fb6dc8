/* Passes over the target processes. A process list is stale as soon as it is read, so nothing
 * here is one-shot: callers repeat until waitpid or an empty list says that it is done. Called
 * by stop.c, attempt.c and deliver.c for their own descendants, and by sweep.c and children.c
 * for what a dead supervisor left. */
#include "shepherd/attempt/kill.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sys/procs.h"

#define PASSES_BEFORE_STOPPING 3
#define STOP_ROUNDS_MAX        64
/* Pids inside a container: berth-init, and its first child. */
#define FIRST_INSIDE   1
#define COMMAND_INSIDE 2

static bool
is_in(const struct procs *ps, pid_t pid)
{
    for (size_t i = 0; i < ps->n; i++)
        if (ps->v[i].pid == pid)
            return true;
    return false;
}

/* Removes the process and its descendants from the list. */
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

/* Keeps only processes in containers, if there are any. Drops a container's first process if
 * it has others, because it forwards signals and they would receive them twice. */
static void
keep_contained(struct procs *ps)
{
    size_t n_first = 0, n_others = 0, n = 0;
    auto_free pid_t *inside = xcalloc(ps->n + 1, sizeof *inside);
    for (size_t i = 0; i < ps->n; i++) {
        inside[i] = proc_pid_inside(ps->v[i].pid);
        n_first += inside[i] == FIRST_INSIDE;
        n_others += inside[i] > FIRST_INSIDE;
    }
    if (n_first + n_others == 0)
        return;
    for (size_t i = 0; i < ps->n; i++)
        if (inside[i] > FIRST_INSIDE || (inside[i] == FIRST_INSIDE && n_others == 0))
            ps->v[n++] = ps->v[i];
    ps->n = n;
}

int
kill_find_own(void *ctx, struct procs *out)
{
    const struct kill_own *own = ctx;
    if (procs_read_descendants(getpid(), out) < 0)
        return -1;
    if (own && own->spared > 0)
        leave_out(own->spared, out);
    if (own && own->in_container)
        keep_contained(out);
    return 0;
}

static void
signal_each(const struct procs *ps, int sig)
{
    for (size_t i = 0; i < ps->n; i++)
        (void)proc_signal(&ps->v[i], sig);
}

int
kill_find_orphans(void *ctx, struct procs *out)
{
    const struct kill_known *known = ctx;
    auto_procs struct procs all = PROCS_INIT;
    out->n = 0;
    if (procs_read_children(getpid(), &all) < 0)
        return -1;
    for (size_t i = 0; i < all.n; i++) {
        if (known->is_known(known->whose, all.v[i].pid))
            continue;
        if (all.v[i].state != 'Z')
            procs_add(out, &all.v[i]);
        auto_procs struct procs below = PROCS_INIT;
        if (procs_read_descendants(all.v[i].pid, &below) < 0)
            return -1;
        for (size_t k = 0; k < below.n; k++)
            procs_add(out, &below.v[k]);
    }
    return 0;
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
    return sig == SIGUSR1 || sig == SIGUSR2 || sig >= 34; /* 32 and 33 are libc's */
}

/* In a container, the command is the process that berth-init started. */
static pid_t
command_among(const struct procs *found, pid_t command, const struct kill_own *own)
{
    for (size_t i = 0; own->in_container && i < found->n; i++)
        if (proc_pid_inside(found->v[i].pid) == COMMAND_INSIDE)
            return found->v[i].pid;
    return command;
}

void
kill_command(pid_t command, int sig, const struct kill_own *own)
{
    auto_procs struct procs found = PROCS_INIT;
    struct kill_own meant = *own;
    if (!own->in_container) {
        (void)kill(command, sig);
        return;
    }
    if (kill_find_own(&meant, &found) < 0)
        return;
    /* It may not be our child, so its pid may have been reused. */
    pid_t pid = command_among(&found, command, own);
    for (size_t i = 0; i < found.n; i++) {
        if (found.v[i].pid == pid)
            (void)proc_signal(&found.v[i], sig);
    }
}

void
kill_notify(pid_t command, int sig, const struct kill_own *own)
{
    auto_procs struct procs found = PROCS_INIT;
    struct kill_own meant = *own;
    if (kill_find_own(&meant, &found) < 0)
        return;
    command = command_among(&found, command, own);
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

/* Stops everything until a round finds no running process, or only those of the previous
 * round: a process with a pending STOP does not fork, and one in uninterruptible sleep never
 * shows as stopped. */
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
        return 1; /* not known, so not done */
    signal_each(&found, SIGKILL);
    return found.n;
}
