/* A request with many jobs, sent in pieces that are small enough for any user:
 * docs/protocol.md, `more`. Used for jobs files by `berth run` and by the drop-in commands.
 *
 *     w = bulk_begin(&b, client, "file.sync");    sent with each piece: path, fit
 *     w = bulk_job(&b); ...; bulk_next(&b, e);    the fields of each job
 *     w = bulk_rest(&b);                          sent with the last piece: cwd, env
 *     bulk_finish(&b, &result, e); bulk_free(&b); */
#ifndef CLI_ASK_BULK_H
#define CLI_ASK_BULK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/jsonw.h"

struct client;
struct err;

struct bulk {
    struct client *client; /* borrowed, as is the method */
    const char *method;
    struct buf each, jobs, rest;
    struct jsonw w;
    size_t n;       /* number of jobs in `jobs` */
    bool has_begun; /* a piece has been sent */
    int64_t asked;  /* id of the piece in flight; 0: none */
};

struct jsonw *bulk_begin(struct bulk *b, struct client *client, const char *method);
struct jsonw *bulk_job(struct bulk *b);
/* Call after the fields of a job. If the buffered jobs are enough for a piece, sends them
 * without waiting for the answer, so that the next piece is built while the daemon reads this
 * one. -1 with e if the previous piece was refused. Do not send other requests on the client
 * until bulk_finish. */
int bulk_next(struct bulk *b, struct err *e);
struct jsonw *bulk_rest(struct bulk *b);
/* Returns as client_call. */
int bulk_finish(struct bulk *b, json_t **result, struct err *e);
void bulk_free(struct bulk *b); /* frees the contents, not b */

#endif
