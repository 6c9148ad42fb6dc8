/* Sends replies: common headers, compression and "not modified". */
#ifndef WEB_HTTP_RESPOND_H
#define WEB_HTTP_RESPOND_H

#include <microhttpd.h>

struct reply;

/* cookie: a Set-Cookie header, or NULL. With a cookie, redirects (303) to the path in the
 * reply's body. */
enum MHD_Result respond(struct MHD_Connection *connection, struct reply *reply,
                        const char *cookie);
/* Queues the response and drops the caller's reference. */
enum MHD_Result respond_stream(struct MHD_Connection *connection,
                               struct MHD_Response *response);

/* {"error":{...}} with this status. The caller owns it. */
struct reply *respond_words(int status, const char *words);

#endif
