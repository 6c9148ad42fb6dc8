/* See mps_left.h. Called by mps_keeper.c for its own control daemon and for what a killed
 * keeper left. Finds processes by their group, by the mark in their environment, by descent
 * from the control daemon, and as children that the keeper inherited. A mark in another user's
 * process is ignored, because any user can set it. */
#include "shepherd/mps/mps_left.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "shepherd/attempt/kill.h"
#include "sys/procs.h"

#define MARK_BYTES 4096

static bool
is_meant(const struct mps_left *left, const struct proc *p)
{
    char mark[MARK_BYTES];
    if (p->ppid == getpid())
        return true;
    if (left->pid > 0 && p->pid == left->pid && p->start_ticks == left->ticks)
        return true;
    return proc_mark(p->pid, mark, sizeof mark) && strcmp(mark, left->mark) == 0 &&
           proc_speaks_for(p->pid, (uid_t)left->uid);
}

static bool
has_parent_among(const struct procs *all, const bool *meant, pid_t ppid)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].pid == ppid)
            return meant[i];
    return false;
}

static void
add_descendants(const struct procs *all, bool *meant)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < all->n; i++) {
            if (meant[i] || all->v[i].pid == getpid() ||
                !has_parent_among(all, meant, all->v[i].ppid))
                continue;
            meant[i] = more = true;
        }
    }
}

/* Zombies count for kinship, but need no signal. */
static int
find(void *ctx, struct procs *out)
{
    const struct mps_left *left = ctx;
    out->n = 0;
    if (procs_read_all(out) < 0)
        return -1;
    auto_free bool *meant = xcalloc(out->n + 1, sizeof *meant);
    for (size_t i = 0; i < out->n; i++)
        meant[i] = out->v[i].pid > 1 && out->v[i].pid != getpid() && is_meant(left, &out->v[i]);
    add_descendants(out, meant);
    size_t kept = 0;
    for (size_t i = 0; i < out->n; i++)
        if (meant[i] && out->v[i].state != 'Z' && out->v[i].state != 'X')
            out->v[kept++] = out->v[i];
    out->n = kept;
    return 0;
}

bool
mps_left_kill(const struct mps_left *left, unsigned pass)
{
    struct mps_left meant = *left;
    if (groups_are_populated(left->groups))
        groups_kill(left->groups);
    return kill_pass(find, &meant, pass) == 0 && !groups_are_populated(left->groups);
}
