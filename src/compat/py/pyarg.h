/* Command lines as Python's argparse reads them: options anywhere, `--name value`,
 * `--name=value`, unambiguous prefixes, `-v`, positional arguments in order, subcommands.
 * Errors go to standard error after a usage line, in argparse's words, with exit status 2.
 * pyarg.c parses, pyarg_help.c prints usage and help. */
#ifndef COMPAT_PY_PYARG_H
#define COMPAT_PY_PYARG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pyarg_type {
    PYARG_STR,
    PYARG_INT,
    PYARG_FLOAT,
    PYARG_ANY,     /* text that may begin with -, unless it is an option */
    PYARG_FLAG,    /* this type and those below take no value */
    PYARG_HELP,    /* print the help page, exit 0 */
    PYARG_VERSION, /* print metavar, exit 0 */
};

/* For options where the text matters too, or whether they were given. */
struct pyarg_value {
    const char *text; /* NULL: not given, no default; "" for a flag that was given */
    int64_t i;
    double f;
};

/* One option or argument: name, type, place for the value; other members by name: .metavar =
 * "MIB". */
struct pyarg {
    const char *name; /* "--margin"; or a positional argument: "jobs_file" */
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
    const char *metavar;  /* NULL: derived from the name */
    const char *choices;  /* "a,b": the only valid values; NULL: any */
    const char *standard; /* default if not given; NULL: none */
    bool hidden;          /* accepted, but not in usage or help */
};

/* In a row: the member of struct_type that pyarg_read sets. */
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
    const char *dest;                     /* name of the command's word in messages */
    bool needs_no_command;
};

#define PYARG_EXIT (-1)
#define PYARG_NONE (-2)

/* Read argv[1..] and store values where the rows say, those of the given command too. Members
 * without a value or default keep their content. Returns the command's index in p->commands;
 * PYARG_NONE: no command given, or none defined; PYARG_EXIT: exit with *status. */
int pyarg_read(const struct pyarg_parser *p, int argc, char **argv, void *into, int *status);

/* Print the usage line and "PROG: error: message" to standard error. Returns 2. */
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
