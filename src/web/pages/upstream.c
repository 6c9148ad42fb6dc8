/* The connection to berthd: see upstream.h. wire/client.c implements the protocol; this file
 * decides when to connect and what to send, and never blocks: the socket is connected without
 * blocking, and the requests in flight are far smaller than its buffer. */
#include "web/pages/upstream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/unixsock.h"
#include "wire/client.h"
#include "wire/places.h"

/* Longer than the interval of live_pages.c. */
#define LINGER_US   (INT64_C(8) * 1000000)
#define PATIENCE_US (INT64_C(15) * 1000000)
#define TICK_MS     1000
#define SEND_MS     2000
#define ON_THE_WAY  8 /* requests in flight at a time */

struct question {
    struct question *next;
    int64_t id;       /* 0: not sent yet */
    int64_t heard_us; /* boot clock: when it was sent, or the daemon last showed progress */
    char *method;
    json_t *params;
    upstream_answer_fn fn; /* NULL: nobody waits for the answer */
    void *ctx;
};

struct upstream {
    uv_loop_t *loop;
    const char *socket;
    const char *dir;
    struct upstream_calls calls;
    struct client *client; /* NULL: not connected */
    uv_poll_t *poll;
    uv_timer_t *tick;
    uv_prepare_t *prepare; /* sends requests made since the loop last waited */
    int64_t wanted_until_us;
    struct question *asked, **asked_end; /* in the order of the requests */
    int n_asked, n_sent;
    char why[sizeof((struct err *)NULL)->text];
};

static void disconnect(struct upstream *u, const char *why);

static void
on_closed(uv_handle_t *handle)
{
    free(handle);
}

/* --- connecting --- */

static int
open_socket(const char *path, struct err *e)
{
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make a socket");
    if (unixsock_connect(fd, path) < 0) {
        if (errno == EACCES || errno == EPERM)
            return err_errno(e, ERR_PERMISSION, errno, "no permission to use %s", path);
        if (errno == ENOENT || errno == ECONNREFUSED)
            return err_set(e, ERR_UNREACHABLE, "no daemon is running at %s", path);
        return err_errno(e, ERR_UNREACHABLE, errno, "the daemon at %s does not answer", path);
    }
    return TAKE_FD(fd);
}

/* Connects, but checks the owner of a socket in a folder where any user may create files:
 * another user's daemon could return anything. */
static int
open_trusted(const char *path, struct err *e)
{
    struct ucred cred;
    socklen_t size = sizeof cred;
    auto_close int fd = open_socket(path, e);

    if (fd < 0)
        return -1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0 ||
        (cred.uid != geteuid() && cred.uid != 0))
        return err_set(e, ERR_PERMISSION,
                       "the program that listens at %s belongs to another user", path);
    return TAKE_FD(fd);
}

/* Tries the same places as berth: the one given, the user's own daemon, the machine's. */
static int
open_found(const struct upstream *u, struct err *e)
{
    struct places p;
    int fd;

    if (u->socket)
        return open_socket(u->socket, e);
    if (places_find(u->dir, &p, e) < 0)
        return -1;
    auto_free char *path = places_live_socket(&p);
    fd = p.root ? open_socket(path, e) : open_trusted(path, e);
    if (fd < 0 && !p.root && e->code == ERR_UNREACHABLE) {
        int other = open_trusted(PLACES_SYSTEM_SOCKET, NULL);
        fd = other >= 0 ? other : fd;
    }
    places_free(&p);
    return fd;
}

static struct question *
take_answered(struct upstream *u, int64_t id)
{
    for (struct question **at = &u->asked; *at; at = &(*at)->next) {
        struct question *q = *at;
        if (q->id != id)
            continue;
        *at = q->next;
        if (!q->next)
            u->asked_end = at;
        u->n_asked--;
        u->n_sent--;
        return q;
    }
    return NULL;
}

static void
question_end(struct question *q, json_t *result, const struct err *error)
{
    if (q->fn)
        q->fn(q->ctx, result, error);
    free(q->method);
    json_decref(q->params);
    free(q);
}

static void
on_answer(void *ctx, int64_t id, json_t *result, const struct err *error)
{
    struct question *q = take_answered(ctx, id);

    if (q)
        question_end(q, result, error);
}

static void
on_notify(void *ctx, const char *method, json_t *params)
{
    const struct upstream *u = ctx;

    if (strcmp(method, "event") == 0)
        u->calls.on_event(u->calls.ctx, params);
}

/* The daemon is still working on this answer: a long report may take minutes. */
static void
on_sign(void *ctx, int64_t id)
{
    const struct upstream *u = ctx;

    for (struct question *q = u->asked; q; q = q->next)
        if (q->id == id)
            q->heard_us = clock_boot_us();
}

static void
on_readable(uv_poll_t *poll, int status, int events)
{
    struct upstream *u = poll->data;
    struct err e = {0};

    (void)events;
    if (status < 0)
        err_set(&e, ERR_UNREACHABLE, "lost the connection to the daemon");
    if (status < 0 || client_pump(u->client, &e) < 0)
        disconnect(u, e.text);
}

/* Subscribes to events. If that fails, answers are still right, but later. */
static void
follow_events(struct upstream *u)
{
    upstream_ask(u, "events", json_pack("{s:i,s:b}", "since", 0, "follow", 1), NULL, NULL);
}

static void
reconnect(struct upstream *u)
{
    struct err e = {0};
    int fd = open_found(u, &e);

    if (fd < 0) {
        disconnect(u, e.text);
        return;
    }
    u->client = client_from_fd(fd);
    client_set_patience(u->client, SEND_MS);
    client_listen(u->client, on_notify, on_answer, u);
    client_listen_signs(u->client, on_sign);
    u->poll = xcalloc(1, sizeof *u->poll);
    u->poll->data = u;
    uv_poll_init(u->loop, u->poll, fd);
    uv_poll_start(u->poll, UV_READABLE, on_readable);
    u->why[0] = '\0';
    follow_events(u);
    u->calls.on_state(u->calls.ctx, true, "");
}

static void
close_connection(struct upstream *u)
{
    if (!u->client)
        return;
    uv_poll_stop(u->poll);
    uv_close((uv_handle_t *)u->poll, on_closed);
    u->poll = NULL;
    client_free(u->client);
    u->client = NULL;
}

/* Every waiting request gets an error. Requests that the callbacks make wait for the next
 * connection. */
static void
disconnect(struct upstream *u, const char *why)
{
    struct question *q = u->asked, *next;
    bool is_news = strcmp(u->why, why) != 0;
    struct err e;

    err_set(&e, ERR_UNREACHABLE, "%s", why);
    memcpy(u->why, e.text, sizeof u->why);
    close_connection(u);
    u->asked = NULL;
    u->asked_end = &u->asked;
    u->n_asked = u->n_sent = 0;
    for (; q; q = next) {
        next = q->next;
        question_end(q, NULL, &e);
    }
    if (is_news)
        u->calls.on_state(u->calls.ctx, false, u->why);
}

static bool
is_overdue(const struct upstream *u, int64_t now_us)
{
    for (const struct question *q = u->asked; q; q = q->next)
        if (q->id && now_us - q->heard_us > PATIENCE_US)
            return true;
    return false;
}

static void
on_tick(uv_timer_t *timer)
{
    struct upstream *u = timer->data;
    int64_t now_us = clock_boot_us();

    if (u->client && is_overdue(u, now_us)) {
        disconnect(
            u,
            "the daemon has not answered for 15 s; it may be stopped or waiting for its disk");
    } else if (now_us > u->wanted_until_us && u->n_asked == 0) {
        close_connection(u);
        uv_timer_stop(u->tick);
    } else if (!u->client) {
        reconnect(u);
    }
}

void
upstream_want(struct upstream *u)
{
    u->wanted_until_us = clock_boot_us() + LINGER_US;
    /* Retries at most once per tick, however many visitors there are. */
    if (!uv_is_active((uv_handle_t *)u->tick))
        uv_timer_start(u->tick, on_tick, 0, TICK_MS);
}

/* --- asking --- */

static void
send_waiting(struct upstream *u)
{
    struct err e = {0};

    for (struct question *q = u->asked; u->client && q && u->n_sent < ON_THE_WAY; q = q->next) {
        if (q->id)
            continue;
        q->id = client_send(u->client, q->method, TAKE(q->params), &e);
        q->heard_us = clock_boot_us();
        u->n_sent++;
        if (q->id < 0) {
            disconnect(u, e.text);
            return;
        }
    }
}

/* Queues the request, and sends it from the loop, so that no caller is answered within its own
 * call. cache.c, the only caller, bounds the number of queued requests. */
void
upstream_ask(struct upstream *u, const char *method, json_t *params, upstream_answer_fn fn,
             void *ctx)
{
    struct question *q = xcalloc(1, sizeof *q);

    q->method = xstrdup(method);
    q->params = params;
    q->fn = fn;
    q->ctx = ctx;
    *u->asked_end = q;
    u->asked_end = &q->next;
    u->n_asked++;
    upstream_want(u);
}

static void
on_prepare(uv_prepare_t *prepare)
{
    struct upstream *u = prepare->data;

    if (u->n_sent < u->n_asked)
        send_waiting(u);
}

struct upstream *
upstream_new(uv_loop_t *loop, const char *socket, const char *dir,
             const struct upstream_calls *calls)
{
    struct upstream *u = xcalloc(1, sizeof *u);

    u->loop = loop;
    u->socket = socket;
    u->dir = dir;
    u->calls = *calls;
    u->asked_end = &u->asked;
    u->tick = xcalloc(1, sizeof *u->tick);
    u->tick->data = u;
    uv_timer_init(loop, u->tick);
    u->prepare = xcalloc(1, sizeof *u->prepare);
    u->prepare->data = u;
    uv_prepare_init(loop, u->prepare);
    uv_prepare_start(u->prepare, on_prepare);
    return u;
}

void
upstream_free(struct upstream *u)
{
    struct question *next;

    if (!u)
        return;
    for (struct question *q = u->asked; q; q = next) {
        next = q->next;
        question_end(q, NULL, NULL);
    }
    close_connection(u);
    uv_close((uv_handle_t *)u->tick, on_closed);
    uv_close((uv_handle_t *)u->prepare, on_closed);
    free(u);
}
