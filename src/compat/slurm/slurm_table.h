/* Columns as squeue and sinfo have them: "%.18i %.9P", "jobid:10,state:.8". Pure. */
#ifndef COMPAT_SLURM_SLURM_TABLE_H
#define COMPAT_SLURM_SLURM_TABLE_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;

/* What can be a column. row: whatever the command's table is of. */
struct slurm_field {
    char letter;      /* of -o; 0: it has none */
    const char *name; /* of -O; NULL: it has none */
    const char *header;
    int detail; /* how much has to be asked for it: enum slurm_detail */
    void (*add)(struct buf *out, const void *row);
};

struct slurm_column {
    const struct slurm_field *field; /* NULL: only the suffix */
    int width;                       /* 0: as wide as its text */
    bool right;
    char *suffix; /* owned */
};

struct slurm_table {
    struct slurm_column *at; /* owned */
    size_t n, cap;
    char *prefix;  /* owned; in front of the first column */
    char *unknown; /* owned; letters of -o that are no column's; NULL: none */
};

#define auto_slurm_table __attribute__((cleanup(slurm_table_free)))
void slurm_table_free(struct slurm_table *t);

/* -o: "%[[.]size]letter[suffix]". With a letter that is none of the fields it stands in the
 * table as it is, and the letter is in unknown. fields ends with a NULL header. */
void slurm_table_letters(struct slurm_table *t, const struct slurm_field *fields,
                         const char *format);
/* -O: "name[:[.][size][suffix]]", 20 wide. ERR_USAGE with the name that is none. */
int slurm_table_names(struct slurm_table *t, const struct slurm_field *fields,
                      const char *format, struct err *e);

/* The most that any column asks for. */
int slurm_table_detail(const struct slurm_table *t);
void slurm_table_add_header(const struct slurm_table *t, struct buf *out);
void slurm_table_add_row(const struct slurm_table *t, const void *row, struct buf *out);

#endif
