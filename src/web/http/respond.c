/* Sending replies: see respond.h. */
#include "web/http/respond.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "web/http/reply.h"

/* Allows only our own scripts and style sheets; forbids frames and requests to other sites. */
static const char *const headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
     "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    /* "no-referrer" would remove the Origin from our own forms too. */
    {"Referrer-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
};

static void
add_common(struct MHD_Response *response)
{
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
}

static void
on_sent(void *cls)
{
    reply_unref(cls);
}

static bool
takes_gzip(struct MHD_Connection *connection)
{
    const char *accept =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept-Encoding");

    return accept && strstr(accept, "gzip") && !strstr(accept, "gzip;q=0");
}

/* True if the browser's If-None-Match names this reply. */
static bool
is_known(struct MHD_Connection *connection, const struct reply *reply)
{
    const char *known =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "If-None-Match");

    return known && strstr(known, reply->etag);
}

static struct MHD_Response *
make_response(struct MHD_Connection *connection, struct reply *reply)
{
    const struct buf *packed = takes_gzip(connection) ? reply_packed(reply) : NULL;
    const struct buf *body = packed ? packed : &reply->body;
    struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
        body->len, body->len ? body->data : "", on_sent, reply_ref(reply));

    if (response && packed)
        MHD_add_response_header(response, "Content-Encoding", "gzip");
    return response;
}

/* "no-cache" lets the browser keep it, but revalidate it each time. */
static void
add_own(struct MHD_Response *response, const struct reply *reply)
{
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "private, no-cache");
    MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept-Encoding, Cookie");
    if (reply->status == 200)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, reply->etag);
    if (reply->status == 401)
        MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                                "Bearer realm=\"berth\"");
    if (reply->status == 405)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
}

static enum MHD_Result
lead_on(struct MHD_Connection *connection, const struct reply *reply, const char *cookie)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    enum MHD_Result rc;

    if (!response)
        return MHD_NO;
    add_common(response);
    MHD_add_response_header(response, MHD_HTTP_HEADER_LOCATION, buf_str(&reply->body));
    MHD_add_response_header(response, MHD_HTTP_HEADER_SET_COOKIE, cookie);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    rc = MHD_queue_response(connection, MHD_HTTP_SEE_OTHER, response);
    MHD_destroy_response(response);
    return rc;
}

enum MHD_Result
respond(struct MHD_Connection *connection, struct reply *reply, const char *cookie)
{
    struct MHD_Response *response;
    bool known = reply->status == 200 && is_known(connection, reply);
    enum MHD_Result rc;

    if (cookie)
        return lead_on(connection, reply, cookie);
    response = known ? MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT)
                     : make_response(connection, reply);
    if (!response)
        return MHD_NO;
    add_common(response);
    add_own(response, reply);
    rc = MHD_queue_response(connection, known ? MHD_HTTP_NOT_MODIFIED : (unsigned)reply->status,
                            response);
    MHD_destroy_response(response);
    return rc;
}

enum MHD_Result
respond_stream(struct MHD_Connection *connection, struct MHD_Response *response)
{
    enum MHD_Result rc;

    add_common(response);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    MHD_add_response_header(response, "X-Accel-Buffering", "no"); /* nginx would buffer it */
    rc = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return rc;
}

static const char *
kind_of(int status)
{
    switch (status) {
    case 401:
    case 403:
    case 421:
        return "permission";
    case 404:
        return "no_job";
    case 405:
        return "usage";
    default:
        return "failed";
    }
}

struct reply *
respond_words(int status, const char *words)
{
    return reply_json(
        status, json_pack("{s:{s:s,s:s}}", "error", "kind", kind_of(status), "message", words));
}
