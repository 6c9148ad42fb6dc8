/* The daemon's socket. See server.h for the rule that matters: an answer leaves only after
 * its turn is durable. Called by main.c and turn.c; the methods themselves are in
 * method_*.c and named in methods.c. A client that does not read is dropped when too much
 * waits for it, one that sends no newline when its line is too long; neither can hold up
 * the loop, because every write is asynchronous. */
#include "daemon/server.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <uv.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/event_filter.h"
#include "daemon/listener.h"
#include "daemon/methods.h"
#include "daemon/peers.h"
#include "daemon/report.h"
#include "daemon/roles.h"
#include "daemon/turn.h"
#include "daemon/waits.h"
#include "wire/frame.h"

#define READ_SIZE  65536
#define UNREAD_MAX ((size_t)256 << 20) /* bytes a client may leave unread */
#define FOLLOWER_UNREAD_MAX                                                                    \
    ((size_t)8 << 20) /* the same of events that are told as they come */
#define LARGE_BYTES        ((size_t)8 << 20)
#define RESUME_MS          20 /* who asked too much is looked at again so often */
#define RPC_PARSE_ERROR    -32700
#define RPC_BAD_REQUEST    -32600
#define RPC_UNKNOWN_METHOD -32601

struct reply {
    struct buf text; /* the whole line */
    char *id;        /* as JSON, to make an error of it when the commit fails */
    bool changes;    /* says that something has been made durable */
};

struct client {
    struct client *next, *prev;
    struct server *server;
    uv_pipe_t pipe;
    uid_t uid;
    pid_t pid;
    bool admin;
    bool paused;      /* its user has had his share of our time for now */
    int64_t since_us; /* boot clock: when it connected */
    int64_t kept;     /* bytes of it, as peers.c knows */
    struct frame in;
    struct buf unsent; /* what has come since the write that is under way began */
    struct reply *held;
    int n_held, cap_held;
    bool following;
    struct event_filter filter;
    bool closing;
};

struct server {
    struct daemon *daemon;
    struct listener *listener;
    struct peers *peers;
    uv_timer_t resume;
    struct client *clients;
    int n_clients;
    int64_t turned_away, turned_away_us; /* how many, and when the last (boot clock) */
    bool closing;
};

struct ticket {
    struct client *client;
    char *id;
};

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
        free(c->held[i].id);
    }
    free(c->held);
    event_filter_free(&c->filter);
    frame_free(&c->in);
    buf_free(&c->unsent);
    free(c);
}

static void
client_drop(struct client *c)
{
    if (c->closing)
        return;
    c->closing = true;
    struct server *s = c->server;
    if (c->prev)
        c->prev->next = c->next;
    else
        s->clients = c->next;
    if (c->next)
        c->next->prev = c->prev;
    s->n_clients--;
    peers_keep(s->peers, c->uid, -c->kept);
    peers_leave(s->peers, c->uid);
    waits_drop_client(s->daemon->waits, c);
    reports_drop_client(s->daemon, c);
    uv_close((uv_handle_t *)&c->pipe, client_free);
    turn_touch(s->daemon); /* the last one to leave may let an idle daemon go */
}

static void
count_turned_away(struct server *s)
{
    s->turned_away++;
    s->turned_away_us = clock_boot_us();
}

static size_t
unread(const struct client *c)
{
    return c->pipe.write_queue_size + c->unsent.len;
}

/* Tells what is kept for this client's user; drops it when that is too much. */
static void
account(struct client *c)
{
    int64_t kept = (int64_t)(c->in.bytes.len + unread(c));
    int64_t more = kept - c->kept;
    if (c->closing || more == 0)
        return;
    c->kept = kept;
    if (peers_keep(c->server->peers, c->uid, more))
        return;
    log_warn("client=%d dropped: too many bytes wait for its user %u", (int)c->pid, c->uid);
    count_turned_away(c->server);
    client_drop(c);
}

static void client_send(struct client *c, struct buf *bytes);

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
    client_send(c, &next);
    account(c);
}

/* What the socket does not take at once is written when it can. */
static void
write_soon(struct client *c, struct buf *bytes)
{
    struct outgoing *o = xcalloc(1, sizeof *o);
    o->bytes = *bytes;
    *bytes = (struct buf)BUF_INIT;
    uv_buf_t b = uv_buf_init(o->bytes.data, (unsigned)o->bytes.len);
    if (uv_write(&o->req, (uv_stream_t *)&c->pipe, &b, 1, on_written)) {
        buf_free(&o->bytes);
        free(o);
        client_drop(c);
    }
}

/* Takes the bytes. One write at a time: libuv makes 32 of them in a round of the loop, so that
 * of a write for each event the followers would fall behind a busy daemon for good. */
static void
client_send(struct client *c, struct buf *bytes)
{
    if (c->closing || bytes->len == 0) {
        buf_free(bytes);
        return;
    }
    if (unread(c) + bytes->len > UNREAD_MAX) {
        log_warn("client=%d dropped: it left %zu MiB unread", (int)c->pid,
                 (unread(c) + bytes->len) >> 20);
        count_turned_away(c->server);
        buf_free(bytes);
        client_drop(c);
        return;
    }
    if (c->pipe.write_queue_size > 0) {
        buf_add(&c->unsent, bytes->data, bytes->len);
        buf_free(bytes);
        account(c);
        return;
    }
    uv_buf_t b = uv_buf_init(bytes->data, (unsigned)bytes->len);
    int n = uv_try_write((uv_stream_t *)&c->pipe, &b, 1);
    if (n > 0)
        buf_drop(bytes, (size_t)n);
    if (bytes->len > 0)
        write_soon(c, bytes);
    else
        buf_free(bytes);
    account(c);
}

static struct reply *
hold(struct client *c, char *id, bool changes)
{
    if (c->n_held == c->cap_held) {
        c->cap_held = c->cap_held ? c->cap_held * 2 : 4;
        c->held = xrealloc(c->held, (size_t)c->cap_held * sizeof *c->held);
    }
    struct reply *r = &c->held[c->n_held++];
    *r = (struct reply){.text = BUF_INIT, .id = id, .changes = changes};
    turn_touch(c->server->daemon);
    return r;
}

static void
write_error(struct buf *out, const char *id, int code, const char *kind, const char *text)
{
    struct jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kstr(&w, "jsonrpc", "2.0");
    jsonw_key(&w, "id");
    jsonw_raw(&w, id, strlen(id));
    jsonw_key(&w, "error");
    jsonw_object(&w);
    jsonw_kint(&w, "code", code);
    jsonw_kstr(&w, "message", text);
    if (kind) {
        jsonw_key(&w, "data");
        jsonw_object(&w);
        jsonw_kstr(&w, "kind", kind);
        jsonw_end_object(&w);
    }
    jsonw_end_object(&w);
    jsonw_end_object(&w);
    buf_addc(out, '\n');
}

static void
write_result(struct buf *out, const char *id, const char *result, size_t n)
{
    buf_reserve(out, n + 64);
    buf_adds(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buf_adds(out, id);
    buf_adds(out, ",\"result\":");
    buf_add(out, result, n);
    buf_adds(out, "}\n");
}

/* An id is a string, a number or null; anything else is answered as null. */
static char *
id_text(const json_t *id)
{
    char *text = NULL;
    if (json_is_string(id) || json_is_integer(id))
        text = json_dumps(id, JSON_ENCODE_ANY | JSON_COMPACT);
    return text ? text : xstrdup("null");
}

static void
answer_protocol_error(struct client *c, const json_t *id, int code, const char *text)
{
    struct reply *r = hold(c, id_text(id), false);
    write_error(&r->text, r->id, code, "usage", text);
}

static void
call_method(struct client *c, const struct method *m, const json_t *id, json_t *params)
{
    struct caller caller = {.client = c,
                            .uid = c->uid,
                            .pid = c->pid,
                            .admin = c->admin,
                            .since_us = c->since_us,
                            .id = id};
    auto_buf struct buf result = BUF_INIT;
    struct jsonw w;
    struct err e = {0};
    jsonw_init(&w, &result);
    c->server->daemon->caller = &caller;
    int rc = m->run(c->server->daemon, &caller, params, &w, &e);
    c->server->daemon->caller = NULL;
    if (rc == METHOD_LATER)
        return;
    if (rc == 0 && result.len > UNREAD_MAX)
        rc = err_set(&e, ERR_REFUSED,
                     "the answer would have %zu MiB, and %zu is the most; ask for fewer jobs",
                     result.len >> 20, UNREAD_MAX >> 20);
    struct reply *r = hold(c, id_text(id), m->changes && rc == 0);
    if (rc == 0)
        write_result(&r->text, r->id, buf_str(&result), result.len);
    else
        write_error(&r->text, r->id, err_exit_status(e.code), err_name(e.code), e.text);
}

static void
handle_line(struct client *c, const char *line, size_t len)
{
    json_error_t je;
    json_t *root = json_loadb(line, len, 0, &je);
    if (!root) {
        auto_free char *text = xasprintf("not JSON: %s (byte %d)", je.text, je.position);
        answer_protocol_error(c, NULL, RPC_PARSE_ERROR, text);
        return;
    }
    const json_t *id = json_object_get(root, "id");
    const char *name = json_string_value(json_object_get(root, "method"));
    json_t *params = json_object_get(root, "params");
    const struct method *m = name ? methods_find(name) : NULL;
    if (!json_is_object(root) || !name || (params && !json_is_object(params)))
        answer_protocol_error(c, id, RPC_BAD_REQUEST,
                              "a request is {\"id\", \"method\": name, \"params\": {...}}");
    else if (!m)
        answer_protocol_error(c, id, RPC_UNKNOWN_METHOD, "no such method");
    else
        call_method(c, m, id, params);
    json_decref(root);
    /* The C library would keep for good what a jobs file of 100,000 lines needed for a moment.
     */
    if (len >= LARGE_BYTES)
        malloc_trim(0);
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

/* Reads on later, so that others' requests come first. */
static void
pause_client(struct client *c)
{
    struct server *s = c->server;
    c->paused = true;
    uv_read_stop((uv_stream_t *)&c->pipe);
    if (!uv_is_active((uv_handle_t *)&s->resume))
        uv_timer_start(&s->resume, on_resume, RESUME_MS, RESUME_MS);
}

/* What has come in, as far as its user's share of time goes. */
static void
serve_lines(struct client *c)
{
    struct peers *peers = c->server->peers;
    size_t at = 0, len = 0;
    int64_t began_us = clock_boot_us();
    while (!c->closing && peers_may_ask(peers, c->uid, began_us)) {
        const char *line = frame_next(&c->in, &at, &len);
        if (!line) {
            frame_done(&c->in, at);
            if (c->paused && !c->server->closing)
                uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read);
            c->paused = false;
            return;
        }
        if (len > 0)
            handle_line(c, line, len);
        int64_t now_us = clock_boot_us();
        peers_charge(peers, c->uid, now_us - began_us, now_us);
        began_us = now_us;
    }
    frame_done(&c->in, at);
    if (!c->closing && !c->paused)
        pause_client(c);
}

static void
on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
    (void)b;
    struct client *c = stream->data;
    if (n < 0) {
        if (n == UV_ENOBUFS)
            log_warn("client=%d dropped: a line of over %zu MiB", (int)c->pid,
                     FRAME_MAX_CLIENT >> 20);
        client_drop(c);
        return;
    }
    frame_filled(&c->in, (size_t)n);
    serve_lines(c);
    account(c);
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

static void
on_closed_unused(uv_handle_t *handle)
{
    free(handle->data);
}

/* Why there is no more of it, on the way out. */
static void
turn_away(struct client *c, const struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    write_error(&text, "null", err_exit_status(e->code), err_name(e->code), e->text);
    uv_buf_t b = uv_buf_init(text.data, (unsigned)text.len);
    (void)uv_try_write((uv_stream_t *)&c->pipe, &b, 1);
    count_turned_away(c->server);
}

static bool
admit(struct client *c)
{
    struct server *s = c->server;
    struct err e = {0};
    if (peers_enter(s->peers, c->uid, s->n_clients, &e) == 0)
        return true;
    turn_away(c, &e);
    return false;
}

static bool
identify(struct client *c)
{
    uv_os_fd_t fd;
    struct ucred cred;
    socklen_t len = sizeof cred;
    if (uv_fileno((uv_handle_t *)&c->pipe, &fd) ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
        return false;
    c->uid = cred.uid;
    c->pid = cred.pid;
    c->admin = roles_is_admin(c->server->daemon, fd, &cred);
    return roles_is_served(c->server->daemon, c->uid);
}

static void
on_connection(uv_stream_t *listener, int status)
{
    struct server *s = listener->data;
    if (status < 0) {
        log_warn("accept: %s", uv_strerror(status));
        return;
    }
    struct client *c = xcalloc(1, sizeof *c);
    c->server = s;
    c->since_us = clock_boot_us();
    uv_pipe_init(s->daemon->loop, &c->pipe, 0);
    c->pipe.data = c;
    frame_init(&c->in, FRAME_MAX_CLIENT);
    if (uv_accept(listener, (uv_stream_t *)&c->pipe) || s->closing || !identify(c) ||
        !admit(c)) {
        uv_close((uv_handle_t *)&c->pipe, on_closed_unused);
        return;
    }
    c->next = s->clients;
    if (c->next)
        c->next->prev = c;
    s->clients = c;
    s->n_clients++;
    turn_touch(s->daemon); /* an idle daemon has somebody now */
    uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read);
}

struct server *
server_open(struct daemon *d, struct err *e)
{
    struct server *s = xcalloc(1, sizeof *s);
    s->daemon = d;
    s->listener = listener_open(d, on_connection, s, e);
    if (!s->listener) {
        free(s);
        return NULL;
    }
    s->peers = peers_new(d->places.system);
    uv_timer_init(d->loop, &s->resume);
    s->resume.data = s;
    return s;
}

void
server_close(struct server *s)
{
    if (s->closing)
        return;
    s->closing = true;
    listener_close(s->listener);
    uv_close((uv_handle_t *)&s->resume, NULL);
    for (struct client *c = s->clients; c; c = c->next) {
        uv_read_stop((uv_stream_t *)&c->pipe);
        uv_unref((uv_handle_t *)&c->pipe);
    }
}

void
server_hang_up(struct server *s)
{
    while (s->clients)
        client_drop(s->clients);
}

void
server_free(struct server *s)
{
    listener_free(s->listener);
    peers_free(s->peers);
    free(s);
}

int
server_client_count(const struct server *s)
{
    return s->n_clients;
}

int64_t
server_turned_away(const struct server *s, int64_t *at_us)
{
    if (at_us)
        *at_us = s->turned_away_us;
    return s->turned_away;
}

bool
server_has_callers(const struct server *s)
{
    return listener_has_callers(s->listener);
}

struct ticket *
server_ticket(struct caller *c)
{
    struct ticket *t = xcalloc(1, sizeof *t);
    t->client = c->client;
    t->id = id_text(c->id);
    return t;
}

void
server_answer(struct ticket *t, const char *result_json)
{
    struct reply *r = hold(t->client, TAKE(t->id), false);
    write_result(&r->text, r->id, result_json, strlen(result_json));
    ticket_free(t);
}

void
server_refuse(struct ticket *t, const struct err *why)
{
    struct reply *r = hold(t->client, TAKE(t->id), false);
    write_error(&r->text, r->id, err_exit_status(why->code), err_name(why->code), why->text);
    ticket_free(t);
}

void
ticket_free(struct ticket *t)
{
    if (!t)
        return;
    free(t->id);
    free(t);
}

bool
ticket_is_of(const struct ticket *t, const struct client *client)
{
    return t->client == client;
}

void
server_release(struct server *s, const struct err *failed)
{
    struct client *next;
    for (struct client *c = s->clients; c; c = next) {
        next = c->next;
        if (c->n_held == 0)
            continue;
        struct buf out = BUF_INIT;
        for (int i = 0; i < c->n_held; i++) {
            struct reply *r = &c->held[i];
            if (failed && r->changes)
                write_error(&out, r->id, err_exit_status(failed->code), err_name(failed->code),
                            failed->text);
            else if (out.len == 0) {
                buf_free(&out);
                out = r->text;
                r->text = (struct buf)BUF_INIT;
            } else {
                buf_add(&out, r->text.data, r->text.len);
            }
            buf_free(&r->text);
            free(r->id);
        }
        c->n_held = 0;
        client_send(c, &out);
    }
}

void
server_follow(struct client *client, struct event_filter *filter)
{
    event_filter_free(&client->filter);
    client->filter = *filter;
    *filter = (struct event_filter){0};
    client->following = true;
}

bool
server_is_followed(const struct server *s)
{
    for (const struct client *c = s->clients; c; c = c->next)
        if (c->following)
            return true;
    return false;
}

void
server_publish(struct server *s, const struct event_view *ev)
{
    struct client *next;
    for (struct client *c = s->clients; c; c = next) {
        next = c->next;
        const struct viewer viewer = {.uid = c->uid, .admin = c->admin};
        if (!c->following || !event_filter_lets(&c->filter, ev) ||
            roles_hides_event(s->daemon, &viewer, ev->job, ev->line, ev->n))
            continue;
        if (unread(c) > FOLLOWER_UNREAD_MAX) {
            log_info("client=%d event=follower-behind it left %zu MiB of events unread",
                     (int)c->pid, unread(c) >> 20);
            client_drop(c);
            continue;
        }
        struct buf out = BUF_INIT;
        buf_reserve(&out, ev->n + 64);
        buf_adds(&out, "{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":");
        buf_add(&out, ev->line, ev->n);
        buf_adds(&out, "}\n");
        client_send(c, &out);
    }
}
