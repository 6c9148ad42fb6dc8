/* Replies on their way out: headers that every answer has, packing, and "not modified". */
#ifndef WEB_HTTP_RESPOND_H
#define WEB_HTTP_RESPOND_H

#include <microhttpd.h>

struct reply;

/* cookie: a Set-Cookie header, NULL: none. With one the answer leads on (303) to what the
 * reply's body says. */
enum MHD_Result respond(struct MHD_Connection *connection, struct reply *reply,
                        const char *cookie);
/* Destroys the response once it is queued. */
enum MHD_Result respond_stream(struct MHD_Connection *connection,
                               struct MHD_Response *response);

/* {"error":{...}} with this status. The caller owns it. */
struct reply *respond_words(int status, const char *words);

#endif
