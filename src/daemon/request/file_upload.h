/* A jobs file that comes in several requests: all but the last have `more`, and their lines are
 * kept until that one comes on the same connection. A client may send them at once: when one is
 * refused, what has come of its file behind it is refused at the last, as lines are missing. */
#ifndef DAEMON_REQUEST_FILE_UPLOAD_H
#define DAEMON_REQUEST_FILE_UPLOAD_H

#include <jansson.h>
#include <stdint.h>

struct budget;
struct caller;
struct client;
struct err;
struct instance;
struct jsonw;
struct modelfile;
struct roles;
struct sync;
struct uploads;

/* Of all clients. What it is given is borrowed. */
struct uploads *uploads_new(const struct instance *inst, const struct roles *roles,
                            const struct budget *budget, struct modelfile *models);
void uploads_free(struct uploads *u);

/* The first look at a request: where its file lies, that there are lines, and which part of the
 * file it is. */
int file_upload_check(struct uploads *all, const struct caller *c, struct sync *s,
                      const json_t *params, struct err *e);
/* Reads the request's lines into *s, behind those that were kept of the same file, until the
 * boot clock says until_us. WORK_MORE; or WORK_DONE when *s has them all; -1 with e, and
 * nothing is kept any longer. Requests of one connection are read in their order. */
int file_upload_read(struct uploads *all, const struct caller *c, struct sync *s,
                     const json_t *params, int64_t until_us, struct err *e);
/* The same for a request that has not all of the file: once they are read they are kept for the
 * request that has the rest, *s is empty, and the answer is an empty object. */
int file_upload_part(struct uploads *all, const struct caller *c, struct sync *s,
                     int64_t until_us, struct jsonw *out, struct err *e);
/* A request that goes, read to its end or not. */
void file_upload_leave(struct uploads *all, const struct sync *s);
void file_uploads_drop_client(struct uploads *all, const struct client *client);
/* A request of this client's could not be read: it may have been part of a file. */
void file_uploads_unread(struct uploads *all, const struct client *client);

#endif
