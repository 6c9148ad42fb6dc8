/* The rows of an answer to `jobs`: selected columns, parsed and sorted. For the table of the
 * queue and for `berth top`. */
#ifndef CLI_TABLE_QUEUE_ROWS_H
#define CLI_TABLE_QUEUE_ROWS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/table/queue_columns.h"

struct err;
struct queue_place;

#define QUEUE_SORT_MAX 4

struct queue_format {
    const struct queue_column *column[QUEUE_COLUMNS_MAX];
    struct column shape[QUEUE_COLUMNS_MAX];
    int cut[QUEUE_COLUMNS_MAX]; /* maximum width; 0: unlimited */
    int n;
    uint64_t needs; /* fields, as a mask */
    int at[FIELDS]; /* position of a field in a row; -1: not requested */
    struct {
        enum field by;
        bool down; /* largest first */
    } sort[QUEUE_SORT_MAX];
    int n_sort;
};

/* columns: "id,user,reason:40"; sort: "-priority,id", or NULL; also: further fields to
 * request. 0, or -1 with an error that lists the valid names. */
int queue_format_read(struct queue_format *f, const char *columns, const char *sort,
                      uint64_t also, struct err *e);

/* The fields to request from the daemon; the caller owns the result. */
json_t *queue_format_fields(const struct queue_format *f);

struct queue_rows {
    struct queue_place *v; /* owned */
    size_t n, cap;
    const char *end;
    bool own; /* all jobs are the caller's */
};

/* Finds and sorts the rows in the text of an answer, which must outlive them. */
void queue_rows_find(struct queue_format *f, const char *text, size_t len,
                     struct queue_rows *out);
bool queue_rows_read(const struct queue_format *f, const struct queue_rows *rows, size_t i,
                     struct row *row);
void queue_rows_free(struct queue_rows *rows);

#endif
