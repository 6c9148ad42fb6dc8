/* Launching: see launch.h.
 *
 * Once the decision is committed a crash anywhere in here leaves an attempt that recovery
 * finds: without a folder, or with one whose lock is free and that has no `started` mark, it
 * never ran and starts again; with the lock held its shepherd lives. The lock is taken here and
 * handed over open, so there is no moment in which neither side holds it.
 *
 * A supervisor that is forked ahead of the commit has made nothing that could stay behind: it
 * has read what is to run and waits for one word. That is sent behind the commit, on a
 * connection whose other end is the daemon's alone. With that end closed, on purpose or by the
 * daemon's death, the word can never come and the supervisor leaves: recovery then finds what
 * it finds without one. */
#include "daemon/attempt/launch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/err.h"
#include "base/log.h"
#include "core/queue/endings.h"
#include "core/queue/job.h"
#include "daemon/attempt/job_mps.h"
#include "daemon/attempt/launch_spec.h"
#include "daemon/attempt/machine_trouble.h"
#include "daemon/attempt/nursery_link.h"
#include "daemon/attempt/supervisor_watch.h"
#include "daemon/common/daemon.h"
#include "daemon/state/job_facts.h"
#include "sys/nursery_packets.h"

#define AHEAD_MAX 16 /* descriptors are few, and more do not get ready during one commit */

/* One whose supervisor waits for the commit. */
struct ahead {
    uint32_t job;
    int32_t attempt;
    int ctl, lock, dir; /* -1: none */
};

struct launches {
    struct ahead v[AHEAD_MAX];
    size_t n;
};

struct launches *
launches_new(void)
{
    return xcalloc(1, sizeof(struct launches));
}

static void
ahead_close(struct ahead *a)
{
    /* The supervisor sees it at once, whatever else holds our end by then. */
    if (a->ctl >= 0)
        (void)shutdown(a->ctl, SHUT_RDWR);
    const int fds[] = {a->ctl, a->lock, a->dir};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    a->ctl = a->lock = a->dir = -1;
}

#define auto_ahead __attribute__((cleanup(ahead_close)))

void
launches_free(struct launches *l)
{
    for (size_t i = 0; l && i < l->n; i++)
        ahead_close(&l->v[i]);
    free(l);
}

/* The one of that attempt, which is the caller's from then on; else an empty one. */
static struct ahead
ahead_take(struct launches *l, const struct job *job)
{
    for (size_t i = 0; i < l->n; i++) {
        struct ahead a = l->v[i];
        if (a.job != job->id || a.attempt != job->run->number)
            continue;
        memmove(&l->v[i], &l->v[i + 1], (--l->n - i) * sizeof a);
        return a;
    }
    return (struct ahead){.ctl = -1, .lock = -1, .dir = -1};
}

static bool
ask_ahead(struct daemon *d, const struct job *job, struct ahead *a)
{
    struct err ignored;
    int pair[2];
    if (spec_fill_folder(d, job, &a->dir, &a->lock, &ignored) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return false;
    a->ctl = pair[0];
    auto_close int theirs = pair[1];
    crash_point("daemon-before-spawn");
    return nursery_ask_ahead(d->nursery, theirs, a->lock, a->dir);
}

void
launch_ahead(struct daemon *d, const struct job *job)
{
    struct launches *l = d->launches;
    auto_ahead struct ahead a = {job->id, job->run->number, -1, -1, -1};
    if (l->n == AHEAD_MAX)
        return;
    if (ask_ahead(d, job, &a)) {
        l->v[l->n++] = a;
        a.ctl = a.lock = a.dir = -1;
        crash_point("daemon-after-spawn");
    } else if (a.lock >= 0) {
        (void)!ftruncate(a.lock, 0); /* what is written next may be shorter */
    }
}

void
launch_undo(struct daemon *d, const struct job *job)
{
    struct ahead a = ahead_take(d->launches, job);
    ahead_close(&a);
}

/* Has a supervisor forked that starts at once. */
static int
spawn(struct daemon *d, struct job *job, const struct ahead *a, struct err *e)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return err_errno(e, ERR_FAILED, errno, "cannot make a socket pair");
    auto_close int ours = pair[0];
    auto_close int theirs = pair[1];
    crash_point("daemon-before-spawn");
    /* Watched first: what has been sent cannot be taken back. */
    if (watch_attempt(d, job, TAKE_FD(ours), e) < 0 ||
        nursery_ask(d->nursery, NURSERY_ATTEMPT, theirs, a->lock, a->dir, e) < 0)
        return -1;
    crash_point("daemon-after-spawn");
    return 0;
}

/* To the one that waits. 1; 0: there is none (any more), so that another may be forked; -1. */
static int
say_go(struct daemon *d, struct job *job, struct ahead *a, struct err *e)
{
    if (a->ctl < 0)
        return 0;
    if (watch_attempt(d, job, TAKE_FD(a->ctl), e) < 0)
        return -1;
    crash_point("daemon-before-go");
    int rc = watch_say_go(d, job->id);
    crash_point("daemon-after-go");
    if (rc == 0)
        watch_forget(d, job->id);
    return rc ? 1 : 0;
}

static int
launch(struct daemon *d, struct job *job, struct err *e)
{
    auto_ahead struct ahead a = ahead_take(d->launches, job);
    auto_close int keeper = -1;
    if (a.lock < 0 && spec_fill_folder(d, job, &a.dir, &a.lock, e) < 0)
        return -1;
    if (mps_card_of(d, job) >= 0 && (keeper = mps_begin(d, job, e)) < 0)
        return -1;
    int rc = say_go(d, job, &a, e);
    if (rc < 0 || (rc == 0 && spawn(d, job, &a, e) < 0))
        return -1;
    watch_hold_mps(d, job->id, TAKE_FD(keeper));
    return 0;
}

/* Everything up to here is ours: nothing that failed is the job's fault. */
static void
launch_failed(struct daemon *d, struct job *job, const struct err *e)
{
    log_error("job=%u attempt=%d event=not-launched %s", job->id, job->run->number, e->text);
    struct ending ending = ending_never_ran(e->errnum ? e->errnum : EIO, clock_wall_us());
    snprintf(ending.text, sizeof ending.text, "%.*s", (int)sizeof ending.text - 1, e->text);
    machine_trouble(d, e->text);
    jobs_attempt_ended(d->inst.state, job, &ending);
}

void
launch_attempt(struct daemon *d, struct job *job)
{
    struct err e = {0};
    if (launch(d, job, &e) == 0) {
        machine_launched(d);
        return;
    }
    watch_forget(d, job->id);
    launch_failed(d, job, &e);
}
