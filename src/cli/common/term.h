/* What standard output is: a terminal of some width, with or without colour, or a pipe. */
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
    /* to tell neighbours apart; these mean nothing */
    STYLE_HUE_A,
    STYLE_HUE_B,
    STYLE_HUE_C,
    STYLES,
};

struct term {
    bool tty;
    bool color;  /* tty, NO_COLOR unset or empty, TERM is not "dumb" */
    int columns; /* 0: no bound (piped) */
};

struct term term_of_stdout(void);
/* The terminal's width now; 0 when it is none. */
int term_columns(void);
/* Its height now; 0 when it is none. */
int term_rows(void);

/* Appends s in that style; plain without colour. */
void term_add(const struct term *t, struct buf *out, enum style style, const char *s);

#endif
