/* HTTP: libmicrohttpd driven by our loop, every request gated, routed and answered, from the
 * cache or when the daemon has answered. One thread. */
#ifndef WEB_HTTP_SERVER_H
#define WEB_HTTP_SERVER_H

#include <stdbool.h>
#include <uv.h>

struct cache;
struct err;
struct gate;
struct live;
struct page_context;
struct server;

struct server_parts {
    struct cache *cache;
    struct live *live;
    const struct gate *gate;
    const struct page_context *page;
    bool check_peers; /* only root and the user who runs this may connect */
};

/* Serves the listening socket, which it owns from now on. */
struct server *http_server_new(uv_loop_t *loop, int listener, const struct server_parts *parts,
                               struct err *e);
struct stream *http_server_stream(struct server *s);
/* Answers every waiting request, and closes. */
void http_server_free(struct server *s);

#endif
