/* Decides who is charged for a failed start: see blame.h. A job is charged only for what its
 * own request names (a missing folder, a program that cannot be executed). A temporary
 * shortage on the machine is charged to the machine. A shortage of only this user (quota,
 * number of processes, space on the disk of the user's log) makes only this user's jobs wait,
 * and so does an account that was not found: the daemon decides when it is gone for good.
 * Called by command.c, screen.c, identity.c and deliver.c. */
#include "shepherd/begin/blame.h"

#include <errno.h>

/* Descriptors and memory belong to the machine, whichever process runs out of them. */
static bool
is_machines(int errnum)
{
    return errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM || errnum == ENOBUFS;
}

/* A disk, a file server or a user directory that is temporarily full or away. */
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

/* The instance makes and maintains the default log place. What lies in a user's folder there
 * (a link, a FIFO, a folder in the log's place) is that user's doing, and must not make others
 * wait. */
static enum blame
blame_of_log(bool log_is_ours, int errnum)
{
    if (errnum == EDQUOT)
        return BLAME_USER;
    if (log_is_ours && (is_passing(errnum) || errnum == ENOENT))
        return BLAME_MACHINE;
    return is_passing(errnum) ? BLAME_USER : BLAME_COMMAND;
}

/* A path chosen by the job may be on a file system that a user mounted and whose errors the
 * user controls. The child also enters the working folder. */
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
    case STEP_NOBODY:
        return BLAME_ACCOUNT;
    case STEP_ACCOUNT:
    case STEP_FOLDER:
    case STEP_ERROR:
    case STEP_TERMINAL: /* ENOSPC: no free pseudo-terminal */
    case STEP_CHILD:
    case STEP_EXEC: /* EAGAIN: the user is at the limit of processes */
        return is_passing(errnum) ? BLAME_USER : BLAME_COMMAND;
    }
    return BLAME_COMMAND;
}
