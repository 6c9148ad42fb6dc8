/* Finds an attempt's processes after the supervisor, their ancestor, has died: by cgroup, by
 * the mark in their environment, by the command's session, and by descent from any of these.
 * The daemon runs this, with the attempt's lock taken, before it settles an attempt that has
 * no exit record, so that a rerun does not overlap with leftovers.
 *
 * A process belongs to the attempt if it has the mark; or is the command itself (its pid,
 * started no later than the mark in the lock file was written, in this boot); or its session
 * leader is one of these; or that leader is gone and another process of the session has the
 * mark; or its parent is one of these. A living leader from elsewhere proves nothing, because
 * a user may have loaded a job's environment into a shell. Nor does a mark in a process of
 * another user, because any user can learn the form of marks; in a container it counts if only
 * the user or root can have made that (proc_speaks_for). A process in the middle of an exec
 * has no readable environment, and is examined again. */
#include "shepherd/attempt/sweep.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "shepherd/attempt/attempt.h"
#include "shepherd/attempt/kill.h"
#include "shepherd/begin/container_removal.h"
#include "shepherd/common/attempt_spec.h"
#include "sys/exitrec.h"
#include "sys/procs.h"

#define GIVE_UP_US INT64_C(20000000)
#define PAUSE_NS   5000000
/* A process that looks like that for longer is not in an exec. */
#define EXEC_WAIT_US INT64_C(1000000)

struct sweep {
    struct spec spec;
    int64_t since_us;    /* boot clock: start of the sweep */
    bool unsettled;      /* the last look found a process in an exec */
    bool blind;          /* the last look could not list processes */
    int32_t command_pid; /* 0: never started, or not of this boot */
    uint64_t command_ticks;
};

static bool
is_of_user(const struct sweep *s, pid_t pid)
{
    return s->spec.uid < 0 || proc_speaks_for(pid, (uid_t)s->spec.uid);
}

static bool
bears_mark(struct sweep *s, pid_t pid)
{
    char mark[256];
    if (proc_mark(pid, mark, sizeof mark))
        return strcmp(mark, s->spec.mark) == 0 && is_of_user(s, pid);
    s->unsettled |= proc_is_in_exec(pid) && is_of_user(s, pid);
    return false;
}

static bool
is_command(const struct sweep *s, const struct proc *p)
{
    return s->command_pid > 0 && p->pid == s->command_pid && p->start_ticks <= s->command_ticks;
}

static ssize_t
index_of(const struct procs *all, pid_t pid)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].pid == pid)
            return (ssize_t)i;
    return -1;
}

/* True if process i belongs to the attempt by its session or its parent. */
static bool
belongs_by_kin(const struct procs *all, const bool *ours, size_t i)
{
    const struct proc *p = &all->v[i];
    ssize_t parent = index_of(all, p->ppid);
    if (parent >= 0 && ours[parent])
        return true;
    ssize_t leader = index_of(all, p->sid);
    if (leader >= 0 && all->v[leader].state != 'Z')
        return ours[leader];
    for (size_t k = 0; p->sid > 0 && k < all->n; k++)
        if (ours[k] && all->v[k].sid == p->sid)
            return true;
    return false;
}

/* Adds related processes until none is missing. */
static void
close_over_kin(const struct procs *all, bool *ours)
{
    bool more = true;
    while (more) {
        more = false;
        for (size_t i = 0; i < all->n; i++) {
            if (ours[i] || all->v[i].pid == 1 || all->v[i].pid == getpid())
                continue;
            ours[i] = belongs_by_kin(all, ours, i);
            more |= ours[i];
        }
    }
}

static int
find_left(void *ctx, struct procs *out)
{
    struct sweep *s = ctx;
    s->unsettled = false;
    s->blind = (out->n = 0, procs_read_all(out) < 0);
    if (s->blind)
        return -1;
    auto_free bool *ours = xcalloc(out->n + 1, sizeof *ours);
    for (size_t i = 0; i < out->n; i++)
        if (out->v[i].pid != 1 && out->v[i].pid != getpid())
            ours[i] = is_command(s, &out->v[i]) || bears_mark(s, out->v[i].pid);
    close_over_kin(out, ours);
    size_t kept = 0;
    for (size_t i = 0; i < out->n; i++)
        if (ours[i] && out->v[i].state != 'Z' && out->v[i].state != 'X')
            out->v[kept++] = out->v[i];
    out->n = kept;
    return 0;
}

/* Waits until the supervisor is gone; then no other process acts on this attempt. */
static int
take_lock(struct err *e)
{
    while (flock(FD_LOCK, LOCK_EX) < 0)
        if (errno != EINTR)
            return err_errno(e, ERR_FAILED, errno, "cannot take the attempt's lock");
    return 0;
}

static int
read_attempt(struct sweep *s, struct err *e)
{
    int64_t boot_us = -1;
    if (spec_read(FD_LOCK, &s->spec, e) < 0)
        return -1;
    int started = exitrec_started_at(FD_FOLDER, &s->command_pid, &boot_us, e);
    if (started <= 0 || boot_us < 0)
        s->command_pid = 0; /* a damaged mark: processes are still found by their environment */
    else
        s->command_ticks = procs_ticks_of_boot_us(boot_us);
    return 0;
}

/* One pass over groups and processes; true if nothing is left. */
static bool
sweep_pass(struct sweep *s, const struct groups *g, unsigned pass)
{
    if (groups_are_populated(g))
        groups_kill(g);
    size_t found = kill_pass(find_left, s, pass);
    bool wait = s->unsettled && clock_boot_us() - s->since_us < EXEC_WAIT_US;
    return found == 0 && !wait && !groups_are_populated(g);
}

/* Waits for the removal to end, but not past until_us; later passes end what it leaves
 * running. */
static void
remove_container(const struct sweep *s, const struct groups *groups, int64_t until_us)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    pid_t pid = container_start_removal(&s->spec, groups);
    while (pid > 0 && !proc_has_ended(pid) && clock_boot_us() < until_us)
        nanosleep(&pause, NULL);
    if (pid > 0) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, WNOHANG); /* left to later passes if it does not end */
    }
}

/* Repeats passes until one finds nothing; false: some processes do not end. */
static bool
sweep_until(struct sweep *s, const struct groups *groups, int64_t until_us)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (unsigned pass = 0; !sweep_pass(s, groups, pass); pass++) {
        if (clock_boot_us() > until_us)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

/* 0: nothing is left. 1: leftovers do not end. -1: not known. */
static int
sweep_all(struct sweep *s)
{
    s->since_us = clock_boot_us();
    int64_t until_us = s->since_us + GIVE_UP_US;
    auto_groups struct groups groups;
    groups_open(&s->spec.groups, &groups);
    bool ended = sweep_until(s, &groups, until_us);
    remove_container(s, &groups, until_us);
    /* However long the first passes took, leftovers of the removal get time to end. */
    if (!ended || !sweep_until(s, &groups, clock_boot_us() + GIVE_UP_US)) {
        fprintf(stderr, "berth-shepherd: job=%" PRIu32 " some of its processes do not end\n",
                s->spec.job);
        return s->blind ? -1 : 1;
    }
    groups_remove(&s->spec.groups);
    if (s->spec.attach)
        (void)unlink(s->spec.attach);
    return 0;
}

int
sweep_run(void)
{
    struct sweep s = {0};
    struct err e;
    int rc = 1;
    /* A lock file that does not say whose attempt it is was never handed over, so the attempt
     * never ran. Only a file that cannot be read now means that there may be something to
     * end. */
    if (take_lock(&e) < 0 || read_attempt(&s, &e) < 0) {
        fprintf(stderr, "berth-shepherd: %s\n", e.text);
        rc = e.errnum ? -1 : 1;
    } else {
        rc = sweep_all(&s);
    }
    static const char swept[] = "{\"event\":\"swept\"}\n";
    if (rc >= 0)
        (void)send(FD_CTL, swept, sizeof swept - 1, MSG_NOSIGNAL);
    spec_free(&s.spec);
    return rc ? 1 : 0;
}
