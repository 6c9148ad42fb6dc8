/* The end of a log; see top_log.h. Reads the last part of the file again when inotify reports
 * a change: a quickly growing log costs one part per look, however long it is. */
#include "cli/top/top_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/ask/job_log.h"
#include "cli/top/top_model.h"

#define PART_BYTES 65536 /* of the file's end */

struct top_log_file {
    char *path; /* owned; NULL: none */
    char *user; /* owned; the job's user; NULL: unknown */
    int notify;
    int watch; /* of the file; -1: none */
    struct stat seen;
};

struct top_log_file *
top_log_new(void)
{
    struct top_log_file *f = xcalloc(1, sizeof *f);

    f->notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    f->watch = -1;
    return f;
}

void
top_log_free(struct top_log_file *f)
{
    if (!f)
        return;
    if (f->notify >= 0)
        close(f->notify);
    free(f->path);
    free(f->user);
    free(f);
}

int
top_log_fd(const struct top_log_file *f)
{
    return f->notify;
}

/* Skips "ESC [ ... letter", "ESC ] ... BEL" or ESC and one character. */
static const char *
skip_escape(const char *s)
{
    s++;
    if (*s == '[') {
        s++;
        while (*s && (*s < '@' || *s > '~'))
            s++;
    } else if (*s == ']') {
        while (*s && *s != '\a' && *s != '\033')
            s++;
    }
    return *s ? s + 1 : s;
}

void
top_log_clean(char *s)
{
    size_t n = strlen(s);
    const char *from;
    char *to = s;

    while (n > 0 && s[n - 1] == '\r')
        s[--n] = '\0';
    from = strrchr(s, '\r'); /* a progress bar overwritten in place shows its last state */
    from = from ? from + 1 : s;
    while (*from) {
        if (*from == '\033') {
            from = skip_escape(from);
        } else if (*from == '\t') {
            *to++ = ' ';
            from++;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

static void
forget_lines(struct top_log *log)
{
    for (size_t i = 0; i < log->n; i++)
        free(log->lines[i]);
    free(log->lines);
    free(log->why);
    log->lines = NULL;
    log->n = 0;
    log->why = NULL;
}

static void
take_line(struct top_log *log, size_t *cap, const char *s, size_t n)
{
    char *line = memcpy(xcalloc(1, n + 1), s, n);

    log->lines = xgrow(log->lines, log->n, cap, sizeof *log->lines);
    for (char *nul = line; (nul = memchr(nul, '\0', (size_t)(line + n - nul)));)
        *nul = '?';
    top_log_clean(line);
    log->lines[log->n++] = line;
}

/* Splits text into lines, without the first if it is only the end of one. */
static void
take_lines(struct top_log *log, const char *text, size_t n, bool from_middle)
{
    const char *end = text + n;
    size_t cap = 0;

    for (const char *at = text; at < end;) {
        const char *eol = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((eol ? eol : end) - at);

        if (!from_middle || at != text)
            take_line(log, &cap, at, len);
        at += len + 1;
    }
}

static void
read_part(struct top_log_file *f, struct top_log *log)
{
    auto_close int fd = joblog_open(f->path, f->user);
    char part[PART_BYTES];
    off_t from = 0;
    ssize_t n;

    forget_lines(log);
    f->seen = (struct stat){0};
    if (fd < 0) {
        log->why = errno == ENOENT   ? xstrdup("the job has written nothing yet")
                   : errno == EINVAL ? xstrdup("the log is not a regular file")
                                     : xasprintf("cannot read the log: %s", strerror(errno));
        return;
    }
    if (fstat(fd, &f->seen) < 0) {
        log->why = xasprintf("cannot read the log: %s", strerror(errno));
        return;
    }
    if (f->seen.st_size > PART_BYTES)
        from = f->seen.st_size - PART_BYTES;
    n = pread(fd, part, PART_BYTES, from);
    if (n <= 0) {
        log->why = xstrdup(n < 0 ? "cannot read the log" : "the job has written nothing yet");
        return;
    }
    take_lines(log, part, (size_t)n, from > 0);
}

static bool
has_changed(const struct top_log_file *f)
{
    struct stat st = {0};

    if (stat(f->path, &st) < 0)
        return f->seen.st_ino != 0;
    return !file_is_same(&st, &f->seen);
}

static void
drain(int fd)
{
    char events[4096];

    while (fd >= 0 && read(fd, events, sizeof events) > 0)
        continue;
}

static void
watch(struct top_log_file *f)
{
    if (f->watch < 0 && f->path && f->notify >= 0)
        f->watch = inotify_add_watch(f->notify, f->path, IN_MODIFY | IN_ATTRIB);
}

/* Switches to another job's log, or to none. */
static void
change_path(struct top_log_file *f, struct top_log *log, char *path, char *user)
{
    if (f->watch >= 0)
        inotify_rm_watch(f->notify, f->watch);
    f->watch = -1;
    free(f->path);
    free(f->user);
    f->path = path;
    f->user = user;
    free(log->path);
    log->path = path ? xstrdup(path) : NULL;
}

bool
top_log_update(struct top_log_file *f, struct top *t)
{
    auto_free char *path = top_selected_log(t);

    drain(f->notify);
    if (!path && !f->path)
        return false;
    if (!path || !f->path || strcmp(path, f->path) != 0) {
        change_path(f, &t->log, TAKE(path), top_selected_user(t));
        if (!f->path) {
            forget_lines(&t->log);
            return true;
        }
    } else if (!has_changed(f)) {
        return false;
    }
    watch(f);
    read_part(f, &t->log);
    return true;
}
