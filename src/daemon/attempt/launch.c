/* Launching: see launch.h. Called by turn.c once the decision is committed, so a crash
 * anywhere in here leaves an attempt that recovery finds: without a folder, or with one
 * whose lock is free and that has no `started` mark, it never ran and starts again; with
 * the lock held its shepherd lives. The lock is taken here and handed over open, so there
 * is no moment in which neither side holds it. */
#include "daemon/attempt/launch.h"

#include <errno.h>
#include <sys/socket.h>

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

static int
launch(struct daemon *d, struct job *job, struct err *e)
{
    auto_close int dir = -1;
    auto_close int lock = -1;
    auto_close int keeper = -1;
    if (spec_fill_folder(d, job, &dir, &lock, e) < 0)
        return -1;
    if (mps_card_of(d, job) >= 0 && (keeper = mps_begin(d, job, e)) < 0)
        return -1;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return err_errno(e, ERR_FAILED, errno, "cannot make a socket pair");
    auto_close int ours = pair[0];
    auto_close int theirs = pair[1];
    crash_point("daemon-before-spawn");
    /* Watched first: what has been sent cannot be taken back. */
    if (watch_attempt(d, job, TAKE_FD(ours), e) < 0 ||
        nursery_ask(d->nursery, NURSERY_ATTEMPT, theirs, lock, dir, e) < 0)
        return -1;
    watch_hold_mps(d, job->id, TAKE_FD(keeper));
    crash_point("daemon-after-spawn");
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
    jobs_attempt_ended(&d->state, job, &ending);
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
