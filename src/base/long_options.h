/* Command lines with only long options and no operands: berthd, berth-web and berth-probe.
 * `berth` itself has verbs, short options and suggestions: cli/common/opt.h. */
#ifndef BASE_LONG_OPTIONS_H
#define BASE_LONG_OPTIONS_H

#include <stddef.h>

struct err;

enum long_option_kind {
    LONG_OPTION_TEXT, /* const char *: the value, borrowed */
    LONG_OPTION_FLAG, /* bool: set to true; takes no value */
    LONG_OPTION_FD,   /* int: a descriptor, 3 or more */
    LONG_OPTION_TAKE, /* converted by `take` */
};

struct long_option {
    const char *name; /* NULL: the end of the table */
    enum long_option_kind kind;
    size_t at;                                                /* offset of the field in *out */
    int (*take)(void *out, const char *value, struct err *e); /* 0 or -1; LONG_OPTION_TAKE */
};

/* Fills *out from argv. --help prints help, --version "PROGRAM VERSION"; the caller then
 * exits. Values are borrowed from argv. 0: continue; 1: printed; -1: ERR_USAGE. */
int long_options_read(int argc, char **argv, const struct long_option *table, const char *help,
                      const char *program, void *out, struct err *e);

#endif
