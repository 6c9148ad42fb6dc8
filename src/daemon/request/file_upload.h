/* A jobs file that comes in several requests: all but the last have `more`, and their lines are
 * kept until that one comes on the same connection. */
#ifndef DAEMON_REQUEST_FILE_UPLOAD_H
#define DAEMON_REQUEST_FILE_UPLOAD_H

#include <jansson.h>

struct caller;
struct client;
struct daemon;
struct err;
struct sync;

/* Adds the request's lines to *s, behind those that were kept of the same file. 1: there is
 * more to come, and *s has been emptied into what is kept; 0: *s has them all; -1 with e, and
 * nothing is kept any longer. */
int file_upload_take(struct daemon *d, const struct caller *c, struct sync *s,
                     const json_t *params, struct err *e);
void file_uploads_drop_client(struct daemon *d, const struct client *client);

#endif
