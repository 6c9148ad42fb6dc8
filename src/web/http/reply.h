/* The answer to a request: bytes that do not change any more, shared by all requests for the
 * same (counted), with the tag by which a browser asks whether they are still the same, and a
 * packed form that is made once, for the first client that accepts it. */
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
    int status;       /* of HTTP */
    const char *type; /* of the content; static text */
    struct buf body;
    json_t *tree; /* what body says, where it is JSON that pages are made of; may be NULL */
    struct buf packed;
    bool packing_tried;
    char etag[44]; /* quoted */
};

/* Takes the bytes. The one reference is the caller's. */
struct reply *reply_new(int status, const char *type, struct buf *body);
/* Takes the tree. */
struct reply *reply_json(int status, json_t *tree);
/* {"error":{"kind","message"}} with the status that the code means. */
struct reply *reply_error(const struct err *why);

struct reply *reply_ref(struct reply *r);
void reply_unref(struct reply *r); /* NULL is fine */

/* The gzip form; NULL where it would not be shorter. Borrowed. */
const struct buf *reply_packed(struct reply *r);

#endif
