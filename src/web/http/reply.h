/* The reply to a request: immutable bytes, shared by equal requests (reference-counted), with
 * an ETag for revalidation and a gzip form that is made once, for the first client that
 * accepts it. */
#ifndef WEB_HTTP_REPLY_H
#define WEB_HTTP_REPLY_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"

struct err;

#define REPLY_JSON "application/json; charset=utf-8"
#define REPLY_HTML "text/html; charset=utf-8"
#define REPLY_TEXT "text/plain; charset=utf-8"

struct reply {
    int refs;
    int status;       /* HTTP status */
    const char *type; /* content type; static text */
    struct buf body;
    json_t *tree; /* body as a tree, if pages are made from it; may be NULL */
    struct buf packed;
    bool packing_tried;
    char etag[44]; /* with quotes */
};

/* Takes over the bytes. The caller owns the only reference. */
struct reply *reply_new(int status, const char *type, struct buf *body);
/* Takes over the tree. */
struct reply *reply_json(int status, json_t *tree);
/* {"error":{"kind","message"}} with the HTTP status for the error's code. */
struct reply *reply_error(const struct err *why);

struct reply *reply_ref(struct reply *r);
void reply_unref(struct reply *r); /* NULL is fine */

/* The gzip form; NULL if it would not be shorter. Borrowed. */
const struct buf *reply_packed(struct reply *r);

#endif
