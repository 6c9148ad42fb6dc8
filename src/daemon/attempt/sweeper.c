/* See sweeper.h. */
#include "daemon/attempt/sweeper.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "core/queue/job.h"
#include "daemon/attempt/attempt_folder.h"
#include "daemon/attempt/attempts.h"
#include "daemon/attempt/launch_spec.h"
#include "daemon/common/folder_name.h"
#include "daemon/common/instance.h"
#include "daemon/nursery/nursery_link.h"
#include "sys/nursery_packets.h"

/* The folder has been removed: makes and fills a new one, so that a sweeper can still find the
 * attempt's processes by their mark, and end them. */
static int
fill_anew(struct attempts *a, const struct job *job, int *dir, int *lock, struct err *e)
{
    log_warn("job=%u attempt=%d event=folder-gone its folder has been removed", job->id,
             job->run->number);
    folder_remove(a, job);
    return folder_make(a, job, e) || spec_fill_folder(a, job, dir, lock, e) < 0 ? -1 : 0;
}

static int
open_folder(struct instance *inst, const struct job *job, int *dir, int *lock, struct err *e)
{
    char name[32];
    *dir = openat(inst->jobs_fd, folder_name(job->id, job->run->number, name),
                  O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*dir < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open the attempt's folder %s", name);
    *lock = openat(*dir, "lock", O_RDWR | O_CLOEXEC);
    if (*lock < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open the lock of %s", name);
    return 0;
}

int
sweeper_start(struct attempts *a, const struct job *job, bool *gone, struct err *e)
{
    auto_close int dir = -1;
    auto_close int lock = -1;
    if (open_folder(a->inst, job, &dir, &lock, e) < 0) {
        if (e->errnum != ENOENT && e->errnum != ENOTDIR && e->errnum != ELOOP)
            return -1;
        *gone = true;
        close(TAKE_FD(dir));
        if (fill_anew(a, job, &dir, &lock, e) < 0)
            return -1;
    }
    return nursery_call(a->nursery, NURSERY_SWEEP, lock, dir, e);
}
