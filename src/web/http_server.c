/* HTTP: see http_server.h. libmicrohttpd provides an epoll descriptor and a time of its next
 * call; our loop watches both. */
#include "web/http_server.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "web/http/visitors.h"
#include "web/http/web_stream.h"
#include "web/pages/live_pages.h"
#include "web/web_request.h"

/* More than the maxima of listening (128), silent and reading connections (visitors.h): the
 * rest wait for the daemon, and are answered soon. */
#define CONNECTIONS_MAX  384
#define IDLE_S           30 /* limit for a connection that sends nothing or does not read */
#define CONNECTION_BYTES 16384
#define RUNS_MAX         16 /* runs in a row before other handles of the loop get a turn */

struct server {
    struct web web;
    struct MHD_Daemon *http;
    uv_poll_t *poll;
    uv_timer_t *timer;
};

static void
on_closed(uv_handle_t *handle)
{
    free(handle);
}

/* --- loop --- */

static void on_timer(uv_timer_t *timer);

static void
run(struct server *s)
{
    MHD_UNSIGNED_LONG_LONG ms = 0;

    for (int i = 0; i < RUNS_MAX; i++) {
        MHD_run(s->http);
        if (MHD_get_timeout(s->http, &ms) != MHD_YES) {
            uv_timer_stop(s->timer);
            return;
        }
        if (ms > 0)
            break;
    }
    uv_timer_start(s->timer, on_timer, ms, 0);
}

static void
on_timer(uv_timer_t *timer)
{
    run(timer->data);
}

/* MHD looks at a resumed connection only in its next run. */
static void
on_resume(void *ctx)
{
    struct server *s = ctx;

    uv_timer_start(s->timer, on_timer, 0, 0);
}

static void
on_ready(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    run(poll->data);
}

/* --- making --- */

static void
on_listeners(void *ctx, int listeners)
{
    live_pages_on_listeners(ctx, listeners);
}

static int
start_http(struct server *s, int listener, struct err *e)
{
    const union MHD_DaemonInfo *info;

    s->http = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, request_handle, &s->web,
        MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_NOTIFY_COMPLETED, request_completed,
        &s->web, MHD_OPTION_NOTIFY_CONNECTION, request_connection, &s->web,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
        MHD_OPTION_END);
    if (!s->http)
        return err_set(e, ERR_FAILED, "cannot serve HTTP (libmicrohttpd %s)",
                       MHD_get_version());
    info = MHD_get_daemon_info(s->http, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info)
        return err_set(e, ERR_FAILED, "libmicrohttpd %s has no epoll here", MHD_get_version());
    s->poll = xcalloc(1, sizeof *s->poll);
    s->timer = xcalloc(1, sizeof *s->timer);
    s->poll->data = s->timer->data = s;
    uv_poll_init(s->web.logtail.loop, s->poll, info->epoll_fd);
    uv_timer_init(s->web.logtail.loop, s->timer);
    uv_poll_start(s->poll, UV_READABLE, on_ready);
    return 0;
}

struct server *
http_server_new(uv_loop_t *loop, int listener, const struct server_parts *parts, struct err *e)
{
    struct server *s = xcalloc(1, sizeof *s);

    const struct stream_calls calls = {on_listeners, parts->live, on_resume, s};

    s->web = (struct web){.cache = parts->cache,
                          .visitors = visitors_new(),
                          .stream = stream_new(&calls),
                          .logtail = {.loop = loop},
                          .gate = parts->gate,
                          .page = parts->page,
                          .check_peers = parts->check_peers,
                          .on_resume = on_resume,
                          .ctx = s};
    if (start_http(s, listener, e) == 0)
        return s;
    if (s->http)
        MHD_stop_daemon(s->http);
    else
        close(listener);
    stream_free(s->web.stream);
    visitors_free(s->web.visitors);
    free(s);
    return NULL;
}

struct stream *
http_server_stream(struct server *s)
{
    return s->web.stream;
}

void
http_server_free(struct server *s)
{
    if (!s)
        return;
    /* No connection may be suspended when MHD stops. */
    request_end_all(&s->web);
    stream_end(s->web.stream);
    for (int i = 0; i < RUNS_MAX; i++)
        MHD_run(s->http);
    uv_poll_stop(s->poll);
    uv_close((uv_handle_t *)s->poll, on_closed);
    uv_close((uv_handle_t *)s->timer, on_closed);
    MHD_stop_daemon(s->http);
    stream_free(s->web.stream);
    visitors_free(s->web.visitors);
    free(s);
}
