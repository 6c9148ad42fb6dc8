/* Prints a growing file: see text_follow.h. Called by logs_verb.c and daemon_logs.c; the file
 * is opened here, with the calling user's rights. mgpu_stream.c, which sends a file elsewhere,
 * uses only the part that finds where to continue. */
#include "cli/ask/text_follow.h"

#include <errno.h>
#include <libgen.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fs_kind.h"
#include "cli/ask/job_log.h"
#include "cli/common/cli.h"
#include "sys/log_cut.h"

#define CHUNK 65536
/* Interval of polling where changes are not notified; also the time limit for the line that
 * explains a cut. */
#define LOOK_MS 1000
/* How far back from the end of a log a cut is searched for: the lines kept after a cut, and
 * what was written since. */
#define CUT_MAX (INT64_C(64) << 20)

void
textfile_close(struct textfile *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    f->n_shown = 0;
    f->unclear_us = 0;
}

/* Start of the last n lines. */
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
            /* The newline that ends the file does not begin a line. */
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

/* The last line in n bytes that reports a cut; NULL: none. */
static const char *
find_cut_in(const char *chunk, size_t n)
{
    const size_t len = strlen(LOG_CUT_BEGIN);
    const char *found = NULL, *at = chunk;

    while ((at = memmem(at, n - (size_t)(at - chunk), LOG_CUT_BEGIN, len))) {
        size_t rest = n - (size_t)(at - chunk) - len;
        const char *end = memchr(at + len, '\n', rest);
        size_t line = end ? (size_t)(end - at) - len : rest;

        if (memmem(at + len, line, LOG_CUT_WORDS, strlen(LOG_CUT_WORDS)))
            found = at;
        at += len;
    }
    return found;
}

/* Offset of the last cut; -1: none. */
static off_t
find_cut(int fd, off_t size)
{
    char chunk[CHUNK];
    off_t lowest = size > CUT_MAX ? size - CUT_MAX : 0;

    for (off_t end = size;; end -= CHUNK - LOG_CUT_LINE_BYTES) {
        off_t start = end > CHUNK ? end - CHUNK : 0;
        ssize_t n = pread(fd, chunk, (size_t)(end - start), start);
        const char *cut = n > 0 ? find_cut_in(chunk, (size_t)n) : NULL;

        if (cut)
            return start + (cut - chunk);
        if (n <= 0 || start <= lowest)
            return -1;
    }
}

void
textfile_shown(struct textfile *f, const char *bytes, size_t n)
{
    f->at += (off_t)n;
    f->n_shown = n < sizeof f->shown ? n : sizeof f->shown;
    memcpy(f->shown, bytes + n - f->n_shown, f->n_shown);
}

/* True if the text printed last is still in the file. Lines kept after a cut, or written
 * since, may extend beyond f->at, so the size alone proves nothing. */
static bool
is_as_shown(const struct textfile *f)
{
    char now[sizeof f->shown];
    ssize_t n = (ssize_t)f->n_shown;
    struct stat st;

    if (fstat(f->fd, &st) < 0 || !S_ISREG(st.st_mode))
        return true;
    return st.st_size >= f->at && (n == 0 || (pread(f->fd, now, f->n_shown, f->at - n) == n &&
                                              memcmp(now, f->shown, f->n_shown) == 0));
}

/* The line that reports a cut is written after the cut, so the supervisor gets a fixed time to
 * write it, however often we look. */
static bool
may_be_explained(struct textfile *f)
{
    int64_t now = clock_boot_us();

    if (!f->unclear_us)
        f->unclear_us = now;
    return !f->is_final && now - f->unclear_us < LOOK_MS * INT64_C(1000);
}

/* Finds where to continue in a log that no longer matches what was printed. */
static bool
find_place(struct textfile *f)
{
    struct stat st;
    off_t size = fstat(f->fd, &st) == 0 ? st.st_size : 0;
    off_t cut = size > 0 ? find_cut(f->fd, size) : -1;

    if (cut < 0 && size > 0 && may_be_explained(f))
        return false;
    f->at = cut < 0 ? 0 : cut;
    f->n_shown = 0;
    return true;
}

bool
textfile_place(struct textfile *f)
{
    if (!is_as_shown(f) && !find_place(f))
        return false;
    f->unclear_us = 0;
    return true;
}

int
textfile_copy(struct textfile *f, struct err *e)
{
    char chunk[CHUNK];

    if (f->fd < 0 || !textfile_place(f))
        return 0;
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
        textfile_shown(f, chunk, (size_t)n);
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
textfile_notify(const struct textfile *f, struct err *e)
{
    int notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    return notify < 0 ? err_errno(e, ERR_FAILED, errno, "cannot watch %s", f->path) : notify;
}

void
textfile_watch(struct textfile *f, int notify)
{
    auto_free char *copy = xstrdup(f->path);
    const char *name;

    if (!f->is_watched)
        f->is_watched = inotify_add_watch(notify, dirname(copy),
                                          IN_CREATE | IN_MODIFY | IN_MOVED_TO) >= 0 &&
                        fs_kind_of(f->path, &name) == FS_LOCAL;
}

int
textfile_wait_ms(const struct textfile *f)
{
    return f->is_watched && !f->unclear_us ? -1 : LOOK_MS;
}

void
textfile_drain(int notify)
{
    char events[4096];

    while (read(notify, events, sizeof events) > 0)
        continue;
}
