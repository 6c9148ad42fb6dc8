/* Parses a verb's options from a table: `--name value`, `--name=value`, `-n value`, `-nvalue`,
 * combined flags (`-fv`), `--` ends them. Global options are accepted everywhere; `--help`
 * prints the verb's page. For a misspelt option it suggests the nearest. */
#ifndef CLI_COMMON_OPT_H
#define CLI_COMMON_OPT_H

#include <stdbool.h>

struct cli;

struct opt {
    const char *name;
    char letter;       /* 0: none */
    const char *value; /* the value's name in help; NULL: a flag; "[=NAME]": an optional value,
                          which must be attached */
    const char *help;  /* NULL: accepted, but not listed */
};

/* The value of an option that is normally a bare word but accepts yes or no: --hold=no. Help
 * shows only the word. */
#define OPT_SWITCH "[=yes|no]"

/* A row of the table that is a title of the options after it. */
#define OPT_GROUP(title)                                                                       \
    {                                                                                          \
        "", 0, NULL, title                                                                     \
    }

/* The page of `berth VERB --help`; at most 24 lines with its options, unless these are in
 * groups. */
struct page {
    const char *usage;         /* "berth logs SEL [-f]" */
    const char *about;         /* one or two lines */
    const struct opt *options; /* terminated by a NULL name; may be NULL */
    const char *notes;         /* lines after the options, or NULL */
    const char *no_json; /* why the verb refuses --json, or what to use; NULL: it has JSON */
};

#define OPT_DONE (-1) /* no more options */
#define OPT_EXIT (-2) /* end the program with .status, after help or an error */

struct opt_reader {
    struct cli *cli;
    const struct page *page;
    int argc;
    char **argv;
    int at;
    bool stop_at_word;   /* the first word ends the options (submit) */
    const char *cluster; /* remaining letters of "-fv" */
    const char *value;   /* of the option just returned */
    char **words;        /* arguments that are not options, in argv's own memory */
    int n_words;
    int status;
};

void opt_begin(struct opt_reader *r, struct cli *cli, const struct page *page, int argc,
               char **argv);
/* Returns the table index of the next option, OPT_DONE or OPT_EXIT. After OPT_DONE, words and
 * n_words hold the other arguments. */
int opt_next(struct opt_reader *r);

/* Prints the page; returns the exit status. */
int opt_print_page(const struct page *page);

/* For verbs without options. True: continue; false: exit with r->status. */
bool opt_read_none(struct opt_reader *r, struct cli *cli, const struct page *page, int argc,
                   char **argv);
/* The same for verbs that accept no words either. */
bool opt_read_nothing(struct opt_reader *r, struct cli *cli, const struct page *page, int argc,
                      char **argv);

/* Before the verb, the caller handles --help and --version. */
#define OPT_HELP    (-3)
#define OPT_VERSION (-4)

/* Reads the options before the verb. Returns the verb's index in argv (argc: no verb),
 * OPT_HELP, OPT_VERSION, or OPT_EXIT with *status. */
int opt_read_global(struct cli *cli, int argc, char **argv, int *status);

#endif
