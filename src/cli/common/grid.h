/* A rectangle of character cells with styles, into which full-screen views draw and which
 * their tests inspect. Pure, except that the locale defines the width of characters. Untrusted
 * text goes through grid_put, which removes everything that moves the terminal's cursor. */
#ifndef CLI_COMMON_GRID_H
#define CLI_COMMON_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/common/term.h"

struct buf;

#define GRID_TEXT 20 /* a character with its combining characters, and a NUL */

struct grid_cell {
    char text[GRID_TEXT]; /* "": the right half of a wide character */
    uint8_t style;        /* enum style */
    bool reverse;
};

struct grid {
    int rows, columns;
    bool ascii; /* the terminal supports only ASCII */
    struct grid_cell *cells;
};

/* A part of the grid; may be empty. */
struct area {
    int row, column, rows, columns;
};

struct grid *grid_new(int rows, int columns, bool ascii);
void grid_free(struct grid *g);
void grid_clear(struct grid *g);
struct grid_cell *grid_at(const struct grid *g, int row, int column);

/* Writes s, made safe and truncated to max columns with "...", and returns the columns used.
 * Clips at the edges of the grid. */
int grid_put(struct grid *g, int row, int column, int max, enum style style, const char *s);
int grid_putf(struct grid *g, int row, int column, int max, enum style style, const char *fmt,
              ...) __attribute__((format(printf, 6, 7)));
/* The same, right-aligned: the text ends at the column before `end`. */
void grid_put_right(struct grid *g, int row, int end, int max, enum style style, const char *s);

/* Fills n cells with glyph, or with ascii on an ASCII terminal. */
void grid_fill(struct grid *g, int row, int column, int n, enum style style, const char *glyph,
               char ascii);
void grid_reverse(struct grid *g, int row, int column, int n);

/* Appends a row as text, without trailing blanks. */
void grid_add_row(const struct grid *g, int row, struct buf *out);

#endif
