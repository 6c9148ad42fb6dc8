/* Server-sent events: messages to every tab that listens. They are kept once, in a ring; a
 * listener that is slower than the ring gets a message about that and continues with what is
 * new. */
#ifndef WEB_HTTP_WEB_STREAM_H
#define WEB_HTTP_WEB_STREAM_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

struct stream;

#define STREAM_LISTENERS_MAX 128

struct stream_calls {
    void (*on_change)(void *ctx, int listeners); /* how many are there now */
    void *change_ctx;
    void (*on_resume)(void *ctx); /* MHD has to be run */
    void *resume_ctx;
};

struct stream *stream_new(const struct stream_calls *calls);
/* Ends every listener's response; before MHD_stop_daemon. */
void stream_end(struct stream *s);
void stream_free(struct stream *s); /* after it */

/* A response without end for this connection; NULL when there are too many listeners.
 * all: the daemon's events too, else only what the pages need. */
struct MHD_Response *stream_listen(struct stream *s, struct MHD_Connection *connection,
                                   bool all);

/* name: the event's; data: one line. To every listener, or (is_detail) to those that want
 * all. */
void stream_send(struct stream *s, const char *name, const char *data, size_t n,
                 bool is_detail);
/* A line without meaning, by which connections that are gone are noticed. */
void stream_beat(struct stream *s);
int stream_listeners(const struct stream *s);

#endif
