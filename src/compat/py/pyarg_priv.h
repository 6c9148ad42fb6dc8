/* What pyarg.c and pyarg_words.c share. */
#ifndef COMPAT_PY_PYARG_PRIV_H
#define COMPAT_PY_PYARG_PRIV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "compat/py/pyarg.h"

/* A word of the command line as argparse takes it, before anything of it is obeyed. */
struct word {
    char kind;             /* A: an argument; O: an option; -: the first -- */
    const struct pyarg *a; /* the option; NULL: an unknown one */
    bool is_long;          /* said by a name with two dashes */
    const char *value;     /* in the same word; NULL: none */
};

struct reader {
    const struct pyarg_parser *p;
    int argc;
    char **argv;
    struct word *words;
    struct pyarg_value *values;
    struct pyarg_value *of_command;
    struct buf extras; /* unknown words */
    int n_extras;
    int command; /* index of what was said; PYARG_NONE */
    int status;
    bool done;
};

/* Fills words; may fail. */
void pyarg_classify(struct reader *r);
/* The option of that whole name of n bytes. */
const struct pyarg *pyarg_find_exact(const struct reader *r, const char *word, size_t n);

/* pyarg.c: says what is wrong, and it is over. */
void pyarg_fail(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
