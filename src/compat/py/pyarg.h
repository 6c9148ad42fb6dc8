/* Command lines as Python's argparse reads them: options anywhere, `--name value`,
 * `--name=value`, the beginning of a name where it is the only one, `-v`, words in order,
 * sub-commands; what is wrong goes to standard error behind a line of usage, with exit status
 * 2, in argparse's words. pyarg.c has the reading, pyarg_help.c usage and help. */
#ifndef COMPAT_PY_PYARG_H
#define COMPAT_PY_PYARG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pyarg_type {
    PYARG_STR,
    PYARG_INT,
    PYARG_FLOAT,
    PYARG_ANY,     /* text that may begin with -, unless it is an option itself */
    PYARG_FLAG,    /* from here on they take no value */
    PYARG_HELP,    /* print the page, exit 0 */
    PYARG_VERSION, /* print metavar, exit 0 */
};

/* Where the value is to be known with its text, or whether it was said. */
struct pyarg_value {
    const char *text; /* NULL: not said, and without a standard; a flag that was: "" */
    int64_t i;
    double f;
};

/* A row: name, type, where its value goes, and by name what else it has: .metavar = "MIB". */
struct pyarg {
    const char *name; /* "--margin"; a word of the command line: "jobs_file" */
    enum pyarg_type type;
    enum pyarg_place {
        PYARG_NOWHERE,
        PYARG_TO_BOOL,
        PYARG_TO_TEXT,
        PYARG_TO_INT,
        PYARG_TO_DOUBLE,
        PYARG_TO_VALUE
    } place;
    size_t at;
    const char *help;     /* NULL: none */
    const char *letter;   /* "-v"; NULL: none */
    const char *metavar;  /* NULL: made of the name */
    const char *choices;  /* "a,b": nothing else; NULL: anything */
    const char *standard; /* its value where it is not said; NULL: none */
    bool hidden;          /* understood, not shown */
};

/* In a row: the member of what pyarg_read fills. */
#define PYARG_INTO(struct_type, member)                                                        \
    .place = _Generic(((struct_type *)NULL)->member, bool                                      \
                      : PYARG_TO_BOOL, const char *                                            \
                      : PYARG_TO_TEXT, int64_t                                                 \
                      : PYARG_TO_INT, double                                                   \
                      : PYARG_TO_DOUBLE, struct pyarg_value                                    \
                      : PYARG_TO_VALUE),                                                       \
    .at = offsetof(struct_type, member)

#define PYARG_HELP_ROW                                                                         \
    {                                                                                          \
        "--help", PYARG_HELP, .help = "show this help message and exit", .letter = "-h"        \
    }

struct pyarg_command {
    const char *name;
    const char *help;
    const struct pyarg *args;
};

struct pyarg_parser {
    const char *prog;
    const char *about;                    /* NULL: none */
    const struct pyarg *args;             /* ends with a NULL name */
    const struct pyarg_command *commands; /* ends with a NULL name; NULL: none */
    const char *dest;                     /* what the word that names a command is called */
    bool needs_no_command;
};

#define PYARG_EXIT (-1)
#define PYARG_NONE (-2)

/* Reads argv[1..] into the places that the rows name, of the command that was said too; what is
 * not said, and has no standard, stays as it is there. The command's index in p->commands,
 * PYARG_NONE when none was said or there are none, PYARG_EXIT: end with *status. */
int pyarg_read(const struct pyarg_parser *p, int argc, char **argv, void *into, int *status);

/* The usage line and "PROG: error: words" to standard error. Returns 2. */
int pyarg_error(const struct pyarg_parser *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* pyarg_help.c */
struct buf;
bool pyarg_is_option(const struct pyarg *a);
static inline bool
pyarg_takes_value(const struct pyarg *a)
{
    return a->type < PYARG_FLAG;
}
void pyarg_add_usage(struct buf *out, const struct pyarg_parser *p);
void pyarg_add_help(struct buf *out, const struct pyarg_parser *p);

#endif
