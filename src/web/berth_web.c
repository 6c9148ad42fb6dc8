/* berth-web: options, the listening socket, the loop. http_server.c serves pages; upstream.c
 * queries berthd. It runs as any user, starts no daemon, and has that user's rights at the
 * daemon. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/err.h"
#include "web/http/gate.h"
#include "web/http_server.h"
#include "web/pages/cache.h"
#include "web/pages/live_pages.h"
#include "web/pages/upstream.h"
#include "web/pages/web_page.h"
#include "web/web_listener.h"
#include "web/web_options.h"

struct program {
    uv_loop_t loop;
    uv_signal_t on_term, on_int;
    struct options options;
    struct gate gate;
    struct page_context page;
    char host[256];
    struct live *live;
    struct upstream *upstream;
    struct cache *cache;
    struct server *server;
};

static void
on_event(void *ctx, const json_t *event)
{
    live_pages_on_event(ctx, event);
}

static void
on_state(void *ctx, bool connected, const char *why)
{
    live_pages_on_state(ctx, connected, why);
}

static void
on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    uv_stop(handle->loop);
}

static int
open_gate(struct program *p, struct err *e)
{
    if (gethostname(p->host, sizeof p->host - 1) < 0 || !p->host[0])
        snprintf(p->host, sizeof p->host, "this machine");
    p->gate.names = p->options.names;
    p->gate.own_name = p->host;
    p->page = (struct page_context){.host = p->host, .has_token = p->options.token_file};
    return p->options.token_file ? gate_read_token(&p->gate, p->options.token_file, e) : 0;
}

static int
start_server(struct program *p, char *address, size_t size, struct err *e)
{
    int fd = web_listener_open(&p->options, address, size, e);
    const struct server_parts parts = {
        .cache = p->cache,
        .live = p->live,
        .gate = &p->gate,
        .page = &p->page,
        .check_peers =
            p->options.is_loopback && !p->options.unix_path && !p->options.allow_local,
    };

    if (fd < 0)
        return -1;
    p->server = http_server_new(&p->loop, fd, &parts, e);
    return p->server ? 0 : -1;
}

static void
say_ready(const struct options *o, const char *address)
{
    printf("berth-web: %s\n", address);
    fflush(stdout);
    if (o->ready_fd < 0)
        return;
    dprintf(o->ready_fd, "%s\n", address);
    close(o->ready_fd);
}

static int
start(struct program *p, struct err *e)
{
    const struct upstream_calls calls = {on_event, on_state,
                                         p->live = live_pages_new(&p->loop)};
    char address[512];

    p->upstream = upstream_new(&p->loop, p->options.socket, p->options.dir, &calls);
    p->cache = cache_new(p->upstream);
    if (open_gate(p, e) < 0 || start_server(p, address, sizeof address, e) < 0)
        return -1;
    live_pages_join(p->live, p->cache, http_server_stream(p->server));
    uv_signal_init(&p->loop, &p->on_term);
    uv_signal_init(&p->loop, &p->on_int);
    uv_signal_start(&p->on_term, on_signal, SIGTERM);
    uv_signal_start(&p->on_int, on_signal, SIGINT);
    say_ready(&p->options, address);
    return 0;
}

static void
on_left(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void
end(struct program *p)
{
    http_server_free(p->server);
    upstream_free(p->upstream);
    cache_free(p->cache);
    live_pages_free(p->live);
    gate_free(&p->gate);
    if (p->options.unix_path && p->server)
        unlink(p->options.unix_path);
    uv_walk(&p->loop, on_left, NULL); /* the signal handles */
    uv_run(&p->loop, UV_RUN_NOWAIT);
    /* Fails with EBUSY while a log is still being read from a file server that does not
     * answer. */
    (void)uv_loop_close(&p->loop);
}

int
main(int argc, char **argv)
{
    struct program p = {0};
    struct err e = {0};
    int rc = web_options_parse(argc, argv, &p.options, &e);

    if (rc > 0)
        return 0;
    if (rc < 0) {
        fprintf(stderr, "berth-web: %s\n", e.text);
        return err_exit_status(e.code);
    }
    signal(SIGPIPE, SIG_IGN);
    rc = uv_loop_init(&p.loop);
    if (rc) {
        fprintf(stderr, "berth-web: cannot make a loop: %s\n", uv_strerror(rc));
        return 1;
    }
    rc = start(&p, &e);
    if (rc == 0)
        uv_run(&p.loop, UV_RUN_DEFAULT);
    else
        fprintf(stderr, "berth-web: %s\n", e.text);
    end(&p);
    return rc == 0 ? 0 : err_exit_status(e.code);
}
