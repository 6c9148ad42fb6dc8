/* The command line of a program that takes long options and no words: berthd, berth-web and
 * berth-probe. `berth` itself has verbs, letters and suggestions: cli/common/opt.h. */
#ifndef BASE_LONG_OPTIONS_H
#define BASE_LONG_OPTIONS_H

#include <stddef.h>

struct err;

enum long_option_kind {
    LONG_OPTION_TEXT, /* const char *: the value as it stands */
    LONG_OPTION_FLAG, /* bool: that it was given; it has no value */
    LONG_OPTION_FD,   /* int: a descriptor, 3 or more */
    LONG_OPTION_TAKE, /* what `take` makes of the value */
};

struct long_option {
    const char *name; /* NULL: the end of the table */
    enum long_option_kind kind;
    size_t at;                                                /* where it goes in *out */
    int (*take)(void *out, const char *value, struct err *e); /* 0 or -1; LONG_OPTION_TAKE */
};

/* Fills *out from argv. --help prints help, --version "PROGRAM VERSION"; then the program is to
 * end. Values are borrowed from argv. 0: go on; 1: one of those was printed; -1: ERR_USAGE. */
int long_options_read(int argc, char **argv, const struct long_option *table, const char *help,
                      const char *program, void *out, struct err *e);

#endif
