/* The last steps of a child before the exec: see child_setup.h. command.c uses them for the
 * command, screen.c for the screen session, deliver.c for a hook. The mark is written last,
 * when only the exec can still fail. */
#include "shepherd/begin/child_setup.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/file.h"
#include "shepherd/begin/identity.h"
#include "sys/cgroup_v1.h"
#include "sys/exitrec.h"
#include "sys/rlimits.h"

static int
write_started_mark(const struct last_steps *m)
{
    char text[160];
    size_t n = exitrec_started_mark(getpid(), clock_boot_us(), text, sizeof text);
    if (n == 0 || file_write_all_at(m->lock_fd, text, n, 0) < 0)
        return n > 0 ? errno : ENOSPC;
    if (crash_is_due("shepherd-before-exec")) {
        kill(m->shepherd, SIGKILL);
        pause();
    }
    return 0;
}

int
last_steps_take(void *ctx)
{
    const struct last_steps *m = ctx;
    int why = cgroup_v1_join(m->v1_fds);
    if (why != 0 && m->v1_must_hold)
        return -why;
    why = 0;
    if (m->cpus) /* best effort: better to run on other CPUs than not at all */
        (void)sched_setaffinity(0, sizeof *m->cpus, m->cpus);
    if (m->identity)
        identity_disown(m->identity); /* opens files, which a limit may forbid later */
    if (m->rlimits)
        why = rlimits_apply(m->rlimits);
    if (m->pty && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
        why = errno;
    if (why == 0 && m->identity)
        why = identity_become(m->identity, m->death_signal);
    if (why == 0 && m->lock_fd >= 0)
        why = write_started_mark(m);
    return why == 0 && m->rlimits ? rlimits_apply_fsize(m->rlimits) : why;
}
