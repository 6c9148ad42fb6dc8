/* The log: one line per fact, each written with one write() so that lines of several processes
 * never mix. Line breaks in a message are escaped, so a fact stays on one line whatever text
 * it quotes; log_line.c has the formats.
 *
 * The process that writes the file also rotates it. Each step is a rename, so a kill in
 * between leaves whole files and nothing that the next start would trip over. A process that
 * inherited stderr keeps writing to the old file. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log_line.h"
#include "base/parse.h"

#define RETRY_BYTES (1 << 20) /* retry a failed rotation after this many more bytes */

/* The only global state in base: the log's destination belongs to the process. */
static struct {
    int fd;
    char *path;     /* of the open log file; NULL: stderr */
    bool is_stderr; /* stderr is the same file and follows it */
    int64_t size, max_bytes, next_try;
    int keep;
    int journal; /* a socket; -1: none */
    struct sockaddr_un journal_addr;
    enum log_level level;
    enum log_format format;
    char program[32];
} out = {.fd = STDERR_FILENO, .journal = -1, .level = LOG_LEVEL_INFO};

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static const int level_priorities[] = {3, 4, 6, 7}; /* of syslog */

/* --- destinations --- */

static bool
leads_stderr_to(const struct stat *file)
{
    struct stat st;

    return fstat(STDERR_FILENO, &st) == 0 && st.st_dev == file->st_dev &&
           st.st_ino == file->st_ino;
}

static int
open_file(const char *path, struct err *e)
{
    struct stat st;
    auto_close int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open the log %s", path);
    if (out.is_stderr)
        (void)dup2(fd, STDERR_FILENO);
    else
        out.is_stderr = leads_stderr_to(&st);
    if (out.fd != STDERR_FILENO)
        close(out.fd);
    out.fd = TAKE_FD(fd);
    out.size = st.st_size;
    out.next_try = 0;
    return 0;
}

int
log_open(const char *path, struct err *e)
{
    if (open_file(path, e) < 0)
        return -1;
    free(out.path);
    out.path = xstrdup(path);
    return 0;
}

int
log_reopen(struct err *e)
{
    return out.path ? open_file(out.path, e) : 0;
}

const char *
log_path(void)
{
    return out.path;
}

void
log_set_rotation(int64_t max_bytes, int keep)
{
    out.max_bytes = max_bytes;
    out.keep = keep;
    out.next_try = 0;
}

/* PATH.2 becomes PATH.3 and so on; a gap in the numbers does no harm. */
static int
shift_files(void)
{
    for (int i = out.keep; i > 0; i--) {
        auto_free char *to = xasprintf("%s.%d", out.path, i);
        auto_free char *from = i > 1 ? xasprintf("%s.%d", out.path, i - 1) : xstrdup(out.path);
        if (rename(from, to) < 0 && errno != ENOENT)
            return -1;
    }
    return out.keep > 0 ? 0 : unlink(out.path);
}

static void
put_aside(void)
{
    struct err e;

    if (shift_files() == 0 && open_file(out.path, &e) == 0)
        return;
    out.next_try = out.size + RETRY_BYTES;
}

bool
log_use_journal(const char *socket_path)
{
    const char *stream = getenv("JOURNAL_STREAM");
    auto_free char *copy = stream ? xstrdup(stream) : NULL;
    char *colon = copy ? strchr(copy, ':') : NULL;
    int64_t dev, ino;
    struct stat st;

    if (!colon || strlen(socket_path) >= sizeof out.journal_addr.sun_path)
        return false;
    *colon = '\0';
    if (parse_int(copy, 0, INT64_MAX, &dev, NULL) < 0 ||
        parse_int(colon + 1, 0, INT64_MAX, &ino, NULL) < 0 || fstat(STDERR_FILENO, &st) < 0 ||
        (int64_t)st.st_dev != dev || (int64_t)st.st_ino != ino)
        return false;
    out.journal_addr.sun_family = AF_UNIX;
    snprintf(out.journal_addr.sun_path, sizeof out.journal_addr.sun_path, "%s", socket_path);
    out.journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return out.journal >= 0;
}

/* --- settings --- */

void
log_set_level(enum log_level level)
{
    out.level = level;
}

enum log_level
log_get_level(void)
{
    return out.level;
}

const char *
log_level_name(enum log_level level)
{
    return level_names[level];
}

int
log_level_from_name(const char *name, enum log_level *level)
{
    for (size_t i = 0; i < sizeof level_names / sizeof level_names[0]; i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *level = (enum log_level)i;
            return 0;
        }
    }
    return -1;
}

void
log_set_format(enum log_format format)
{
    out.format = format;
}

void
log_set_program(const char *name)
{
    snprintf(out.program, sizeof out.program, "%s", name);
}

/* Never blocks: if the journal lags, the line is written as text to stderr instead, best
 * effort. */
static bool
send_to_journal(const struct log_stamp *stamp, const struct buf *words)
{
    auto_buf struct buf entry = BUF_INIT;

    if (out.journal < 0)
        return false;
    log_line_journal(stamp, buf_str(words), words->len, &entry);
    return sendto(out.journal, entry.data, entry.len, MSG_NOSIGNAL | MSG_DONTWAIT,
                  (const struct sockaddr *)&out.journal_addr,
                  sizeof out.journal_addr) == (ssize_t)entry.len;
}

static void
write_line(struct log_stamp *stamp, const struct buf *words)
{
    auto_buf struct buf line = BUF_INIT;

    if (out.path)
        stamp->program = "";
    if (out.format == LOG_FORMAT_JSON)
        log_line_json(stamp, buf_str(words), words->len, &line);
    else
        log_line_text(stamp, buf_str(words), words->len, &line);
    if (out.path && out.max_bytes > 0 && out.size > 0 && out.size >= out.next_try &&
        out.size + (int64_t)line.len > out.max_bytes)
        put_aside();
    if (file_write_all(out.fd, line.data, line.len) == 0) /* a full disk stops no caller */
        out.size += (int64_t)line.len;
}

static void log_write(enum log_level level, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

static void
log_write(enum log_level level, const char *fmt, va_list ap)
{
    auto_buf struct buf words = BUF_INIT;
    int saved = errno;

    if (level > out.level)
        return;
    struct log_stamp stamp = {.at_us = clock_wall_us(),
                              .level = level_names[level],
                              .program = out.program,
                              .priority = level_priorities[level]};
    buf_addv(&words, fmt, ap);
    if (!send_to_journal(&stamp, &words))
        write_line(&stamp, &words);
    errno = saved;
}

void
log_error(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_write(LOG_LEVEL_ERROR, fmt, ap);
    va_end(ap);
}

void
log_warn(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_write(LOG_LEVEL_WARN, fmt, ap);
    va_end(ap);
}

void
log_info(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_write(LOG_LEVEL_INFO, fmt, ap);
    va_end(ap);
}

void
log_debug(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_write(LOG_LEVEL_DEBUG, fmt, ap);
    va_end(ap);
}
