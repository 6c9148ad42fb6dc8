/* A table of text in aligned columns. All cells are in one buffer, so that ten thousand rows
 * need two allocations; widths are known after the last cell. An optional column without
 * content is omitted. The last column is truncated to the terminal's width. */
#ifndef CLI_TABLE_TABLE_H
#define CLI_TABLE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/common/term.h"

struct buf;
struct table;

struct column {
    const char *title;
    bool right;    /* for numbers */
    bool optional; /* omitted if every cell is empty or "-" */
};

/* n columns, at most 32; the array is borrowed and must outlive the table. */
struct table *table_new(const struct column *columns, int n);

/* Adds the next cell, row by row; s is made safe for a terminal. "" shows as "-" except in the
 * last column. */
void table_cell(struct table *t, enum style style, const char *s);
void table_cell_int(struct table *t, long long v);
void table_no_header(struct table *t);        /* omits the line of titles */
void table_hide(struct table *t, int column); /* omits the column, whatever its content */
void table_show_all(struct table *t);         /* shows optional columns even if empty */
void table_cut(struct table *t, int column, int max); /* truncates later cells, with "..."; 0:
                                                         no limit */
size_t table_rows(const struct table *t);

/* Appends the whole table, with a line of titles unless table_no_header was called. */
void table_print(const struct table *t, const struct term *term, struct buf *out);

/* Frees a table at the end of its scope. */
#define auto_table __attribute__((cleanup(table_cleanup)))
void table_cleanup(struct table **t);

#endif
