/* Properties of standard output: a terminal with a width and perhaps colour, or a pipe. */
#ifndef CLI_COMMON_TERM_H
#define CLI_COMMON_TERM_H

#include <stdbool.h>

struct buf;

enum style {
    STYLE_NONE,
    STYLE_DIM,
    STYLE_BOLD,
    STYLE_GOOD, /* green */
    STYLE_BUSY, /* cyan */
    STYLE_WARN, /* yellow */
    STYLE_BAD,  /* red */
    /* to distinguish neighbours; without a meaning of their own */
    STYLE_HUE_A,
    STYLE_HUE_B,
    STYLE_HUE_C,
    STYLES,
};

struct term {
    bool tty;
    bool color;  /* tty, NO_COLOR unset or empty, TERM is not "dumb" */
    int columns; /* 0: unlimited (a pipe) */
};

struct term term_of_stdout(void);
/* The terminal's current width; 0 if it is not a terminal. */
int term_columns(void);
/* The terminal's current height; 0 if it is not a terminal. */
int term_rows(void);

/* Appends s in that style; plain without colour. */
void term_add(const struct term *t, struct buf *out, enum style style, const char *s);

#endif
