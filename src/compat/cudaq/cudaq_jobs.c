/* cudaq's jobs file and commands file. People add, change and remove records while the
 * dispatcher runs, while we know more about running and ended jobs. So the file is read again
 * before each write, our knowledge is merged in, lines that are not records are kept, and the
 * file is replaced only if it is still the version that was read. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "compat/compat.h"
#include "compat/cudaq/cudaq.h"
#include "compat/engine/line_records.h"
#include "compat/py/pytext.h"

#define SAVE_PART     10 /* saving takes at most a tenth of the time */
#define SAVE_PAUSE_US 5000000
#define AGAIN_US      20000
#define WRITER_US     2000000 /* wait this long for a program that has the file open */

/* --- lines --- */

static void
push(struct cudaq *q, struct cq_job *job)
{
    q->lines = xgrow(q->lines, q->n, &q->cap, sizeof(struct cq_job *));
    q->lines[q->n++] = job;
    job->in_pass = true;
}

/* Write the file although no record has changed. */
static void
write_soon(struct cudaq *q)
{
    if (!q->dirty)
        q->dirty_us = clock_boot_us();
    q->dirty = true;
    if (!q->save_due_us)
        q->save_due_us = clock_boot_us();
}

/* A user set another status in the record. */
static void
take_wish(struct cudaq *q, struct cq_job *job, enum cq_status status)
{
    if (status == CQ_PENDING)
        cq_job_forget_run(q, job);
    job->noted = CQ_STATUSES;
    cq_job_set(q, job, status, 0);
    q->sync_due = true;
}

/* A line that was not in the file before. */
static void
take_new(struct cudaq *q, struct cq_job *job, bool is_copy)
{
    enum cq_status status = job->status;
    bool asked = job->key[0] && status != job->noted;

    if (!job->command)
        return;
    (void)compat_first_time(&q->commands, job->command);
    q->count[status]++;
    if (is_copy || (status == CQ_PENDING && (asked || cq_job_is_renamed(job))))
        job->key[0] = '\0'; /* it stands for another run or another command */
    if (job->key[0])
        HASH_ADD_KEYPTR(by_key, q->keys, job->key, strlen(job->key), job);
    if (asked)
        take_wish(q, job, status);
    job->unsure = status == CQ_RUNNING;
    q->sync_due |= status == CQ_PENDING || status == CQ_RUNNING;
}

/* A known record has changed. For running jobs our status holds; otherwise a status that
 * differs from the last history item was set by a user, and one that agrees with it is an old
 * one of ours. */
static void
take_edit(struct cudaq *q, struct cq_job *job, struct cq_job *now)
{
    bool is_renamed = strcmp(job->command, now->command) != 0;

    if (job->text)
        HASH_DELETE(by_text, q->texts, job);
    free(job->text);
    job->text = TAKE(now->text);
    job->text_len = now->text_len;
    q->sync_due |= is_renamed;
    free(job->command);
    job->command = TAKE(now->command);
    (void)compat_first_time(&q->commands, job->command);
    if (job->gone)
        q->count[job->status]++;
    job->gone = false;
    if (job->status == CQ_RUNNING && !job->foreign) {
        if (now->status != CQ_RUNNING)
            cq_job_changed(q, job);
    } else if (now->status != now->noted) {
        take_wish(q, job, now->status);
    } else if (now->status != job->status) {
        cq_job_changed(q, job);
    }
    /* For the daemon a key stands for one command forever. */
    if (is_renamed && job->status == CQ_PENDING && job->key[0]) {
        cq_job_forget_run(q, job);
        cq_job_changed(q, job);
    }
    cq_job_free(now);
}

static void
take_line(struct cudaq *q, const char *line, size_t n)
{
    struct cq_job *job, *was = NULL;

    HASH_FIND(by_text, q->texts, line, n, job);
    if (job) {
        HASH_DELETE(by_text, q->texts, job);
        push(q, job);
        return;
    }
    job = cq_job_read(q, line, n);
    if (job->key[0])
        HASH_FIND(by_key, q->keys, job->key, strlen(job->key), was);
    if (was && !was->in_pass) {
        push(q, was);
        take_edit(q, was, job);
    } else {
        push(q, job);
        take_new(q, job, was != NULL);
    }
}

/* Length of the first object in a line with several: a program may have appended to a last
 * line without a newline. */
static size_t
first_object(const char *line, size_t n)
{
    json_error_t error = {0};
    json_t *value =
        memmem(line, n, "}{", 2) ? json_loadb(line, n, JSON_DISABLE_EOF_CHECK, &error) : NULL;
    bool is_object = json_is_object(value);

    json_decref(value);
    return is_object && error.position > 0 && (size_t)error.position < n
               ? (size_t)error.position
               : n;
}

static void
take_lines(struct cudaq *q, const char *line, size_t n)
{
    const char *bare = line;

    while (py_strip(&bare, n) > 0) {
        size_t first = first_object(line, n);

        take_line(q, line, first);
        if (first == n)
            return;
        write_soon(q);
        bare = line += first;
        n -= first;
    }
}

/* The last line without a newline: complete if it is valid JSON; else torn, or still being
 * written. */
static void
take_tail(struct cudaq *q, int fd, const char *line, size_t n)
{
    json_t *value = json_loadb(line, n, 0, NULL);

    q->tail_len = !value && n > 0 && file_has_writers(fd) ? n : 0;
    if (n > q->tail_len) {
        take_lines(q, line, n);
        write_soon(q);
    }
    json_decref(value);
}

/* A job that is no longer in the file; true if it must still be tracked. */
static bool
keep_missing(struct cudaq *q, struct cq_job *job)
{
    if (!job->in_file && !job->gone) /* not written yet */
        return true;
    if (!job->gone && job->command)
        q->count[job->status]--;
    if (job->status != CQ_RUNNING || job->foreign || !job->command) {
        q->sync_due |= job->status == CQ_PENDING;
        cq_job_forget_run(q, job);
        cq_job_free(job);
        return false;
    }
    job->gone = true;
    job->in_file = false;
    free(job->text);
    job->text = NULL;
    return true;
}

static void
take_text(struct cudaq *q, int fd, const struct buf *text)
{
    auto_free struct cq_job **old = TAKE(q->lines);
    size_t n = q->n;
    const char *at = buf_str(text), *end = at + text->len, *nl;

    q->n = q->cap = 0;
    for (size_t i = 0; i < n; i++) {
        old[i]->in_pass = false;
        if (old[i]->text)
            HASH_ADD_KEYPTR(by_text, q->texts, old[i]->text, old[i]->text_len, old[i]);
    }
    for (; at < end && (nl = memchr(at, '\n', (size_t)(end - at))); at = nl + 1)
        take_lines(q, at, (size_t)(nl - at));
    take_tail(q, fd, at, (size_t)(end - at));
    HASH_CLEAR(by_text, q->texts);
    for (size_t i = 0; i < q->n; i++)
        q->lines[i]->in_file = true;
    for (size_t i = 0; i < n; i++) {
        if (!old[i]->in_pass && keep_missing(q, old[i]))
            push(q, old[i]);
    }
}

void
cq_jobs_add(struct cudaq *q, const char *text, size_t n)
{
    while (n > 0) {
        const char *nl = memchr(text, '\n', n);
        size_t len = nl ? (size_t)(nl - text) : n;

        take_lines(q, text, len);
        text += nl ? len + 1 : len;
        n -= nl ? len + 1 : len;
    }
    write_soon(q);
}

/* Read the open file; fd -1: there is none. */
static int
load(struct cudaq *q, int fd, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    struct stat st = {0};

    if (fd >= 0 && fstat(fd, &st) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot look at %s", q->config.jobs_file);
    if (file_is_same(&st, &q->mark) && q->tail_len == 0)
        return 0;
    if (fd >= 0 && cq_read_from(fd, 0, &text) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot read %s", q->config.jobs_file);
    take_text(q, fd, &text);
    q->mark = st;
    return 0;
}

static int
open_jobs(const struct cudaq *q, int *fd, struct err *e)
{
    *fd = open(q->config.jobs_file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    return *fd < 0 && errno != ENOENT
               ? err_errno(e, ERR_FAILED, errno, "cannot open %s", q->config.jobs_file)
               : 0;
}

int
cq_jobs_load(struct cudaq *q, struct err *e)
{
    auto_close int fd = -1;

    return open_jobs(q, &fd, e) < 0 ? -1 : load(q, fd, e);
}

/* --- saving --- */

/* Render the whole file; next gets the new texts of changed lines. */
static void
render(const struct cudaq *q, char **next, struct buf *out)
{
    for (size_t i = 0; i < q->n; i++) {
        const struct cq_job *job = q->lines[i];

        if (job->gone)
            continue;
        if (job->dirty)
            next[i] = cq_job_render(q, job);
        if (next[i])
            buf_adds(out, next[i]);
        else
            buf_add(out, job->text, job->text_len);
        buf_addc(out, '\n');
    }
}

static void
take_written(struct cudaq *q, char **next, size_t bytes)
{
    for (size_t i = 0; i < q->n; i++) {
        struct cq_job *job = q->lines[i];

        job->dirty = false;
        job->in_file = !job->gone;
        if (!next[i])
            continue;
        free(job->text);
        job->text = TAKE(next[i]);
        job->text_len = strlen(job->text);
        json_decref(job->changes);
        job->changes = NULL;
    }
    q->dirty = false;
    q->save_due_us = 0;
    q->tail_len = 0;
    /* So that lines appended since are read next. */
    if (stat(q->config.jobs_file, &q->mark) == 0)
        q->mark.st_size = (off_t)bytes;
}

/* 1: another program is writing the file, or replaced it first. */
static int
try_save(struct cudaq *q, struct err *e)
{
    auto_close int fd = -1;
    auto_buf struct buf out = BUF_INIT;
    char **next;
    size_t n;
    int rc;

    if (open_jobs(q, &fd, e) < 0 || load(q, fd, e) < 0)
        return -1;
    if (fd >= 0 && !q->leaving && clock_boot_us() < q->dirty_us + WRITER_US &&
        file_has_writers(fd))
        return 1;
    n = q->n;
    next = xcalloc(n + 1, sizeof *next);
    render(q, next, &out);
    rc = records_replace_if(q->config.jobs_file, out.data, out.len, &q->mark, e);
    if (rc == 0) {
        off_t read_to = q->mark.st_size - (off_t)q->tail_len;

        take_written(q, next, out.len);
        if (fd >= 0)
            cq_old_keep(q, TAKE_FD(fd), read_to);
    }
    for (size_t i = 0; i < n; i++)
        free(next[i]);
    free(next);
    return rc;
}

int
cq_jobs_save(struct cudaq *q, struct err *e)
{
    int64_t began = clock_boot_us(), took;
    int rc;

    if (!q->dirty)
        return 0;
    rc = try_save(q, e);
    took = (clock_boot_us() - began) * SAVE_PART;
    q->save_pause_us = took < SAVE_PAUSE_US ? took : SAVE_PAUSE_US;
    if (rc != 0)
        q->save_due_us = clock_boot_us() + (rc > 0 ? AGAIN_US : SAVE_PAUSE_US);
    return rc < 0 ? -1 : 0;
}

/* --- the commands file --- */

static void
take_command(struct cudaq *q, const char *s, size_t n)
{
    auto_free char *command = NULL;
    struct cq_job *job;
    bool is_text = text_is_utf8(s, n, NULL) && !memchr(s, '\0', n);

    n = py_strip(&s, n);
    if (n == 0 || *s == '#')
        return;
    command = xstrndup(s, n);
    if (!compat_first_time(&q->commands, command))
        return;
    if (!is_text) {
        auto_buf struct buf out = BUF_INIT;

        text_add_safe(&out, s, n, 0);
        (void)compat_say("[Warning] No UTF-8 text in %s, which is not run: %s",
                         q->config.commands_file, buf_str(&out));
        return;
    }
    job = cq_job_new(command);
    q->count[CQ_PENDING]++;
    push(q, job);
    cq_job_changed(q, job);
    q->sync_due = true;
}

int
cq_commands_load(struct cudaq *q, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    struct stat st = {0};
    const char *at, *end;

    if (stat(q->config.commands_file, &st) < 0 || file_is_same(&st, &q->commands_mark))
        return 0;
    if (file_read(q->config.commands_file, INT_MAX, &text, e) < 0)
        return -1;
    q->commands_mark = st;
    at = buf_str(&text);
    end = at + text.len;
    if (text.len >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) /* byte order mark */
        at += 3;
    while (at < end) {
        size_t n = 0;

        while (at + n < end && at[n] != '\n' && at[n] != '\r')
            n++;
        take_command(q, at, n);
        at += n + 1;
    }
    return 0;
}

void
cq_jobs_free(struct cudaq *q)
{
    HASH_CLEAR(by_key, q->keys);
    for (size_t i = 0; i < q->n; i++)
        cq_job_free(q->lines[i]);
    while (q->n_old > 0)
        close(q->old[--q->n_old].fd);
    json_decref(q->commands);
    free(q->lines);
    free(q->log_root);
    free(q->jobs_path);
    free(q->complaint);
}
