/* Command lines as Python's argparse reads them: options anywhere, `--name value`,
 * `--name=value`, the beginning of a name where it is the only one, `-v`, words in order,
 * sub-commands; what is wrong goes to standard error behind a line of usage, with exit status
 * 2, in argparse's words. pyarg.c has the reading, pyarg_help.c usage and help. */
#ifndef COMPAT_PY_PYARG_H
#define COMPAT_PY_PYARG_H

#include <stdbool.h>
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

/* A row: name, type, help, and by name what else it has: .metavar = "MIB". */
struct pyarg {
    const char *name; /* "--margin"; a word of the command line: "jobs_file" */
    enum pyarg_type type;
    const char *help;     /* NULL: none */
    const char *letter;   /* "-v"; NULL: none */
    const char *metavar;  /* NULL: made of the name */
    const char *choices;  /* "a,b": nothing else; NULL: anything */
    const char *standard; /* its value where it is not said; NULL: none */
    bool hidden;          /* understood, not shown */
};

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

/* What was said of row i of the table. */
struct pyarg_value {
    const char *text; /* NULL: not said, and without a standard; a flag that was: "" */
    int64_t i;
    double f;
};

#define PYARG_EXIT (-1)
#define PYARG_NONE (-2)

/* Reads argv[1..]. values has as many entries as args has rows; of_command as many as the
 * longest table of a command, and is set when there is one. The command's index in p->commands,
 * PYARG_NONE when none was said or there are none, PYARG_EXIT: end with *status. */
int pyarg_read(const struct pyarg_parser *p, int argc, char **argv, struct pyarg_value *values,
               struct pyarg_value *of_command, int *status);

/* The usage line and "PROG: error: words" to standard error. Returns 2. */
int pyarg_error(const struct pyarg_parser *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* pyarg_help.c */
struct buf;
bool pyarg_is_option(const struct pyarg *a);
void pyarg_add_usage(struct buf *out, const struct pyarg_parser *p);
void pyarg_add_help(struct buf *out, const struct pyarg_parser *p);

#endif
