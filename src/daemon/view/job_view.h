/* A job as an object, or some of its fields as a row: docs/protocol.md, "A job object". */
#ifndef DAEMON_VIEW_JOB_VIEW_H
#define DAEMON_VIEW_JOB_VIEW_H

#include <stddef.h>

struct attr;
struct err;
struct job;
struct jsonw;
struct views;

/* What the fields are asked of. */
struct jobjson {
    struct views *views;
    const struct job *job;
    const char *const *uuids; /* of job->run's cards; NULL: the ledger's */
};

/* The whole object; reads earlier attempts from the store where there are some. */
void jobjson_object(const struct jobjson *x, struct jsonw *w);

struct jobjson_entry {
    const char *name;                                        /* NULL: the end */
    void (*write)(const struct jobjson *x, struct jsonw *w); /* NULL: as the row has it */
    const struct attr *attr;                                 /* that row */
};
extern const struct jobjson_entry jobjson_request[]; /* job_view_request.c: what was asked */
void jobjson_submission(const struct jobjson *x, struct jsonw *w); /* job_view_request.c */

size_t jobjson_count(void); /* of fields */
/* NULL: there is no such field. */
const struct jobjson_entry *jobjson_find(const char *name);
void jobjson_value(const struct jobjson_entry *f, const struct jobjson *x, struct jsonw *w);
void jobjson_attr(const struct attr *a, const struct jobjson *x, struct jsonw *w);

#endif
