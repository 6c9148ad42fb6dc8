/* A job as an object, or some of its fields as a row: docs/protocol.md, "A job object". */
#ifndef DAEMON_VIEW_JOB_VIEW_H
#define DAEMON_VIEW_JOB_VIEW_H

#include <stddef.h>

struct attr;
struct err;
struct job;
struct jsonw;
struct views;

/* What the fields are computed from. */
struct jobjson {
    struct views *views;
    const struct job *job;
    const char *const *uuids; /* of the GPUs of job->run; NULL: use the ledger's */
};

/* Writes the whole object; reads earlier attempts from the store if there are any. */
void jobjson_object(const struct jobjson *x, struct jsonw *w);

struct jobjson_entry {
    const char *name;                                        /* NULL: end of the table */
    void (*write)(const struct jobjson *x, struct jsonw *w); /* NULL: use attr */
    const struct attr *attr;                                 /* row of the attribute */
};
extern const struct jobjson_entry jobjson_request[];               /* job_view_request.c */
void jobjson_submission(const struct jobjson *x, struct jsonw *w); /* job_view_request.c */

size_t jobjson_count(void); /* number of fields */
/* NULL: there is no such field. */
const struct jobjson_entry *jobjson_find(const char *name);
void jobjson_value(const struct jobjson_entry *f, const struct jobjson *x, struct jsonw *w);
void jobjson_attr(const struct attr *a, const struct jobjson *x, struct jsonw *w);

#endif
