/* Opens job logs: see job_log.h. The job's user can choose the path and replace the file at
 * any moment, so root opens it with that user's rights: a link to a device or to another
 * user's file then reveals nothing. Called by logs_verb.c, interactive_job.c and top_log.c, in
 * single-threaded programs. */
#include "cli/ask/job_log.h"

#include <errno.h>
#include <grp.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "wire/account.h"

/* The supplementary groups of this process. *n: their number, -1 on error. The caller
 * frees. */
static gid_t *
groups_now(int *n)
{
    *n = getgroups(0, NULL);
    if (*n < 0)
        return NULL;
    gid_t *list = xcalloc((size_t)*n + 1, sizeof *list);
    *n = getgroups(*n, list);
    return list;
}

static int
open_as(const char *path, const struct account *user)
{
    int n, fd = -1, why;
    size_t n_theirs;
    auto_free gid_t *theirs = account_groups(user, &n_theirs);
    if (!theirs) {
        errno =
            errno == ENOENT ? EACCES : errno; /* ENOENT would mean that there is no log yet */
        return -1;
    }
    auto_free gid_t *groups = groups_now(&n);
    gid_t gid = getegid();
    if (n < 0)
        return -1;
    if (setgroups(n_theirs, theirs) == 0 && setegid(user->gid) == 0 && seteuid(user->uid) == 0)
        fd = file_open_regular(path);
    why = errno;
    if (seteuid(0) < 0 || setegid(gid) < 0 || setgroups((size_t)n, groups) < 0)
        err_abort("cannot become root again: %s", strerror(errno));
    errno = why;
    return fd;
}

int
joblog_open(const char *path, const char *user)
{
    auto_account struct account account = ACCOUNT_INIT;
    if (geteuid() != 0 || !user || !user[0])
        return file_open_regular(path);
    if (!account_by_name(user, &account)) {
        /* The account has been removed: only root's own rights could read the log. */
        errno = errno == ENOENT ? EACCES : errno;
        return -1;
    }
    return open_as(path, &account);
}
