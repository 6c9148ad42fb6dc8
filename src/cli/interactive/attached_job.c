/* The client's side of a connection to an interactive job: see attached_job.h. */
#include "cli/interactive/attached_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/unixsock.h"
#include "cli/ask/answer.h"
#include "wire/attach_frames.h"

#define OUT_MAX 65536

void
attached_init(struct attached *a)
{
    *a = (struct attached){.fd = -1, .next = -1};
}

void
attached_close(struct attached *a)
{
    if (a->fd >= 0)
        close(TAKE_FD(a->fd));
    buf_clear(&a->in);
    buf_clear(&a->out);
    a->sent = 0;
    a->greeted = false;
}

void
attached_free(struct attached *a)
{
    attached_close(a);
    buf_free(&a->in);
    buf_free(&a->out);
    buf_free(&a->shown);
    json_decref(a->ended);
    free(a->refused);
}

static void
add_hello(struct buf *out, const struct attached_wish *wish)
{
    auto_buf struct buf text = BUF_INIT;
    struct jsonw w;

    jsonw_init(&w, &text);
    jsonw_object(&w);
    jsonw_kint(&w, "version", 1);
    if (wish->offset >= 0)
        jsonw_kint(&w, "offset", wish->offset);
    else if (wish->tail >= 0)
        jsonw_kint(&w, "tail", wish->tail);
    jsonw_kbool(&w, "input", wish->input);
    if (wish->rows && wish->columns) {
        jsonw_kint(&w, "rows", wish->rows);
        jsonw_kint(&w, "columns", wish->columns);
    }
    jsonw_end_object(&w);
    attach_add(out, ATTACH_HELLO, text.data, text.len);
}

static int
connect_at(const char *path)
{
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || unixsock_connect(fd, path) < 0)
        return -1;
    return TAKE_FD(fd);
}

/* Sends input only to the job's supervisor, which belongs to this user or root. */
static bool
is_trusted(int fd)
{
    struct ucred cred;
    socklen_t size = sizeof cred;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) == 0 &&
           (cred.uid == geteuid() || cred.uid == 0 || geteuid() == 0);
}

int
attached_connect(struct attached *a, const char *path, const struct attached_wish *wish,
                 struct err *e)
{
    auto_close int fd = connect_at(path);

    if (fd < 0 && errno == EACCES)
        return err_set(e, ERR_PERMISSION, "it belongs to another user");
    if (fd < 0)
        return err_errno(e, ERR_UNREACHABLE, errno, "cannot connect to %s", path);
    if (!is_trusted(fd))
        return err_set(e, ERR_PERMISSION, "%s belongs to another user", path);
    attached_close(a);
    a->fd = TAKE_FD(fd);
    add_hello(&a->out, wish);
    return 0;
}

static void
take_output(struct attached *a, const struct attach_frame *f)
{
    uint64_t offset;
    const char *bytes;
    size_t n;

    if (attach_get_output(f, &offset, &bytes, &n) < 0)
        return;
    buf_add(&a->shown, bytes, n);
    a->next = (int64_t)(offset + n);
}

static void
take_frame(struct attached *a, const struct attach_frame *f)
{
    json_t *o;

    if (f->type == ATTACH_OUTPUT) {
        take_output(a, f);
    } else if (f->type == ATTACH_HELLO) {
        o = json_loadb(f->bytes, f->n, 0, NULL);
        a->greeted = true;
        a->pty = answer_bool(o, "pty");
        if (a->next < 0)
            a->next = answer_int(o, "from", 0);
        json_decref(o);
    } else if (f->type == ATTACH_ENDED) {
        json_decref(a->ended);
        a->ended = json_loadb(f->bytes, f->n, 0, NULL);
    } else if (f->type == ATTACH_REFUSED) {
        free(a->refused);
        a->refused = xstrndup(f->bytes, f->n);
    }
}

bool
attached_read(struct attached *a)
{
    struct attach_frame f;
    size_t done = 0;
    ssize_t n;
    int rc;

    buf_reserve(&a->in, ATTACH_HEAD_BYTES + ATTACH_PAYLOAD_MAX);
    n = recv(a->fd, a->in.data + a->in.len, ATTACH_PAYLOAD_MAX, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0)
        return false;
    a->in.len += (size_t)n;
    a->in.data[a->in.len] = '\0';
    while ((rc = attach_next(&a->in, &done, &f)) > 0)
        take_frame(a, &f);
    buf_drop(&a->in, done);
    return rc == 0 && !a->ended;
}

bool
attached_has_room(const struct attached *a)
{
    return a->fd >= 0 && a->greeted && a->out.len < OUT_MAX;
}

void
attached_put(struct attached *a, const char *bytes, size_t n)
{
    attach_add(&a->out, ATTACH_INPUT, bytes, n);
}

void
attached_put_eof(struct attached *a)
{
    attach_add(&a->out, ATTACH_EOF, NULL, 0);
}

void
attached_put_size(struct attached *a, uint16_t rows, uint16_t columns)
{
    attach_add_winsize(&a->out, rows, columns);
}

bool
attached_flush(struct attached *a)
{
    while (a->sent < a->out.len) {
        ssize_t n = send(a->fd, a->out.data + a->sent, a->out.len - a->sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        a->sent += (size_t)n;
    }
    buf_clear(&a->out);
    a->sent = 0;
    return true;
}
