/* Showing a file that grows: see text_follow.h. Called by logs_verb.c and daemon_logs.c; the
 * file is opened here, as the calling user. */
#include "cli/ask/text_follow.h"

#include <errno.h>
#include <libgen.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/ask/job_log.h"
#include "cli/common/cli.h"

#define CHUNK 65536

void
textfile_close(struct textfile *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

/* Where the last n lines begin. */
static off_t
find_tail(int fd, int64_t n)
{
    struct stat st;
    char chunk[CHUNK];
    off_t end;
    bool last = true;

    if (fstat(fd, &st) < 0)
        return 0;
    for (end = st.st_size; end > 0;) {
        off_t start = end > (off_t)sizeof chunk ? end - (off_t)sizeof chunk : 0;
        ssize_t got = pread(fd, chunk, (size_t)(end - start), start);

        if (got <= 0)
            return 0;
        for (ssize_t i = got - 1; i >= 0; i--) {
            /* The newline that ends the file begins no line. */
            if (chunk[i] == '\n' && !last && --n == 0)
                return start + i + 1;
            last = false;
        }
        end = start;
    }
    return 0;
}

int
textfile_open(struct textfile *f, int64_t tail, struct err *e)
{
    f->fd = joblog_open(f->path, f->user);
    if (f->fd < 0 && errno == EINVAL)
        return err_set(e, ERR_FAILED,
                       "%s is not a regular file, so past output is not available", f->path);
    if (f->fd < 0)
        return errno == ENOENT ? 0 : err_errno(e, ERR_FAILED, errno, "cannot read %s", f->path);
    if (tail > 0)
        f->at = find_tail(f->fd, tail);
    return 0;
}

int
textfile_copy(struct textfile *f, struct err *e)
{
    char chunk[CHUNK];
    struct stat st;

    if (f->fd < 0)
        return 0;
    /* A log that became shorter was begun anew. */
    if (fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size < f->at)
        f->at = 0;
    for (;;) {
        ssize_t n = pread(f->fd, chunk, sizeof chunk, f->at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(e, ERR_FAILED, errno, "cannot read %s", f->path);
        if (n == 0)
            return 0;
        if (cli_write(chunk, (size_t)n) != 0) {
            f->broken = true;
            return 0;
        }
        f->at += n;
    }
}

bool
textfile_is_replaced(const struct textfile *f)
{
    struct stat named, held;

    return f->fd >= 0 && stat(f->path, &named) == 0 && fstat(f->fd, &held) == 0 &&
           (named.st_dev != held.st_dev || named.st_ino != held.st_ino);
}

int
textfile_watch(const char *path, struct err *e)
{
    auto_free char *copy = xstrdup(path);
    int notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (notify < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot watch %s", path);
    inotify_add_watch(notify, dirname(copy), IN_CREATE | IN_MODIFY | IN_MOVED_TO);
    return notify;
}

void
textfile_drain(int watch)
{
    char events[4096];

    while (read(watch, events, sizeof events) > 0)
        continue;
}
