/* The log of a drop-in scheduler: lines as Python's logging writes them, or one JSON object
 * per line, to standard error and to a file that is rotated by size. Several processes append
 * (`add` beside `start`), so the file is opened for each line. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "compat/compat.h"
#include "compat/engine/compat_paths.h"
#include "compat/py/pytext.h"
#include "compat/scheduler/scheduler.h"

#define JOB_LOGS "/tmp/gpu_scheduler_logs"

static const char *
level_name(enum sched_level level)
{
    static const char *const names[] = {"DEBUG", "INFO", "WARNING", "ERROR"};

    return names[level];
}

/* Rotate: PATH.1 becomes PATH.2 and so on, then PATH becomes PATH.1. */
static void
put_aside(const struct sched_log *l)
{
    for (int i = l->keep; i > 0; i--) {
        auto_free char *from = i > 1 ? xasprintf("%s.%d", l->path, i - 1) : xstrdup(l->path);
        auto_free char *to = xasprintf("%s.%d", l->path, i);

        (void)rename(from, to);
    }
}

static void
put(const struct sched_log *l, const struct buf *line)
{
    struct stat st;

    if (!l->quiet)
        (void)file_write_all(STDERR_FILENO, line->data, line->len);
    if (!l->path)
        return;
    if (l->max_bytes > 0 && l->keep > 0 && stat(l->path, &st) == 0 &&
        st.st_size + (off_t)line->len > l->max_bytes)
        put_aside(l);

    auto_close int fd = open(l->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);

    if (fd >= 0)
        (void)file_write_all(fd, line->data, line->len);
}

static void
add_text_line(struct buf *out, const struct sched_log *l, enum sched_level level,
              const char *words)
{
    int64_t now = clock_wall_us();

    py_add_time(out, PY_LOG, now);
    buf_addf(out, ",%03d - %s - %s - [MainThread] - %s\n", (int)(now / 1000 % 1000), l->logger,
             level_name(level), words);
}

static void
add_json_line(struct buf *out, const struct sched_log *l, enum sched_level level,
              const char *words, json_t *details)
{
    int64_t now = clock_wall_us();
    char stamp[40];
    json_t *line;

    clock_rfc3339(now, stamp);
    stamp[strcspn(stamp, "Z.")] = '\0';
    line = json_pack("{s:o,s:s,s:s,s:s,s:s%}", "timestamp",
                     json_sprintf("%s.%03dZ", stamp, (int)(now / 1000 % 1000)), "level",
                     level_name(level), "logger", l->logger, "thread", "MainThread", "message",
                     words, strlen(words));
    if (details)
        json_object_update_missing(line, details);
    py_add_json(out, line, 0);
    buf_addc(out, '\n');
    json_decref(line);
}

void
sched_log(const struct sched_log *l, enum sched_level level, json_t *details, const char *fmt,
          ...)
{
    auto_buf struct buf words = BUF_INIT, line = BUF_INIT;
    va_list ap;

    if (level >= l->level) {
        va_start(ap, fmt);
        buf_addv(&words, fmt, ap);
        va_end(ap);
        if (l->structured)
            add_json_line(&line, l, level, buf_str(&words), details);
        else
            add_text_line(&line, l, level, buf_str(&words));
        put(l, &line);
    }
    json_decref(details);
}

/* Accept only a folder that nobody else may write, so not one that another user made there. */
static bool
is_ours(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

char *
sched_log_dir(struct err *e)
{
    const char *said = getenv("GPU_SCHEDULER_LOG_DIR");
    auto_free char *path = compat_absolute(said && *said ? said : JOB_LOGS);

    if (said && *said)
        return file_mkdirs(path, 0700, e) < 0 ? NULL : TAKE(path);
    if (mkdir(path, 0700) < 0 && !is_ours(path)) {
        free(path);
        path = xasprintf("%s-%u", JOB_LOGS, (unsigned)geteuid());
        if (mkdir(path, 0700) < 0 && !is_ours(path)) {
            err_set(e, ERR_FAILED,
                    "%s is not ours alone to write into; set GPU_SCHEDULER_LOG_DIR to another "
                    "folder",
                    path);
            return NULL;
        }
    }
    return TAKE(path);
}

bool
sched_say_once(struct sched *s, const char *words)
{
    char key[SCHED_KEY_SIZE];

    text_sha1(words, strlen(words), key);
    return compat_first_time(&s->said, key);
}
