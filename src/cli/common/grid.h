/* A rectangle of character cells with styles: what a full-screen view draws into, and what its
 * tests look at. Pure, but for the locale's word on how wide a character is. Text of other
 * people goes through grid_put, which lets nothing reach the terminal that moves its cursor. */
#ifndef CLI_COMMON_GRID_H
#define CLI_COMMON_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/common/term.h"

struct buf;

#define GRID_TEXT 20 /* a character with what is combined with it, and a NUL */

struct grid_cell {
    char text[GRID_TEXT]; /* "": the right half of a wide character */
    uint8_t style;        /* enum style */
    bool reverse;
};

struct grid {
    int rows, columns;
    bool ascii; /* the terminal shows nothing else */
    struct grid_cell *cells;
};

/* A part of the grid, which may be empty. */
struct area {
    int row, column, rows, columns;
};

struct grid *grid_new(int rows, int columns, bool ascii);
void grid_free(struct grid *g);
void grid_clear(struct grid *g);
struct grid_cell *grid_at(const struct grid *g, int row, int column);

/* Puts s, made safe and cut to max columns with "...", and returns how many it took. What is
 * outside the grid is left out. */
int grid_put(struct grid *g, int row, int column, int max, enum style style, const char *s);
int grid_putf(struct grid *g, int row, int column, int max, enum style style, const char *fmt,
              ...) __attribute__((format(printf, 6, 7)));
/* The same with its end at the column before `end`. */
void grid_put_right(struct grid *g, int row, int end, int max, enum style style, const char *s);

/* n cells of one character of ours, in ASCII where that has to do. */
void grid_fill(struct grid *g, int row, int column, int n, enum style style, const char *glyph,
               char ascii);
void grid_reverse(struct grid *g, int row, int column, int n);

/* A row as text, without blanks at its end. Appends. */
void grid_add_row(const struct grid *g, int row, struct buf *out);

#endif
