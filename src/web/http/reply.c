/* Replies as values: see reply.h. */
#include "web/http/reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/err.h"
#include "base/text.h"
#include "wire/json_text.h"

#define PACK_MIN_BYTES 1024
#define PACK_LEVEL     4  /* a third of the default 6's time, for a tenth more bytes */
#define PACK_GZIP      31 /* a window of 15 bits, and gzip's header */

struct reply *
reply_new(int status, const char *type, struct buf *body)
{
    struct reply *r = xcalloc(1, sizeof *r);
    char sum[41];

    r->refs = 1;
    r->status = status;
    r->type = type;
    r->body = *body;
    *body = (struct buf)BUF_INIT;
    text_sha1(buf_str(&r->body), r->body.len, sum);
    snprintf(r->etag, sizeof r->etag, "\"%s\"", sum);
    return r;
}

struct reply *
reply_json(int status, json_t *tree)
{
    char *text = json_dumps(tree, JSON_AS_SENT);
    struct buf body = BUF_INIT;
    struct reply *r;

    buf_adds(&body, text ? text : "null");
    free(text);
    r = reply_new(status, REPLY_JSON, &body);
    r->tree = tree;
    return r;
}

static int
status_of(const struct err *why)
{
    switch (why->code) {
    case ERR_USAGE:
        return 400;
    case ERR_PERMISSION:
        return 403;
    case ERR_NO_JOB:
        return 404;
    case ERR_UNREACHABLE:
        return 503;
    case ERR_TIMED_OUT:
        return 504;
    case ERR_NONE:
    case ERR_FAILED:
    case ERR_REFUSED:
    case ERR_NO_SPACE:
        break;
    }
    return 502;
}

struct reply *
reply_error(const struct err *why)
{
    json_t *tree =
        json_pack("{s:{s:s,s:s}}", "error", "kind", err_name(why->code), "message", why->text);

    /* json_pack rejects text that is not UTF-8. */
    if (!tree)
        tree = json_pack("{s:{s:s,s:s}}", "error", "kind", err_name(why->code), "message",
                         "the reason cannot be shown");
    return reply_json(status_of(why), tree);
}

struct reply *
reply_ref(struct reply *r)
{
    r->refs++;
    return r;
}

void
reply_unref(struct reply *r)
{
    if (!r || --r->refs > 0)
        return;
    buf_free(&r->body);
    buf_free(&r->packed);
    json_decref(r->tree);
    free(r);
}

static void
pack(struct reply *r)
{
    z_stream z = {0};

    if (deflateInit2(&z, PACK_LEVEL, Z_DEFLATED, PACK_GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return;
    buf_reserve(&r->packed, r->body.len);
    z.next_in = (Bytef *)r->body.data;
    z.avail_in = (uInt)r->body.len;
    z.next_out = (Bytef *)r->packed.data;
    z.avail_out = (uInt)r->body.len; /* a result longer than the plain body is useless */
    if (deflate(&z, Z_FINISH) == Z_STREAM_END)
        r->packed.len = r->body.len - z.avail_out;
    else
        buf_free(&r->packed);
    deflateEnd(&z);
}

const struct buf *
reply_packed(struct reply *r)
{
    if (!r->packing_tried && r->body.len >= PACK_MIN_BYTES && r->body.len < (1U << 30))
        pack(r);
    r->packing_tried = true;
    return r->packed.len > 0 ? &r->packed : NULL;
}
