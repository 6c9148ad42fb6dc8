/* The HTTP server: drives libmicrohttpd from our loop. Every request passes the gate, is
 * routed, and is answered from the cache or when the daemon has replied. One thread. */
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
    bool check_peers; /* only root and this process's user may connect */
};

/* Serves the listening socket and takes ownership of it. */
struct server *http_server_new(uv_loop_t *loop, int listener, const struct server_parts *parts,
                               struct err *e);
struct stream *http_server_stream(struct server *s);
/* Answers every waiting request, and closes the server. */
void http_server_free(struct server *s);

#endif
