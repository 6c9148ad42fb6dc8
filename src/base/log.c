/* The log: one line a fact, written with one write() so that lines of several processes
 * never mix. Line breaks inside a message are escaped, so a fact stays one line whatever
 * words of other people it holds. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"

/* The one piece of global state in base: where a process logs to is a fact of the process. */
static int log_fd = STDERR_FILENO;
static enum log_level log_level_max = LOG_LEVEL_INFO;
static char log_program[32];

static const char *const log_level_names[] = {"error", "warn", "info", "debug"};

int
log_open(const char *path, struct err *e)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);

    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open the log %s", path);
    if (log_fd != STDERR_FILENO)
        close(log_fd);
    log_fd = fd;
    return 0;
}

void
log_set_level(enum log_level level)
{
    log_level_max = level;
}

void
log_set_program(const char *name)
{
    snprintf(log_program, sizeof(log_program), "%s", name);
}

static void
log_add_stamp(struct buf *line)
{
    char stamp[32];
    int64_t now_us = clock_wall_us();

    clock_rfc3339(now_us, stamp);
    stamp[strcspn(stamp, "Z")] = '\0';
    buf_addf(line, "%s.%03dZ", stamp, (int)(now_us / 1000 % 1000));
}

static void log_write(enum log_level level, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

static void
log_write(enum log_level level, const char *fmt, va_list ap)
{
    auto_buf struct buf words = BUF_INIT, line = BUF_INIT;
    int saved = errno;

    if (level > log_level_max)
        return;
    buf_addv(&words, fmt, ap);
    if (log_fd == STDERR_FILENO && log_program[0])
        buf_addf(&line, "%s: ", log_program);
    log_add_stamp(&line);
    buf_addf(&line, " %s ", log_level_names[level]);
    text_add_safe(&line, words.data, words.len, 0);
    buf_addc(&line, '\n');
    file_write_all(log_fd, line.data, line.len); /* a full disk must not stop the program */
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
