/* Server-sent events: messages to every open tab. They are stored once, in a ring; a listener
 * slower than the ring gets a message about the loss and continues with new messages. */
#ifndef WEB_HTTP_WEB_STREAM_H
#define WEB_HTTP_WEB_STREAM_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

struct stream;

#define STREAM_LISTENERS_MAX 128

struct stream_calls {
    void (*on_change)(void *ctx, int listeners); /* the number of listeners changed */
    void *change_ctx;
    void (*on_resume)(void *ctx); /* MHD must run */
    void *resume_ctx;
};

struct stream *stream_new(const struct stream_calls *calls);
/* Ends every listener's response; before MHD_stop_daemon. */
void stream_end(struct stream *s);
void stream_free(struct stream *s); /* call after stream_end */

/* An endless response for this connection; NULL if there are too many listeners. all: sends
 * the daemon's events too, otherwise only what the pages need. */
struct MHD_Response *stream_listen(struct stream *s, struct MHD_Connection *connection,
                                   bool all);

/* Sends an event: its name, and one line of data. To every listener, or (is_detail) only to
 * those that want all. */
void stream_send(struct stream *s, const char *name, const char *data, size_t n,
                 bool is_detail);
/* Sends a comment line, so that closed connections are detected. */
void stream_beat(struct stream *s);
int stream_listeners(const struct stream *s);

#endif
