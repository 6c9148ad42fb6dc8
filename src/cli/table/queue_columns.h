/* The columns of the queue: the fields of a job that each draws from, and how. */
#ifndef CLI_TABLE_QUEUE_COLUMNS_H
#define CLI_TABLE_QUEUE_COLUMNS_H

#include <stdint.h>

#include "cli/ask/json_scan.h"
#include "cli/table/table.h"

struct buf;
struct err;

/* The fields of a job that columns draw from, in the order of a row. */
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

extern const char *const queue_field_names[FIELDS]; /* as the daemon calls them */

/* The values of one row by field; of type SCAN_NONE: not asked for. */
struct row {
    struct scan_value v[FIELDS];
};

struct queue_column {
    const char *name;
    struct column shape;
    enum field key; /* what --sort compares */
    uint64_t more;  /* other fields that it needs, a bit each */
    void (*draw)(const struct row *row, struct buf *out);
};

extern const struct queue_column queue_columns[]; /* ends with a NULL name */
#define QUEUE_COLUMNS_MAX 32
#define FIELD_BIT(f)      (UINT64_C(1) << (f))

/* Draws the cell of the column of that name; nothing when there is none. */
void queue_column_draw(const char *name, const struct row *row, struct buf *out);

/* A time's wall clock; 0: null. */
int64_t queue_time_us(const struct scan_value *v);

/* The column of that name (n bytes); NULL, and said which is nearest. */
const struct queue_column *queue_column_find(const char *name, size_t n, struct err *e);

#endif
