/* Launches attempts: see launch.h.
 *
 * Once the start is committed, a crash anywhere in here leaves an attempt that recovery
 * handles: without a folder, or with a free lock and no `started` mark, it never ran and
 * starts again; with the lock held, its supervisor lives. The lock is taken here and handed
 * over open, so at every moment one side holds it.
 *
 * A supervisor forked ahead of the commit has made nothing that could stay behind: it has read
 * the spec and waits for one word. The word is sent after the commit, on a connection whose
 * other end only the daemon has. If that end is closed, on purpose or by the daemon's death,
 * the word cannot come and the supervisor exits: recovery then finds what it would find
 * without one. */
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
#include "daemon/attempt/attempts.h"
#include "daemon/attempt/job_mps.h"
#include "daemon/attempt/launch_spec.h"
#include "daemon/attempt/machine_trouble.h"
#include "daemon/attempt/supervisor_watch.h"
#include "daemon/common/instance.h"
#include "daemon/nursery/nursery_link.h"
#include "daemon/state/job_facts.h"
#include "sys/nursery_packets.h"

#define AHEAD_MAX 16 /* bounds descriptors; more are not ready within one commit anyway */

/* An attempt whose supervisor waits for the commit. */
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
ahead_close(struct ahead *ahead)
{
    /* The supervisor notices at once, even if another process holds a copy of our end. */
    if (ahead->ctl >= 0)
        (void)shutdown(ahead->ctl, SHUT_RDWR);
    const int fds[] = {ahead->ctl, ahead->lock, ahead->dir};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    ahead->ctl = ahead->lock = ahead->dir = -1;
}

#define auto_ahead __attribute__((cleanup(ahead_close)))

void
launches_free(struct launches *l)
{
    for (size_t i = 0; l && i < l->n; i++)
        ahead_close(&l->v[i]);
    free(l);
}

/* Removes and returns the entry of this attempt, which the caller then owns; otherwise an
 * empty one. */
static struct ahead
ahead_take(struct launches *l, const struct job *job)
{
    for (size_t i = 0; i < l->n; i++) {
        struct ahead ahead = l->v[i];
        if (ahead.job != job->id || ahead.attempt != job->run->number)
            continue;
        memmove(&l->v[i], &l->v[i + 1], (--l->n - i) * sizeof ahead);
        return ahead;
    }
    return (struct ahead){.ctl = -1, .lock = -1, .dir = -1};
}

static bool
ask_ahead(struct attempts *a, const struct job *job, struct ahead *ahead)
{
    struct err ignored;
    int pair[2];
    if (spec_fill_folder(a, job, &ahead->dir, &ahead->lock, &ignored) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return false;
    ahead->ctl = pair[0];
    auto_close int theirs = pair[1];
    crash_point("daemon-before-spawn");
    return nursery_ask_ahead(a->nursery, theirs, ahead->lock, ahead->dir);
}

void
launch_ahead(struct attempts *a, const struct job *job)
{
    struct launches *l = a->launches;
    auto_ahead struct ahead ahead = {job->id, job->run->number, -1, -1, -1};
    if (l->n == AHEAD_MAX)
        return;
    if (ask_ahead(a, job, &ahead)) {
        l->v[l->n++] = ahead;
        ahead.ctl = ahead.lock = ahead.dir = -1;
        crash_point("daemon-after-spawn");
    } else if (ahead.lock >= 0) {
        (void)!ftruncate(ahead.lock, 0); /* the next spec may be shorter */
    }
}

void
launch_undo(struct attempts *a, const struct job *job)
{
    struct ahead ahead = ahead_take(a->launches, job);
    ahead_close(&ahead);
}

/* Has a supervisor forked that starts at once. */
static int
spawn(struct attempts *a, struct job *job, const struct ahead *ahead, struct err *e)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return err_errno(e, ERR_FAILED, errno, "cannot make a socket pair");
    auto_close int ours = pair[0];
    auto_close int theirs = pair[1];
    crash_point("daemon-before-spawn");
    /* Watch first, because the request to the nursery cannot be taken back. */
    if (watch_attempt(a, job, TAKE_FD(ours), e) < 0 ||
        nursery_ask(a->nursery, NURSERY_ATTEMPT, theirs, ahead->lock, ahead->dir, e) < 0)
        return -1;
    crash_point("daemon-after-spawn");
    return 0;
}

/* Tells the waiting supervisor to start. 1: told; 0: none is waiting (any more), so another
 * may be forked; -1 with e. */
static int
say_go(struct attempts *a, struct job *job, struct ahead *ahead, struct err *e)
{
    if (ahead->ctl < 0)
        return 0;
    if (watch_attempt(a, job, TAKE_FD(ahead->ctl), e) < 0)
        return -1;
    crash_point("daemon-before-go");
    int rc = watch_say_go(a, job->id);
    crash_point("daemon-after-go");
    if (rc == 0)
        watch_forget(a, job->id);
    return rc ? 1 : 0;
}

static int
launch(struct attempts *a, struct job *job, struct err *e)
{
    auto_ahead struct ahead ahead = ahead_take(a->launches, job);
    auto_close int keeper = -1;
    if (ahead.lock < 0 && spec_fill_folder(a, job, &ahead.dir, &ahead.lock, e) < 0)
        return -1;
    if (mps_card_of(a->inst, job) >= 0 && (keeper = mps_begin(a, job, e)) < 0)
        return -1;
    int rc = say_go(a, job, &ahead, e);
    if (rc < 0 || (rc == 0 && spawn(a, job, &ahead, e) < 0))
        return -1;
    watch_hold_mps(a, job->id, TAKE_FD(keeper));
    return 0;
}

/* Everything up to the launch is done by the daemon, so no failure is the job's fault. */
static void
launch_failed(struct attempts *a, struct job *job, const struct err *e)
{
    log_error("job=%u attempt=%d event=not-launched %s", job->id, job->run->number, e->text);
    struct ending ending = ending_never_ran(e->errnum ? e->errnum : EIO, clock_wall_us());
    snprintf(ending.text, sizeof ending.text, "%.*s", (int)sizeof ending.text - 1, e->text);
    machine_trouble(a, e->text);
    jobs_attempt_ended(a->inst->state, job, &ending);
}

void
launch_attempt(struct attempts *a, struct job *job)
{
    struct err e = {0};
    if (launch(a, job, &e) == 0) {
        machine_launched(a);
        return;
    }
    watch_forget(a, job->id);
    launch_failed(a, job, &e);
}
