/* One attached client. It is served from the log, by offset, with one frame in memory: a
 * client that does not read costs only 64 KiB, and one that lost its connection asks for the
 * rest. Any client may type; input is passed on in order of arrival. The last window size
 * received applies. */
#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/jsonw.h"
#include "shepherd/common/attempt_spec.h"
#include "shepherd/talk/attach_priv.h"
#include "wire/attach_frames.h"

#define PART_BYTES    (ATTACH_PAYLOAD_MAX - ATTACH_OFFSET_SIZE)
#define FRAMES_A_TURN 16 /* sent to one client per turn, so that others get theirs */

/* --- messages from clients --- */

static void
add_hello(const struct attach *at, struct buf *out)
{
    auto_buf struct buf text = BUF_INIT;
    struct jsonw w;
    jsonw_init(&w, &text);
    jsonw_object(&w);
    jsonw_kint(&w, "version", 1);
    jsonw_kint(&w, "job", at->spec->job);
    jsonw_kint(&w, "attempt", at->spec->attempt);
    jsonw_kbool(&w, "pty", at->console.pty);
    jsonw_kint(&w, "from", at->console.from);
    jsonw_kint(&w, "size", at->console.size);
    jsonw_kstr(&w, "state", at->record.len ? "ended" : "running");
    jsonw_end_object(&w);
    attach_add(out, ATTACH_HELLO, text.data, text.len);
}

static int64_t
number_of(const json_t *o, const char *key, int64_t otherwise)
{
    const json_t *v = json_object_get(o, key);
    return json_is_integer(v) && json_integer_value(v) >= 0 ? json_integer_value(v) : otherwise;
}

/* The client's start offset: an offset in the log, or a number of bytes before its end; by
 * default the start of this attempt's output. */
static off_t
begin_at(const struct console *c, const json_t *o)
{
    int64_t offset = number_of(o, "offset", -1), tail = number_of(o, "tail", -1);
    if (offset >= 0)
        return offset < c->size ? offset : c->size;
    if (tail >= 0)
        return c->size - c->from > tail ? c->size - tail : c->from;
    return c->from;
}

static void
take_size(struct attach *at, int64_t rows, int64_t columns)
{
    if (rows > 0 && rows <= UINT16_MAX && columns > 0 && columns <= UINT16_MAX)
        console_resize(&at->console, (uint16_t)rows, (uint16_t)columns);
}

static int
take_hello(struct attach *at, struct peer *p, const struct attach_frame *f)
{
    json_t *o = json_loadb(f->bytes, f->n, 0, NULL);
    if (!json_is_object(o) || p->greeted) {
        json_decref(o);
        return -1;
    }
    attach_watch_log(at, true);
    console_look(&at->console);
    p->greeted = at->was_used = true;
    p->who.types = json_is_true(json_object_get(o, "input"));
    p->at = begin_at(&at->console, o);
    attach_tell_of(at, p); /* before it types or disconnects */
    if (p->who.types)
        take_size(at, number_of(o, "rows", 0), number_of(o, "columns", 0));
    json_decref(o);
    add_hello(at, &p->out);
    return 0;
}

static int
take_frame(struct attach *at, struct peer *p, const struct attach_frame *f)
{
    uint16_t rows, columns;
    if (f->type == ATTACH_HELLO)
        return take_hello(at, p, f);
    if (!p->greeted)
        return -1;
    if (!p->who.types)
        return 0; /* it may only watch */
    if (f->type == ATTACH_INPUT)
        console_put(&at->console, f->bytes, f->n);
    else if (f->type == ATTACH_EOF)
        console_put_eof(&at->console);
    else if (f->type == ATTACH_WINSIZE && attach_get_winsize(f, &rows, &columns) == 0)
        console_resize(&at->console, rows, columns);
    return 0; /* unknown types are ignored: a newer client may send them */
}

void
peer_read(struct attach *at, struct peer *p)
{
    struct attach_frame f;
    size_t done = 0;
    int rc = 0;
    buf_reserve(&p->in, ATTACH_HEAD_BYTES + ATTACH_PAYLOAD_MAX);
    ssize_t n = recv(p->fd, p->in.data + p->in.len, ATTACH_PAYLOAD_MAX, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        attach_drop_peer(at, p);
        return;
    }
    p->in.len += (size_t)n;
    p->in.data[p->in.len] = '\0';
    while (rc == 0 && (rc = attach_next(&p->in, &done, &f)) > 0)
        rc = take_frame(at, p, &f);
    if (rc < 0)
        attach_drop_peer(at, p);
    else
        buf_drop(&p->in, done);
}

/* --- messages to clients --- */

/* 1: all of out was sent, 0: the client takes no more now, -1: it is gone. */
static int
flush(struct peer *p)
{
    while (p->sent < p->out.len) {
        ssize_t n = send(p->fd, p->out.data + p->sent, p->out.len - p->sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -1;
        p->sent += (size_t)n;
    }
    buf_clear(&p->out);
    p->sent = 0;
    return 1;
}

/* Composes the next frame; false if the client has everything. */
static bool
compose(const struct attach *at, struct peer *p)
{
    if (!p->greeted || p->told_end)
        return false;
    if (p->at > at->console.size)
        p->at = 0; /* a log that shrank was started anew */
    if (p->at < at->console.size) {
        off_t left = at->console.size - p->at; /* later output is left to the next look */
        size_t want = left < PART_BYTES ? (size_t)left : PART_BYTES;
        char *room = attach_begin_output(&p->out, (uint64_t)p->at);
        ssize_t n = pread(at->console.log_fd, room, want, p->at);
        attach_end_output(&p->out, n > 0 ? (size_t)n : 0);
        p->at = n > 0 ? p->at + n : at->console.size;
        return n > 0;
    }
    if (at->record.len == 0)
        return false;
    attach_add(&p->out, ATTACH_ENDED, at->record.data, at->record.len);
    p->told_end = true;
    return true;
}

void
peer_write(struct attach *at, struct peer *p)
{
    for (int i = 0; i < FRAMES_A_TURN; i++) {
        int rc = flush(p);
        if (rc < 0)
            attach_drop_peer(at, p);
        if (rc <= 0 || !compose(at, p))
            return;
    }
}

bool
peer_has_more(const struct attach *at, const struct peer *p)
{
    return p->out.len > 0 ||
           (p->greeted && !p->told_end && (p->at != at->console.size || at->record.len > 0));
}
