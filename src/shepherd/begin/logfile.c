/* Opening a job's output files; see logfile.h. Called by command.c in the supervisor, and by
 * berth_user.c if the supervisor is root. */
#include "shepherd/begin/logfile.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

/* -1 with the errno of the first folder that cannot be made. Makes only the last folder of the
 * instance's own place: if others are missing, more is wrong than a folder. */
static int
make_folders(const struct logfile *f)
{
    auto_free char *copy = xstrdup(f->path);
    struct err e;
    int rc;

    if (f->own_place)
        return mkdir(dirname(copy), 0777);
    errno = 0;
    rc = file_mkdirs(dirname(copy), 0777, &e);
    if (rc != 0 && errno == 0)
        errno = ENOTDIR;
    return rc;
}

bool
logfile_place_is_shut(const char *path, bool users_folder)
{
    auto_free char *copy = xstrdup(path);
    const int why = errno;
    const char *folder = dirname(copy);
    bool is_shut =
        access(users_folder ? dirname(copy) : folder, users_folder ? X_OK : W_OK | X_OK) < 0;

    errno = why;
    return is_shut;
}

/* O_NONBLOCK only makes a FIFO without a reader an error instead of a wait. */
int
logfile_open(const struct logfile *f)
{
    const int flags = (f->read ? O_RDWR : O_WRONLY) | O_CREAT | O_APPEND | O_CLOEXEC |
                      O_NOCTTY | O_NONBLOCK | (f->truncate ? O_TRUNC : 0) |
                      (f->own_place ? O_NOFOLLOW : 0);
    const mode_t mode = f->own_place ? 0600 : 0666;
    int fd = open(f->path, flags, mode);

    if (fd < 0 && errno == ENOENT && make_folders(f) == 0)
        fd = open(f->path, flags, mode);
    if (fd >= 0)
        (void)fcntl(fd, F_SETFL, O_APPEND);
    return fd;
}

int
logfile_make_readable(int fd)
{
    char path[40];
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return fd;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int readable = open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOCTTY);
    if (readable < 0)
        return fd;
    close(fd);
    return readable;
}
