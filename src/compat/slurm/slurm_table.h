/* Columns as squeue and sinfo have them: "%.18i %.9P", "jobid:10,state:.8"; and what stands in
 * a column, of sacct too. Pure. */
#ifndef COMPAT_SLURM_SLURM_TABLE_H
#define COMPAT_SLURM_SLURM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct slurm_job;
struct slurm_machine;

/* A line: a job, a step of one, or (sinfo) the machine. */
struct slurm_row {
    const struct slurm_job *job;
    const struct slurm_machine *machine;
    bool is_step; /* the job's script (12.batch) or its program (12.0) */
};

/* What stands in a column: what the first of these says that is set; where that is nothing,
 * otherwise does. In a table: NUMBER(slurm_cpus), OTHERWISE("N/A"). */
struct slurm_value {
    const char *constant;
    void (*add)(struct buf *out, const struct slurm_job *job);
    void (*add_row)(struct buf *out, const struct slurm_row *row);
    const char *(*text)(const struct slurm_job *job);
    const char *key; /* of a text in what the daemon says of the job */
    int64_t (*time_us)(const struct slurm_job *job);
    int64_t (*number)(
        const struct slurm_job *job); /* squeue sorts by it, however it is shown */
    const char *otherwise;            /* NULL: nothing */
};
#define CONSTANT(words)  .value.constant = (words)
#define ADD(function)    .value.add = (function)
#define ADD_ROW(of_row)  .value.add_row = (of_row)
#define TEXT(function)   .value.text = (function)
#define KEY(name)        .value.key = (name)
#define TIME(function)   .value.time_us = (function)
#define NUMBER(function) .value.number = (function)
#define OTHERWISE(words) .value.otherwise = (words)
void slurm_value_add(const struct slurm_value *v, const struct slurm_row *row, struct buf *out);

/* What can be a column. */
struct slurm_field {
    char letter;      /* of -o; 0: it has none */
    const char *name; /* of -O; NULL: it has none */
    const char *header;
    int detail; /* how much has to be asked for it: enum slurm_detail */
    struct slurm_value value;
};
/* Those of squeue; a NULL header ends them. */
extern const struct slurm_field squeue_fields[];
/* NULL: no field has the letter. */
const struct slurm_field *slurm_field_of(const struct slurm_field *fields, char letter);

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
void slurm_table_add_row(const struct slurm_table *t, const struct slurm_row *row,
                         struct buf *out);

#endif
