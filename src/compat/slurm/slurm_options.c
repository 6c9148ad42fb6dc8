/* Command lines of Slurm's commands: getopt_long, with the abbreviations and messages of the
 * originals, over a command's own table and sbatch's job options. */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/common/cli.h"
#include "compat/slurm/slurm.h"

#define OPTIONS_MAX 192

enum { COMMON_HELP, COMMON_USAGE, COMMON_VERSION, COMMON_COUNT };
static const struct script_option common[COMMON_COUNT] = {
    [COMMON_HELP] = {"help", 0, TAKES_NOTHING},
    [COMMON_USAGE] = {"usage", 0, TAKES_NOTHING},
    [COMMON_VERSION] = {"version", 'V', TAKES_NOTHING},
};

/* getopt_long's value for row i, above all letters. */
#define CODE(i) (1000 + (i))

static bool
is_known(const struct slurm_reader *r, int n, const struct script_option *o)
{
    for (int i = 0; i < n; i++)
        if (strcmp(r->longs[i].name, o->name) == 0)
            return true;
    return false;
}

static void
add_option(struct slurm_reader *r, struct buf *letters, int *n, int row,
           const struct script_option *o)
{
    static const int takes[] = {no_argument, required_argument, optional_argument};
    bool is_free = o->letter && !strchr(buf_str(letters), o->letter);

    if (is_known(r, *n, o))
        return;
    if (*n == OPTIONS_MAX)
        err_abort("more than %d options", OPTIONS_MAX);
    r->longs[(*n)++] = (struct option){o->name, takes[o->takes], NULL, CODE(row)};
    if (!is_free)
        return;
    buf_addc(letters, o->letter);
    buf_adds(letters, o->takes == TAKES_VALUE ? ":" : o->takes == TAKES_MAYBE ? "::" : "");
}

static void
begin(struct slurm_reader *r, int argc, char **argv)
{
    auto_buf struct buf letters = BUF_INIT;
    const struct script_option *o;
    int n = 0;

    cli_speak_as(r->name, "error: ");
    r->argc = argc;
    r->argv = argv;
    r->longs = xcalloc(OPTIONS_MAX + 1, sizeof *r->longs);
    buf_adds(&letters, r->anywhere ? "" : "+");
    for (r->n_own = 0; r->own[r->n_own].option.name; r->n_own++)
        add_option(r, &letters, &n, r->n_own, &r->own[r->n_own].option);
    for (int i = 0; r->jobs && (o = sbatch_option(i)); i++)
        add_option(r, &letters, &n, r->n_own + i, o);
    for (int i = 0; i < COMMON_COUNT; i++)
        add_option(r, &letters, &n, -1 - i, &common[i]);
    r->letters = buf_take(&letters);
    optind = 0;
}

static const struct script_option *
row_of(const struct slurm_reader *r, int row)
{
    return row < 0          ? &common[-1 - row]
           : row < r->n_own ? &r->own[row].option
                            : sbatch_option(row - r->n_own);
}

static int
find_letter(const struct slurm_reader *r, int letter)
{
    for (int i = 0; r->longs[i].name; i++)
        if (row_of(r, r->longs[i].val - CODE(0))->letter == letter)
            return r->longs[i].val - CODE(0);
    err_abort("no option has the letter %c", letter);
}

static int
answer_common(const struct slurm_reader *r, int which)
{
    auto_buf struct buf out = BUF_INIT;

    if (which == COMMON_VERSION)
        buf_adds(&out, "slurm-wlm " SLURM_RELEASE " (berth " BERTH_VERSION ")\n");
    else
        buf_addf(&out, "%s\n", r->usage);
    return cli_put(&out);
}

#define DONE   (-1)
#define ANSWER (-2) /* exit with *status */

/* Returns the row of own, n_own + the row of sbatch_option, DONE or ANSWER. */
static int
next_option(struct slurm_reader *r, int *status)
{
    /* getopt prefixes its messages with argv[0]. */
    char *argv0 = r->argv[0];
    auto_free char *name = xstrdup(r->name);

    r->argv[0] = name;
    int code = getopt_long(r->argc, r->argv, r->letters, r->longs, NULL);
    r->argv[0] = argv0;
    if (code == -1)
        return DONE;
    if (code == '?') {
        fprintf(stderr, "Try \"%s --help\" for more information\n", r->name);
        *status = r->wrong;
        return ANSWER;
    }
    bool is_letter = code < CODE(-COMMON_COUNT);
    int row = is_letter ? find_letter(r, code) : code - CODE(0);
    if (row < 0) {
        *status = answer_common(r, -1 - row);
        return ANSWER;
    }
    r->value = optarg;
    snprintf(r->said, sizeof r->said, "--%s", row_of(r, row)->name);
    return row;
}

const char *
slurm_take_word(struct slurm_reader *r)
{
    const char *word = optind < r->argc ? r->argv[optind] : "-";

    if (word[0] == '-')
        return NULL;
    optind++;
    return word;
}

/* Store the value; false if the option has no member. */
static bool
put(const struct slurm_reader *r, int row, void *into)
{
    enum slurm_place place = row < r->n_own ? r->own[row].place : SLURM_TAKEN;

    if (place == SLURM_FLAG)
        *(bool *)((char *)into + r->own[row].at) = true;
    else if (place == SLURM_TEXT)
        *(const char **)((char *)into + r->own[row].at) = r->value;
    return place != SLURM_TAKEN;
}

bool
slurm_read(struct slurm_reader *r, int argc, char **argv, void *into, slurm_take *take,
           int *status)
{
    int row = DONE;

    *status = 0;
    begin(r, argc, argv);
    while (*status == 0 && (row = next_option(r, status)) >= 0)
        if (!put(r, row, into) && take)
            *status = take(into, r, row);
    r->words = r->argv + optind;
    r->n_words = r->argc - optind;
    free(r->longs);
    free(r->letters);
    return *status == 0 && row == DONE;
}

int
slurm_refuse_words(const struct slurm_reader *r)
{
    return r->n_words > 0 ? slurm_fail(1, "Unrecognized option: %s", r->words[0]) : 0;
}

int
slurm_fail(int status, const char *fmt, ...)
{
    auto_buf struct buf words = BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_addv(&words, fmt, ap);
    va_end(ap);
    (void)cli_usage("%s", buf_str(&words));
    return status;
}
