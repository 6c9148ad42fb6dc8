/* One client's connection: lines in, bytes out. A client is dropped if it leaves too much
 * unread or sends a line that is too long. If its user has used up a fair share of the
 * daemon's time, its next lines are read later (user_shares.h). No client can block the loop,
 * because every write is asynchronous. rpc_server.c accepts the connection, rpc_requests.c
 * answers its lines. */
#include <stdlib.h>
#include <uv.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "daemon/common/turn_due.h"
#include "daemon/common/user_names.h"
#include "daemon/request/event_filter.h"
#include "daemon/request/file_upload.h"
#include "daemon/rpc/long_lines.h"
#include "daemon/rpc/long_work.h"
#include "daemon/rpc/rpc.h"
#include "daemon/rpc/rpc_server.h"
#include "daemon/rpc/rpc_server_priv.h"
#include "daemon/rpc/user_shares.h"
#include "daemon/rpc/waiters.h"
#include "wire/frame.h"

#define READ_SIZE 65536
#define RESUME_MS 20 /* how often paused clients are looked at again */

struct outgoing {
    uv_write_t req;
    struct buf bytes;
};

static void
client_free(uv_handle_t *handle)
{
    struct client *c = handle->data;
    for (int i = 0; i < c->n_held; i++) {
        buf_free(&c->held[i].text);
        buf_free(&c->held[i].result);
        free(c->held[i].id);
    }
    free(c->held);
    event_filter_free(&c->filter);
    frame_free(&c->in);
    buf_free(&c->unsent);
    free(c);
}

void
client_drop(struct client *c)
{
    if (c->closing)
        return;
    struct server *s = c->server;
    c->closing = true;
    if (c->reading)
        reading_leave(s->long_lines, TAKE(c->reading), &c->in);
    if (c->prev)
        c->prev->next = c->next;
    else
        s->clients = c->next;
    if (c->next)
        c->next->prev = c->prev;
    s->n_clients--;
    peers_keep(s->peers, c->group, -c->kept);
    peers_leave(s->peers, c->group);
    waits_drop_client(s->rpc->waits, c);
    works_drop_client(s->rpc, c);
    file_uploads_drop_client(s->rpc->uploads, c);
    uv_close((uv_handle_t *)&c->pipe, client_free);
    turn_touch_unplanned(s->rpc->inst); /* without clients an idle daemon may exit */
}

bool
client_is_idle(const struct client *c)
{
    return !c->following && c->n_held == 0 && c->n_tickets == 0 && client_unread(c) == 0 &&
           c->in.bytes.len == 0;
}

size_t
client_unread(const struct client *c)
{
    return c->pipe.write_queue_size + c->unsent.len;
}

/* Updates the bytes counted for this client's user; drops the client if that is too much. */
static void
account(struct client *c)
{
    int64_t kept = (int64_t)(c->in.bytes.len + client_unread(c));
    int64_t more = kept - c->kept;
    if (c->closing || more == 0)
        return;
    c->kept = kept;
    if (peers_keep(c->server->peers, c->group, more))
        return;
    log_warn("client=%d dropped: too many unread bytes for its user %u", (int)c->pid, c->uid);
    server_count_turned_away(c->server);
    client_drop(c);
}

static void
on_written(uv_write_t *req, int status)
{
    struct outgoing *o = (struct outgoing *)req;
    struct client *c = req->handle->data;
    struct buf next = c->unsent;
    buf_free(&o->bytes);
    free(o);
    c->unsent = (struct buf)BUF_INIT;
    if (status < 0)
        client_drop(c);
    rpc_client_send(c, &next);
    account(c);
}

/* Writes all but the first n bytes once the socket accepts them. */
static void
write_soon(struct client *c, struct buf *bytes, size_t n)
{
    struct outgoing *o = xcalloc(1, sizeof *o);
    o->bytes = *bytes;
    *bytes = (struct buf)BUF_INIT;
    uv_buf_t b = uv_buf_init(o->bytes.data + n, (unsigned)(o->bytes.len - n));
    if (uv_write(&o->req, (uv_stream_t *)&c->pipe, &b, 1, on_written)) {
        buf_free(&o->bytes);
        free(o);
        client_drop(c);
    }
}

/* Takes over the bytes. */
static void
add_unsent(struct client *c, struct buf *bytes)
{
    if (c->unsent.len > 0) {
        buf_add(&c->unsent, bytes->data, bytes->len);
    } else {
        buf_free(&c->unsent);
        c->unsent = *bytes;
        *bytes = (struct buf)BUF_INIT;
    }
    buf_free(bytes);
}

/* Queues the bytes behind the write in progress. Long ones are not copied: 64 MiB would block
 * the loop for 50 ms. */
static void
send_later(struct client *c, struct buf *bytes)
{
    if (bytes->len < LARGE_BYTES) {
        add_unsent(c, bytes);
        return;
    }
    if (c->unsent.len > 0)
        write_soon(c, &c->unsent, 0);
    if (!c->closing)
        write_soon(c, bytes, 0);
    buf_free(bytes);
}

/* Short output uses one write at a time: libuv makes 32 writes per round of the loop, so with
 * one write per event the followers would permanently lag behind a busy daemon. */
void
rpc_client_send(struct client *c, struct buf *bytes)
{
    if (c->closing || bytes->len == 0) {
        buf_free(bytes);
        return;
    }
    if (client_unread(c) + bytes->len > UNREAD_MAX) {
        log_warn("client=%d dropped: it left %zu MiB unread", (int)c->pid,
                 (client_unread(c) + bytes->len) >> 20);
        server_count_turned_away(c->server);
        buf_free(bytes);
        client_drop(c);
        return;
    }
    if (c->pipe.write_queue_size > 0) {
        send_later(c, bytes);
        account(c);
        return;
    }
    uv_buf_t b = uv_buf_init(bytes->data, (unsigned)bytes->len);
    int rc = uv_try_write((uv_stream_t *)&c->pipe, &b, 1);
    size_t n = rc > 0 ? (size_t)rc : 0;
    if (n < bytes->len)
        write_soon(c, bytes, n);
    else
        buf_free(bytes);
    account(c);
}

void
client_send_gathered(struct client *c)
{
    struct buf bytes = c->unsent;
    if (c->closing || bytes.len == 0)
        return;
    if (c->pipe.write_queue_size > 0) {
        account(c); /* on_written sends the rest */
        return;
    }
    c->unsent = (struct buf)BUF_INIT;
    rpc_client_send(c, &bytes);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b);
static void on_resume(uv_timer_t *timer);

static void
on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    struct client *c = handle->data;
    char *room = frame_room(&c->in, READ_SIZE);
    *out = uv_buf_init(room, room ? READ_SIZE : 0);
}

/* Resumes reading later, so that other clients are served first: in the next round if the user
 * has only used up this one. */
static void
pause_client(struct client *c)
{
    struct server *s = c->server;
    bool soon = peers_had_round(s->peers, c->group) &&
                peers_may_ask(s->peers, c->group, clock_boot_us());
    if (!c->paused)
        uv_read_stop((uv_stream_t *)&c->pipe);
    c->paused = true;
    if (soon || !uv_is_active((uv_handle_t *)&s->resume))
        uv_timer_start(&s->resume, on_resume, soon ? 1 : RESUME_MS, RESUME_MS);
}

static void serve_lines(struct client *c);

/* The client's long line has been parsed. */
static void
on_reading_done(void *arg, struct parsed *p, size_t len)
{
    struct client *c = arg;
    c->reading = NULL;
    int64_t began_us = clock_boot_us();
    rpc_handle(c, p, len);
    int64_t now_us = clock_boot_us();
    peers_charge(c->server->peers, c->group, p->took_us + now_us - began_us, now_us);
    frame_done(&c->in, c->next_at);
    c->paused = true; /* the client has not been read from since */
    serve_lines(c);
    account(c);
}

/* A possibly long line waits until no other long line of its user is being parsed, whichever
 * connection that came from, even a closed one. */
static bool
has_to_wait(const struct client *c, size_t at)
{
    return c->in.bytes.len - at >= LARGE_BYTES &&
           long_lines_has(c->server->long_lines, c->group);
}

/* True: the line is parsed by the other thread, and the connection waits for that. */
static bool
read_apart(struct client *c, const char *line, size_t len, size_t next_at)
{
    if (len < LARGE_BYTES)
        return false;
    c->reading =
        reading_begin(c->server->long_lines, c->uid, c->group, line, len, on_reading_done, c);
    if (!c->reading)
        return false;
    if (!c->paused)
        uv_read_stop((uv_stream_t *)&c->pipe);
    c->paused = false; /* on_reading_done resumes it */
    c->next_at = next_at;
    return true;
}

/* Serves the lines received, as far as the user's share of time allows. */
static void
serve_lines(struct client *c)
{
    struct peers *peers = c->server->peers;
    size_t at = 0, len = 0;
    int64_t began_us = clock_boot_us();
    while (!c->closing && users_is_settled(c->uid) && !peers_had_round(peers, c->group) &&
           peers_may_ask(peers, c->group, began_us) && !has_to_wait(c, at)) {
        const char *line = frame_next(&c->in, &at, &len);
        if (!line) {
            frame_done(&c->in, at);
            if (c->paused && !c->server->closing)
                uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read);
            c->paused = false;
            return;
        }
        if (read_apart(c, line, len, at))
            return;
        if (len > 0) {
            struct parsed p;
            line_parse(c->server->rpc->budget, c->uid, line, len, &p);
            rpc_handle(c, &p, len);
        }
        int64_t now_us = clock_boot_us();
        peers_charge(peers, c->group, now_us - began_us, now_us);
        began_us = now_us;
    }
    frame_done(&c->in, at);
    if (!c->closing)
        pause_client(c);
}

/* Sends the reason and the remedy, as far as the socket accepts it. */
static void
refuse_line(struct client *c)
{
    auto_buf struct buf text = BUF_INIT;
    struct err e = {0};
    err_set(&e, ERR_REFUSED, "the request exceeds the maximum of %zu MiB; split it",
            c->in.max >> 20);
    log_warn("client=%d dropped: a line of over %zu MiB", (int)c->pid, c->in.max >> 20);
    rpc_write_error(&text, "null", err_exit_status(e.code), err_name(e.code), e.text);
    uv_buf_t b = uv_buf_init(text.data, (unsigned)text.len);
    (void)uv_try_write((uv_stream_t *)&c->pipe, &b, 1);
}

static void
on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
    (void)b;
    struct client *c = stream->data;
    if (n < 0) {
        if (n == UV_ENOBUFS)
            refuse_line(c);
        client_drop(c);
        return;
    }
    frame_filled(&c->in, (size_t)n);
    serve_lines(c);
    account(c);
}

void
client_read(struct client *c)
{
    uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read);
}

static void
on_resume(uv_timer_t *timer)
{
    const struct server *s = timer->data;
    struct client *next;
    bool more = false;
    for (struct client *c = s->clients; c; c = next) {
        next = c->next;
        if (!c->paused)
            continue;
        serve_lines(c);
        more |= !c->closing && c->paused;
    }
    if (!more)
        uv_timer_stop(timer);
}

void
server_resume(struct server *s)
{
    if (uv_is_active((uv_handle_t *)&s->resume))
        uv_timer_start(&s->resume, on_resume, 0, RESUME_MS);
}
