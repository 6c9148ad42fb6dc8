/* A table of text in aligned columns. All cells live in one buffer, so ten thousand rows
 * are two allocations; the widths are known once the last cell is in. An optional column
 * without a single cell of content is left out. The last column is cut to the terminal. */
#ifndef CLI_TABLE_TABLE_H
#define CLI_TABLE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/common/term.h"

struct buf;
struct table;

struct column {
    const char *title;
    bool right;    /* numbers */
    bool optional; /* left out when every cell is empty or "-" */
};

/* n columns, at most 32; the array is borrowed and has to stay. */
struct table *table_new(const struct column *columns, int n);

/* The next cell, row by row: s is made safe for a terminal. "" shows as "-" unless it is in
 * the last column. */
void table_cell(struct table *t, enum style style, const char *s);
void table_cell_int(struct table *t, long long v);
void table_no_header(struct table *t);                /* without the line of titles */
void table_hide(struct table *t, int column);         /* leaves it out, whatever is in it */
void table_show_all(struct table *t);                 /* optional columns too, if empty */
void table_cut(struct table *t, int column, int max); /* cells to come, with "..."; 0: as wide
                                                          as they are */
size_t table_rows(const struct table *t);

/* Appends the whole table, with a line of titles unless that was turned off. */
void table_print(const struct table *t, const struct term *term, struct buf *out);

/* The caller frees it so. */
#define auto_table __attribute__((cleanup(table_cleanup)))
void table_cleanup(struct table **t);

#endif
