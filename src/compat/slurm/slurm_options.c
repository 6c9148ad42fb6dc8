/* Command lines of Slurm's commands: getopt_long with its abbreviations and its messages, as
 * the originals use it, over a command's own table and sbatch's options of jobs. */
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

/* What getopt_long returns for row i, away from the letters. */
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

void
slurm_begin(struct slurm_reader *r, int argc, char **argv)
{
    auto_buf struct buf letters = BUF_INIT;
    const struct script_option *o;
    int n = 0;

    cli_speak_as(r->name, "error: ");
    r->argc = argc;
    r->argv = argv;
    r->longs = xcalloc(OPTIONS_MAX + 1, sizeof *r->longs);
    buf_adds(&letters, r->anywhere ? "" : "+");
    for (r->n_own = 0; r->own[r->n_own].name; r->n_own++)
        add_option(r, &letters, &n, r->n_own, &r->own[r->n_own]);
    for (int i = 0; r->jobs && (o = sbatch_option(i)); i++)
        add_option(r, &letters, &n, r->n_own + i, o);
    for (int i = 0; i < COMMON_COUNT; i++)
        add_option(r, &letters, &n, -1 - i, &common[i]);
    r->letters = buf_take(&letters);
    optind = 0;
}

void
slurm_end(struct slurm_reader *r)
{
    free(r->longs);
    free(r->letters);
}

static const struct script_option *
row_of(const struct slurm_reader *r, int row)
{
    return row < 0          ? &common[-1 - row]
           : row < r->n_own ? &r->own[row]
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
answer_common(struct slurm_reader *r, int which)
{
    auto_buf struct buf out = BUF_INIT;

    if (which == COMMON_VERSION)
        buf_adds(&out, "slurm-wlm " SLURM_RELEASE " (berth " BERTH_VERSION ")\n");
    else
        buf_addf(&out, "%s\n", r->usage);
    r->status = cli_put(&out);
    return SLURM_EXIT;
}

int
slurm_next(struct slurm_reader *r)
{
    /* getopt puts the name in front of what it says. */
    char *argv0 = r->argv[0];
    auto_free char *name = xstrdup(r->name);

    r->argv[0] = name;
    int code = getopt_long(r->argc, r->argv, r->letters, r->longs, NULL);
    r->argv[0] = argv0;
    if (code == -1)
        return SLURM_DONE;
    if (code == '?') {
        fprintf(stderr, "Try \"%s --help\" for more information\n", r->name);
        r->status = r->wrong;
        return SLURM_EXIT;
    }
    bool is_letter = code < CODE(-COMMON_COUNT);
    int row = is_letter ? find_letter(r, code) : code - CODE(0);
    if (row < 0)
        return answer_common(r, -1 - row);
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

char **
slurm_words(const struct slurm_reader *r, int *n)
{
    *n = r->argc - optind;
    return r->argv + optind;
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
