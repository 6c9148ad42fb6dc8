/* Options of a verb, read from a table: `--name value`, `--name=value`, `-n value`,
 * `-nvalue`, flags in clusters (`-fv`), `--` ends them. The global options are understood
 * everywhere; `--help` prints the verb's page. A misspelt option suggests the nearest. */
#ifndef CLI_COMMON_OPT_H
#define CLI_COMMON_OPT_H

#include <stdbool.h>

struct cli;

struct opt {
    const char *name;
    char letter;       /* 0: none */
    const char *value; /* what the value is called in help; NULL: a flag; "[=NAME]": may be
                          left out, and is attached where it is not */
    const char *help;  /* NULL: understood, not listed */
};

/* The value of an option that is a word by itself and also takes yes or no: --hold=no. Help
 * shows the word alone. */
#define OPT_SWITCH "[=yes|no]"

/* A row of the table that is no option but the title of those behind it. */
#define OPT_GROUP(title)                                                                       \
    {                                                                                          \
        "", 0, NULL, title                                                                     \
    }

/* What `berth VERB --help` shows; with its options at most 24 lines, unless these stand in
 * groups. */
struct page {
    const char *usage;         /* "berth logs SEL [-f]" */
    const char *about;         /* one or two lines */
    const struct opt *options; /* ends with a NULL name; NULL: none */
    const char *notes;         /* lines behind the options, or NULL */
    const char *no_json; /* the verb refuses --json: why, or what to use; NULL: it obeys */
};

#define OPT_DONE (-1) /* no more options */
#define OPT_EXIT (-2) /* the program is to end with .status: help was shown, or a mistake */

struct opt_reader {
    struct cli *cli;
    const struct page *page;
    int argc;
    char **argv;
    int at;
    bool stop_at_word;   /* the first word ends the options (submit) */
    const char *cluster; /* the rest of "-fv" */
    const char *value;   /* of the option just returned */
    char **words;        /* what is no option, in argv's own memory */
    int n_words;
    int status;
};

void opt_begin(struct opt_reader *r, struct cli *cli, const struct page *page, int argc,
               char **argv);
/* The table index of the next option, OPT_DONE or OPT_EXIT. After OPT_DONE, words and
 * n_words hold the rest. */
int opt_next(struct opt_reader *r);

/* The exit status of the program. */
int opt_print_page(const struct page *page);

/* For verbs with no options of their own. True: go on; false: end with r->status. */
bool opt_read_none(struct opt_reader *r, struct cli *cli, const struct page *page, int argc,
                   char **argv);
/* The same for verbs that take no words either. */
bool opt_read_nothing(struct opt_reader *r, struct cli *cli, const struct page *page, int argc,
                      char **argv);

/* Before the verb: --help and --version are for the caller to answer. */
#define OPT_HELP    (-3)
#define OPT_VERSION (-4)

/* Reads options before the verb. Returns the index of the verb in argv (argc: none), OPT_HELP,
 * OPT_VERSION, or OPT_EXIT with *status. */
int opt_read_global(struct cli *cli, int argc, char **argv, int *status);

#endif
