/* Long options from a table; see long_options.h. */
#include "base/long_options.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/parse.h"

#define OPTIONS_MAX 16
#define FD_MAX      1023

/* getopt_long's return values for the common options, and for the table's first row. */
enum { HELP = 256, VERSION, FIRST };

/* Converts the table for getopt_long. */
static void
make_longs(const struct long_option *table, struct option *longs)
{
    size_t n = 0;

    longs[n++] = (struct option){"help", no_argument, NULL, HELP};
    longs[n++] = (struct option){"version", no_argument, NULL, VERSION};
    for (int i = 0; table[i].name; i++) {
        if (i == OPTIONS_MAX)
            err_abort("more than %d options", OPTIONS_MAX);
        longs[n++] = (struct option){
            table[i].name, table[i].kind == LONG_OPTION_FLAG ? no_argument : required_argument,
            NULL, FIRST + i};
    }
    longs[n] = (struct option){0};
}

static int
take(const struct long_option *o, const char *value, void *out, struct err *e)
{
    void *to = (char *)out + o->at;
    int64_t fd;

    switch (o->kind) {
    case LONG_OPTION_TEXT:
        *(const char **)to = value;
        return 0;
    case LONG_OPTION_FLAG:
        *(bool *)to = true;
        return 0;
    case LONG_OPTION_FD:
        if (parse_int(value, 3, FD_MAX, &fd, e) < 0)
            return err_prefix(e, "--%s", o->name);
        *(int *)to = (int)fd;
        return 0;
    case LONG_OPTION_TAKE:
        break;
    }
    return o->take(out, value, e);
}

int
long_options_read(int argc, char **argv, const struct long_option *table, const char *help,
                  const char *program, void *out, struct err *e)
{
    struct option longs[OPTIONS_MAX + 3];

    make_longs(table, longs);
    opterr = 0;
    for (;;) {
        int at = optind > 0 ? optind : 1;
        int c = getopt_long(argc, argv, "", longs, NULL);

        if (c < 0)
            break;
        if (c == '?')
            return err_set(e, ERR_USAGE, "unknown option '%s', or missing value; see --help",
                           argv[at]);
        if (c == HELP || c == VERSION) {
            if (c == HELP)
                fputs(help, stdout);
            else
                printf("%s %s\n", program, BERTH_VERSION);
            return 1;
        }
        if (take(&table[c - FIRST], optarg, out, e) < 0)
            return -1;
    }
    if (optind < argc)
        return err_set(e, ERR_USAGE, "unexpected argument '%s'; see --help", argv[optind]);
    return 0;
}
