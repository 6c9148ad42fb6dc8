/* The columns of sacct. */
#ifndef COMPAT_SLURM_SLURM_SACCT_H
#define COMPAT_SLURM_SLURM_SACCT_H

#include <stdbool.h>
#include <stddef.h>

#include "compat/slurm/slurm_table.h"

struct buf;
struct err;

/* Name of the job's step: "batch", or "0" for a program of srun. */
const char *sacct_step(const struct slurm_job *job);

struct sacct_field {
    const char *name; /* also the header */
    int width;        /* negative: left-aligned */
    struct slurm_value value;
    enum { SACCT_BOTH, SACCT_JOB, SACCT_STEP } of; /* which lines have a value */
};

/* In the order of --helpformat; terminated by a NULL name. */
extern const struct sacct_field sacct_fields[];
/* Fields of later releases that current scripts use: not in -e or ALL, and abbreviations match
 * sacct_fields first. */
extern const struct sacct_field sacct_later_fields[];

struct sacct_column {
    const struct sacct_field *field;
    int width;
};

struct sacct_table {
    struct sacct_column *at; /* owned */
    size_t n, cap;
    const char *delimiter; /* NULL: fixed-width columns */
    bool at_end;           /* also after the last column */
};

/* Parse "jobid,state%20,jobname%-10". ERR_USAGE with the unknown name. */
int sacct_read_format(struct sacct_table *t, const char *format, struct err *e);
void sacct_table_free(struct sacct_table *t);
void sacct_add_header(const struct sacct_table *t, struct buf *out);
void sacct_add_row(const struct sacct_table *t, const struct slurm_row *row, struct buf *out);

#endif
