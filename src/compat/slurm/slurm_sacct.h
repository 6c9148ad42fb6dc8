/* The columns of sacct. */
#ifndef COMPAT_SLURM_SLURM_SACCT_H
#define COMPAT_SLURM_SLURM_SACCT_H

#include <stdbool.h>
#include <stddef.h>

#include "compat/slurm/slurm_table.h"

struct buf;
struct err;

/* The name of a job's step: "batch", or "0" of one that srun brought. */
const char *sacct_step(const struct slurm_job *job);

struct sacct_field {
    const char *name; /* and header */
    int width;        /* negative: from the left */
    struct slurm_value value;
    enum { SACCT_BOTH, SACCT_JOB, SACCT_STEP } of; /* whose lines have it; others are empty */
};

/* In the order of --helpformat. Ends with a NULL name. */
extern const struct sacct_field sacct_fields[];
/* Those of later releases, which scripts of today ask for: not in -e, ALL or a beginning of a
 * name that one of the others has. */
extern const struct sacct_field sacct_later_fields[];

struct sacct_column {
    const struct sacct_field *field;
    int width;
};

struct sacct_table {
    struct sacct_column *at; /* owned */
    size_t n, cap;
    const char *delimiter; /* NULL: columns of a width */
    bool at_end;           /* one behind the last column too */
};

/* "jobid,state%20,jobname%-10". ERR_USAGE with the name that is none. */
int sacct_read_format(struct sacct_table *t, const char *format, struct err *e);
void sacct_table_free(struct sacct_table *t);
void sacct_add_header(const struct sacct_table *t, struct buf *out);
void sacct_add_row(const struct sacct_table *t, const struct slurm_row *row, struct buf *out);

#endif
