/* The end of a log: see logtail.h. */
#include "web/pages/logtail.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "web/http/reply.h"

/* Leaves one of libuv's four threads free, as a file server that does not answer blocks a
 * thread for each read. */
#define READING_MAX 3

struct reading {
    uv_work_t work;
    struct logtail *logtail;
    char *path;
    uid_t owner;
    size_t bytes;
    struct buf raw;
    bool cut; /* the file is longer than what was read */
    struct err why;
    logtail_fn fn;
    void *ctx;
};

/* --- cleaning --- */

/* Length of the escape sequence at s, which begins with ESC. */
static size_t
sequence_len(const char *s, size_t n)
{
    size_t i = 2;

    if (n < 2)
        return n;
    if (s[1] == '[') {
        while (i < n && (unsigned char)s[i] >= 0x20 && (unsigned char)s[i] < 0x40)
            i++;
        return i < n ? i + 1 : n;
    }
    if (s[1] == ']') {
        while (i < n && s[i] != '\a' && s[i] != '\033' && s[i] != '\n')
            i++;
        if (i < n && s[i] == '\a')
            return i + 1;
        return i + 1 < n && s[i] == '\033' && s[i + 1] == '\\' ? i + 2 : i;
    }
    if (strchr("()*+-./#% ", s[1])) /* selects a character set, named by one byte */
        return n < 3 ? n : 3;
    return 2;
}

static bool
is_control(char c)
{
    return ((unsigned char)c < ' ' && c != '\n' && c != '\t') || c == 0x7f;
}

void
logtail_clean(const char *s, size_t n, struct buf *out)
{
    size_t line = 0; /* start of the current line in out */

    for (size_t i = 0, len; i < n; i += len) {
        len = text_utf8_len(s + i, n - i);
        if (s[i] == '\033') {
            len = sequence_len(s + i, n - i);
        } else if (s[i] == '\r') {
            /* Before a newline, or at the end of the text, nothing has overwritten the
             * line. */
            if (i + 1 < n && s[i + 1] != '\n' && s[i + 1] != '\r')
                out->len = line;
        } else if (s[i] == '\b') {
            while (out->len > line && ((unsigned char)out->data[--out->len] & 0xc0) == 0x80)
                continue;
        } else if (len == 0 || is_control(s[i])) {
            buf_adds(out, "\xef\xbf\xbd");
        } else {
            buf_add(out, s + i, len);
            if (s[i] == '\n')
                line = out->len;
        }
        if (len == 0)
            len = 1;
    }
    if (out->data)
        out->data[out->len] = '\0';
}

/* --- reading --- */

static int
open_log(const struct reading *r, struct stat *st, struct err *e)
{
    auto_close int fd = file_open_regular(r->path);

    if (fd < 0 && errno == EINVAL)
        return err_set(e, ERR_PERMISSION, "the log is not a regular file, so it is not shown");
    if (fd < 0 && errno == ENOENT)
        return err_set(e, ERR_NO_JOB, "the log does not exist yet, or it was removed");
    if (fd < 0)
        return err_errno(e, ERR_PERMISSION, errno, "berth-web cannot open the log");
    if (fstat(fd, st) < 0 || st->st_uid != r->owner)
        return err_set(e, ERR_PERMISSION,
                       "the file does not belong to the job's user, so it is not shown");
    return TAKE_FD(fd);
}

static void
on_work(uv_work_t *work)
{
    struct reading *r = (struct reading *)work;
    struct stat st;
    auto_close int fd = open_log(r, &st, &r->why);
    off_t from = 0;
    size_t got = 0;

    if (fd < 0)
        return;
    if ((uint64_t)st.st_size > r->bytes)
        from = st.st_size - (off_t)r->bytes;
    r->cut = from > 0;
    buf_reserve(&r->raw, r->bytes);
    while (got < r->bytes) {
        ssize_t n = pread(fd, r->raw.data + got, r->bytes - got, from + (off_t)got);
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    r->raw.len = got;
}

static struct reply *
make_reply(struct reading *r)
{
    struct buf body = BUF_INIT;
    const char *from = buf_str(&r->raw);
    size_t n = r->raw.len;

    if (r->why.code)
        return reply_error(&r->why);
    if (r->cut) { /* omit a partial first line if a whole one follows */
        const char *nl = memchr(from, '\n', n);
        if (nl && nl + 1 < from + n) {
            n -= (size_t)(nl + 1 - from);
            from = nl + 1;
        }
    }
    logtail_clean(from, n, &body);
    return reply_new(200, REPLY_TEXT, &body);
}

static void
on_done(uv_work_t *work, int status)
{
    struct reading *r = (struct reading *)work;
    struct reply *reply;

    r->logtail->n_reading--;
    if (status < 0 && !r->why.code)
        err_set(&r->why, ERR_FAILED, "reading the log was cancelled");
    reply = make_reply(r);
    if (r->fn)
        r->fn(r->ctx, reply);
    reply_unref(reply);
    buf_free(&r->raw);
    free(r->path);
    free(r);
}

struct reading *
logtail_read(struct logtail *t, const char *path, uid_t owner, size_t bytes, logtail_fn fn,
             void *ctx)
{
    struct reading *r;

    if (t->n_reading >= READING_MAX)
        return NULL;
    r = xcalloc(1, sizeof *r);
    r->logtail = t;
    r->path = xstrdup(path);
    r->owner = owner;
    r->bytes = bytes;
    r->fn = fn;
    r->ctx = ctx;
    t->n_reading++;
    uv_queue_work(t->loop, &r->work, on_work, on_done);
    return r;
}

void
logtail_forget(struct reading *r)
{
    r->fn = NULL;
}
