/* The columns of the queue: the job's fields that each uses, and its drawing function. */
#ifndef CLI_TABLE_QUEUE_COLUMNS_H
#define CLI_TABLE_QUEUE_COLUMNS_H

#include <stdint.h>

#include "cli/ask/json_scan.h"
#include "cli/table/table.h"

struct buf;
struct err;

/* The fields of a job that columns use, in the order of a row. */
enum field {
    F_ID,
    F_ARRAY_JOB,
    F_ARRAY_TASK,
    F_ARRAY,
    F_USER,
    F_NAME,
    F_STATE,
    F_GPUS,
    F_GPUS_WANTED,
    F_VRAM,
    F_SHARE,
    F_DECLARED,
    F_PEAK,
    F_NOW,
    F_RUN_MS,
    F_LIMIT_MS,
    F_PRIORITY,
    F_REASON,
    F_EXIT_CODE,
    F_SIGNAL,
    F_FILE,
    F_LINE,
    F_CWD,
    F_LOG,
    F_COMMAND,
    F_SUBMITTED,
    F_STARTED,
    F_ENDED,
    F_EXPECTED,
    F_LATEST,
    F_TAGS,
    F_AFTER,
    F_AUTO,
    F_WAIT_MS,
    F_VERDICT,
    F_UTIL,
    F_TEXT,
    F_CANCELLED_BY,
    FIELDS,
};

extern const char *const queue_field_names[FIELDS]; /* the daemon's names */

/* The values of one row, by field; type SCAN_NONE: not requested. */
struct row {
    struct scan_value v[FIELDS];
};

struct queue_column {
    const char *name;
    struct column shape;
    enum field key; /* the field that --sort compares */
    uint64_t more;  /* further fields that it needs, as a mask */
    void (*draw)(const struct row *row, struct buf *out);
};

extern const struct queue_column queue_columns[]; /* terminated by a NULL name */
#define QUEUE_COLUMNS_MAX 32
#define FIELD_BIT(f)      (UINT64_C(1) << (f))

/* Draws the cell of the named column; nothing if there is no such column. */
void queue_column_draw(const char *name, const struct row *row, struct buf *out);

/* The wall clock of a time value; 0: null. */
int64_t queue_time_us(const struct scan_value *v);

/* Finds a column by name (n bytes); NULL, with an error that suggests the nearest. */
const struct queue_column *queue_column_find(const char *name, size_t n, struct err *e);

#endif
