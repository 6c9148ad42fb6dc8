/* A job as an object, or some of its fields as a row: docs/protocol.md, "A job object". */
#ifndef DAEMON_VIEW_JOB_VIEW_H
#define DAEMON_VIEW_JOB_VIEW_H

#include <stddef.h>
#include <stdint.h>

struct daemon;
struct err;
struct job;
struct jsonw;

/* What the fields are asked of. */
struct jobjson {
    struct daemon *daemon;
    const struct job *job;
    const char *const *uuids; /* of job->run's cards; NULL: the ledger's */
};

/* The whole object; reads earlier attempts from the store where there are some. */
void jobjson_object(const struct jobjson *x, struct jsonw *w);

typedef void (*jobjson_field)(const struct jobjson *x, struct jsonw *w);
struct jobjson_entry {
    const char *name; /* NULL: the end */
    jobjson_field write;
};
extern const struct jobjson_entry jobjson_request[]; /* job_view_request.c: what was asked */

size_t jobjson_count(void); /* of fields */
/* The writer of one field's value, NULL when there is no such field. */
jobjson_field jobjson_find(const char *name);

#endif
