/* The party charged for a failed start: see blame.h. A job is charged only for what its own
 * request names (a folder that does not exist, a program that cannot be executed). What the
 * machine lacks for a moment is the machine's trouble; what only this user lacks (a quota, the
 * number of the user's processes, room on the disk that the user's log was sent to) keeps this
 * user's jobs waiting. Called by command.c, screen.c, identity.c and deliver.c. */
#include "shepherd/begin/blame.h"

#include <errno.h>

/* Descriptors and memory are the whole machine's, no matter which process runs out of them. */
static bool
is_machines(int errnum)
{
    return errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM || errnum == ENOBUFS;
}

/* Of a disk, a file server or a directory of users that is full or away for a while. */
static bool
is_passing(int errnum)
{
    switch (errnum) {
    case ENOSPC:
    case EDQUOT:
    case EIO:
    case EROFS:
    case ESTALE:
    case EAGAIN:
    case ETOOMANYREFS:
    case EBUSY:
    case EINTR:
    case ETIMEDOUT:
    case ECHILD:
    case EREMOTEIO:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
    case ECONNREFUSED:
    case ECONNRESET:
    case ENOTCONN:
        return true;
    default:
        return false;
    }
}

/* The instance's place for logs is the instance's to make and to keep. What lies in a user's
 * folder there (a link, a FIFO, a folder where the log goes) is that user's doing, and must not
 * keep others waiting. */
static enum blame
blame_of_log(bool log_is_ours, int errnum)
{
    if (errnum == EDQUOT)
        return BLAME_USER;
    if (log_is_ours && (is_passing(errnum) || errnum == ENOENT))
        return BLAME_MACHINE;
    return is_passing(errnum) ? BLAME_USER : BLAME_COMMAND;
}

/* What a job names may lie on a file system that a user mounted, whose every error is the
 * user's to choose. The job's process enters the working folder once more. */
static bool
is_named(bool log_is_ours, enum step step)
{
    return step == STEP_FOLDER || step == STEP_PLACE || step == STEP_ERROR ||
           step == STEP_CHILD || step == STEP_EXEC || (step == STEP_LOG && !log_is_ours);
}

enum blame
blame_of(bool log_is_ours, enum step step, int errnum)
{
    if (is_machines(errnum))
        return is_named(log_is_ours, step) ? BLAME_USER : BLAME_MACHINE;
    switch (step) {
    case STEP_OURS:
    case STEP_FORK:
        return BLAME_MACHINE;
    case STEP_LOG:
        return blame_of_log(log_is_ours, errnum);
    case STEP_PLACE:
        return BLAME_USER;
    case STEP_ACCOUNT:
    case STEP_FOLDER:
    case STEP_ERROR:
    case STEP_TERMINAL: /* ENOSPC: all are taken */
    case STEP_CHILD:
    case STEP_EXEC: /* EAGAIN: the user has as many processes as the user may have */
        return is_passing(errnum) ? BLAME_USER : BLAME_COMMAND;
    }
    return BLAME_COMMAND;
}
