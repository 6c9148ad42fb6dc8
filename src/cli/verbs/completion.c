/* `berth completion`: collects what bash, zsh or fish needs to complete a command line. It
 * uses the table of verbs and the same pages that --help prints, which each verb supplies; so
 * completion cannot get out of step. completion_shells.c contains the scripts. */
#include "cli/verbs/completion.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/table/queue_columns.h"

#define VERBS_MAX 64

static const struct page page = {
    .usage = "berth completion bash|zsh|fish",
    .about = "Print a script that makes this shell complete verbs, options and job numbers.",
    .notes = "bash   eval \"$(berth completion bash)\"       in ~/.bashrc\n"
             "zsh    eval \"$(berth completion zsh)\"        in ~/.zshrc, after compinit\n"
             "fish   berth completion fish | source        in ~/.config/fish/config.fish",
    .no_json = "it prints a script",
};

/* Lists the columns of tables of jobs. */
static char *
list_columns(void)
{
    struct buf out = BUF_INIT;

    for (const struct queue_column *column = queue_columns; column->name; column++)
        buf_addf(&out, " %s", column->name);
    return buf_take(&out);
}

bool
completion_lists_columns(const struct completion *c, const struct opt *o)
{
    return c->columns && (strcmp(o->name, "format") == 0 || strcmp(o->name, "sort") == 0);
}

/* --- querying the verbs --- */

/* Copies the page, which may live no longer than the call. Its texts are static. */
static void
on_page(void *ctx, const struct page *shown)
{
    struct completion *c = ctx;
    size_t n = 0;

    while (shown->options && shown->options[n].name)
        n++;
    struct opt *options = xcalloc(n + 1, sizeof *options);
    if (n > 0)
        memcpy(options, shown->options, n * sizeof *options);
    c->page = xcalloc(1, sizeof *c->page);
    *c->page = *shown;
    c->page->options = options;
}

static bool
is_word(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((s[i] < 'a' || s[i] > 'z') && s[i] != '-')
            return false;
    return n > 0 && s[0] != '-';
}

/* Finds the words separated by bars in a usage such as "berth daemon start|stop [options]". */
static void
find_words(struct completion *c)
{
    const char *at = c->page->usage + strlen("berth ") + strlen(c->verb);
    int n = 0;

    if (!strchr(at, '|'))
        return;
    for (at += *at == ' '; at && n < COMPLETION_WORDS_MAX - 1; at = strchr(at, '|')) {
        at += strspn(at, "| ");
        size_t len = strcspn(at, " |[");
        if (is_word(at, len))
            c->words[n++] = xstrndup(at, len);
    }
}

/* `berth help` accepts any other verb. */
static void
take_verbs(const struct cli *cli, struct completion *c)
{
    int n = 0;

    for (const struct verb *v = cli->verbs; v->name && n < COMPLETION_WORDS_MAX - 1; v++)
        c->words[n++] = xstrdup(v->name);
}

/* `berth compat` prints its options from another program. */
static void
take_compat(struct completion *c)
{
    static const char *const words[] = {"list", "install", "remove"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        c->words[i] = xstrdup(words[i]);
}

/* Verbs that parse their command lines themselves, in the style of other tools. */
static bool
has_no_page(const char *verb)
{
    static const char *const verbs[] = {"compat", "help", "simjob"};

    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(verb, verbs[i]) == 0)
            return true;
    return false;
}

static size_t
collect(const struct cli *cli, struct completion *all)
{
    static char help_word[] = "--help";
    size_t n = 0;

    for (const struct verb *v = cli->verbs; v->name && n < VERBS_MAX; v++) {
        struct completion *c = &all[n++];
        struct cli asking = *cli;
        char *argv[] = {(char *)v->name, help_word, NULL};

        *c = (struct completion){.verb = v->name, .help = v->help};
        if (strcmp(v->name, "help") == 0)
            take_verbs(cli, c);
        if (strcmp(v->name, "compat") == 0)
            take_compat(c);
        if (has_no_page(v->name))
            continue;
        asking.on_page = on_page;
        asking.on_page_ctx = c;
        (void)v->run(&asking, 2, argv);
        if (!c->page)
            continue;
        find_words(c);
        if (strcmp(v->name, "queue") == 0 || strcmp(v->name, "history") == 0)
            c->columns = list_columns();
        c->takes_jobs = strstr(c->page->usage, " SEL") || strstr(c->page->usage, "[SEL");
    }
    return n;
}

static void
release(struct completion *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (char **word = all[i].words; *word; word++)
            free(*word);
        free(all[i].columns);
        if (all[i].page)
            free((void *)all[i].page->options);
        free(all[i].page);
    }
    free(all);
}

/* --- the verb --- */

static const struct {
    const char *name;
    void (*write)(const struct completion *all, size_t n, struct buf *out);
} shells[] = {
    {"bash", completion_write_bash},
    {"zsh", completion_write_zsh},
    {"fish", completion_write_fish},
};

int
cmd_completion(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    auto_buf struct buf out = BUF_INIT, shown = BUF_INIT;

    if (!opt_read_none(&r, cli, &page, argc, argv))
        return r.status;
    if (r.n_words != 1)
        return cli_usage("for which shell? berth completion bash, zsh or fish");
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(r.words[0], shells[i].name) != 0)
            continue;
        struct completion *all = xcalloc(VERBS_MAX, sizeof *all);
        size_t n = collect(cli, all);
        shells[i].write(all, n, &out);
        release(all, n);
        return cli_put(&out);
    }
    text_add_safe(&shown, r.words[0], strlen(r.words[0]), 60);
    return cli_usage("unknown shell '%s'; use bash, zsh or fish", buf_str(&shown));
}
