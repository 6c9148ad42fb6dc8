/* Columns of squeue and sinfo, "%.18i %.9P" or "jobid:10,state:.8"; and the values of columns,
 * also for sacct. Pure. */
#ifndef COMPAT_SLURM_SLURM_TABLE_H
#define COMPAT_SLURM_SLURM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct slurm_job;
struct slurm_machine;

/* One line: a job, a step of a job, or (sinfo) the machine. */
struct slurm_row {
    const struct slurm_job *job;
    const struct slurm_machine *machine;
    bool is_step; /* the job's step: its script (12.batch) or program (12.0) */
};

/* The value of a column: the first of these members that is set gives it; if the result is
 * empty, `otherwise` is shown. In a table: NUMBER(slurm_cpus), OTHERWISE("N/A"). */
struct slurm_value {
    const char *constant;
    void (*add)(struct buf *out, const struct slurm_job *job);
    void (*add_row)(struct buf *out, const struct slurm_row *row);
    const char *(*text)(const struct slurm_job *job);
    const char *key; /* of a text in the daemon's object */
    int64_t (*time_us)(const struct slurm_job *job);
    int64_t (*number)(
        const struct slurm_job *job); /* squeue sorts by it, however it is shown */
    const char *otherwise;            /* NULL: leave it empty */
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

/* A column to choose from. */
struct slurm_field {
    char letter;      /* for -o; 0: none */
    const char *name; /* for -O; NULL: none */
    const char *header;
    int detail; /* enum slurm_detail it needs */
    struct slurm_value value;
};
/* Fields of squeue; terminated by a NULL header. */
extern const struct slurm_field squeue_fields[];
/* The field with this letter; NULL: none. */
const struct slurm_field *slurm_field_of(const struct slurm_field *fields, char letter);

struct slurm_column {
    const struct slurm_field *field; /* NULL: only the suffix */
    int width;                       /* 0: as wide as the text */
    bool right;
    char *suffix; /* owned */
};

struct slurm_table {
    struct slurm_column *at; /* owned */
    size_t n, cap;
    char *prefix;  /* owned; text before the first column */
    char *unknown; /* owned; unknown letters in -o; NULL: none */
};

#define auto_slurm_table __attribute__((cleanup(slurm_table_free)))
void slurm_table_free(struct slurm_table *t);

/* Parse -o: "%[[.]size]letter[suffix]". An item with an unknown letter is kept as text and the
 * letter added to unknown. fields ends with a NULL header. */
void slurm_table_letters(struct slurm_table *t, const struct slurm_field *fields,
                         const char *format);
/* Parse -O: "name[:[.][size][suffix]]", default width 20. ERR_USAGE with the unknown name. */
int slurm_table_names(struct slurm_table *t, const struct slurm_field *fields,
                      const char *format, struct err *e);

/* The highest detail any column needs. */
int slurm_table_detail(const struct slurm_table *t);
void slurm_table_add_header(const struct slurm_table *t, struct buf *out);
void slurm_table_add_row(const struct slurm_table *t, const struct slurm_row *row,
                         struct buf *out);

#endif
