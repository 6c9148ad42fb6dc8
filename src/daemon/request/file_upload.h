/* A jobs file that arrives in several requests: all but the last have `more`, and their lines
 * are kept until the last arrives on the same connection. A client may send them without
 * waiting for answers; if one is refused, so is the last one of the file, because lines
 * are missing. */
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

/* For all clients. All arguments are borrowed. */
struct uploads *uploads_new(const struct instance *inst, const struct roles *roles,
                            const struct budget *budget, struct modelfile *models);
void uploads_free(struct uploads *u);

/* First check of a request: path of the file, presence of lines, and which part of the file
 * it is. */
int file_upload_check(struct uploads *all, const struct caller *c, struct sync *s,
                      const json_t *params, struct err *e);
/* Reads the request's lines into *s, after those kept of the same file, until the boot clock
 * reaches until_us. WORK_MORE; WORK_DONE: *s has all lines; -1 with e: nothing is kept any
 * longer. Requests of one connection are read in their order. */
int file_upload_read(struct uploads *all, const struct caller *c, struct sync *s,
                     const json_t *params, int64_t until_us, struct err *e);
/* The same for a request without the end of the file: its lines are kept for the next request,
 * *s becomes empty, and the answer is an empty object. */
int file_upload_part(struct uploads *all, const struct caller *c, struct sync *s,
                     int64_t until_us, struct jsonw *out, struct err *e);
/* A request ends, whether or not it was read completely. */
void file_upload_leave(struct uploads *all, const struct sync *s);
void file_uploads_drop_client(struct uploads *all, const struct client *client);
/* A request of this client could not be read; it may have been part of a file. */
void file_uploads_unread(struct uploads *all, const struct client *client);

#endif
