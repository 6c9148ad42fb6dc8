/* Handles one HTTP request, from its headers to its answer. */
#ifndef WEB_WEB_REQUEST_H
#define WEB_WEB_REQUEST_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#include "web/pages/logtail.h"

struct cache;
struct gate;
struct page_context;
struct stream;
struct visitors;

/* Shared state of all requests. */
struct web {
    struct cache *cache;
    struct stream *stream;
    struct visitors *visitors;
    struct logtail logtail;
    const struct gate *gate;
    const struct page_context *page;
    bool check_peers;
    bool ending;                  /* no request may wait any more */
    void (*on_resume)(void *ctx); /* MHD must run */
    void *ctx;
    struct request *waiting;
};

/* Callbacks for MHD, with cls a struct web. */
enum MHD_Result request_handle(void *cls, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *upload,
                               size_t *n, void **own);
void request_completed(void *cls, struct MHD_Connection *connection, void **own,
                       enum MHD_RequestTerminationCode how);
void request_connection(void *cls, struct MHD_Connection *connection, void **own,
                        enum MHD_ConnectionNotificationCode how);

/* Answers waiting requests with 503: berth-web is being stopped. */
void request_end_all(struct web *w);

#endif
