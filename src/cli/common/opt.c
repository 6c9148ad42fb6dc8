/* The only parser of command lines. It moves words to the front of argv as it passes options,
 * so that `logs 12 -f` and `logs -f 12` are the same; it allocates nothing. */
#include "cli/common/opt.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "cli/common/cli.h"
#include "cli/common/other_schedulers.h"

#define LISTED_MANY  19
#define SELECTORS    "12  12-20,30  12_3  12_[3-5]  @  name:x*  user:u  state:failed  tag:t  all"
#define NAME_COLUMNS 26 /* width of an option and its value in help */

enum { GLOBAL_DIR, GLOBAL_SOCKET, GLOBAL_JSON, GLOBAL_HELP };

static const struct opt global_options[] = {
    {"dir", 0, "DIR", "use the instance in DIR (or BERTH_DIR)"},
    {"socket", 0, "PATH", "use the daemon at this socket (or BERTH_SOCKET)"},
    {"json", 0, NULL, "data as JSON"},
    {"help", 'h', NULL, "this page"},
    {NULL, 0, NULL, NULL},
};

void
opt_begin(struct opt_reader *r, struct cli *cli, const struct page *page, int argc, char **argv)
{
    *r = (struct opt_reader){.cli = cli, .page = page, .argc = argc, .argv = argv, .at = 1};
    r->words = argv + 1;
}

static int
find_name(const struct opt *table, const char *name, size_t n)
{
    for (int i = 0; n > 0 && table && table[i].name; i++) {
        if (strncmp(table[i].name, name, n) == 0 && table[i].name[n] == '\0')
            return i;
    }
    return -1;
}

static int
find_letter(const struct opt *table, char letter)
{
    for (int i = 0; table && table[i].name; i++) {
        if (table[i].letter == letter)
            return i;
    }
    return -1;
}

static const char *
nearest_name(const struct opt *table, const char *name)
{
    const char *names[96];
    int n = 0;

    for (int i = 0; table && table[i].name && n < 80; i++) {
        if (table[i].name[0])
            names[n++] = table[i].name;
    }
    for (int i = 0; global_options[i].name; i++)
        names[n++] = global_options[i].name;
    names[n] = NULL;
    return text_nearest(name, names);
}

static int
fail_option(struct opt_reader *r, const char *dashes, const char *name, size_t n)
{
    auto_buf struct buf shown = BUF_INIT;
    auto_buf struct buf word = BUF_INIT;
    const struct opt *table = r->page ? r->page->options : NULL;
    const char *here, *near;

    buf_add(&word, name, n);
    text_add_safe(&shown, name, n, 60);
    here = habit_option(table, buf_str(&word));
    near = n > 1 ? nearest_name(table, buf_str(&word)) : NULL;
    if (here)
        cli_say("unknown option '%s%s'; Berth's equivalent: %s", dashes, buf_str(&shown), here);
    else if (near)
        cli_say("unknown option '%s%s'; did you mean '--%s'?", dashes, buf_str(&shown), near);
    else
        cli_say("unknown option '%s%s'; '%s%s --help' lists them", dashes, buf_str(&shown),
                r->page ? "berth " : "berth", r->page ? r->argv[0] : "");
    r->status = 2;
    return OPT_EXIT;
}

static bool
is_optional(const struct opt *o)
{
    return o->value && o->value[0] == '[';
}

/* Finds the option's value: after the '=' or the letter, or the next word. */
static int
fetch_value(struct opt_reader *r, const struct opt *o, const char *attached)
{
    r->value = NULL;
    if (!o->value) {
        if (!attached)
            return 0;
        cli_say("option '--%s' takes no value", o->name);
    } else if (attached) {
        r->value = attached;
        return 0;
    } else if (is_optional(o)) {
        return 0;
    } else if (r->at < r->argc) {
        r->value = r->argv[r->at++];
        return 0;
    } else {
        cli_say("option '--%s' needs a value: --%s %s", o->name, o->name, o->value);
    }
    r->status = 2;
    return -1;
}

/* Sets a global option; OPT_EXIT after a page was shown, OPT_HELP if there is no page. */
static int
take_global(struct opt_reader *r, int which)
{
    switch (which) {
    case GLOBAL_DIR:
        if (r->value && !r->value[0]) {
            r->status = cli_usage("--dir needs a folder, for example: --dir /tmp/b");
            return OPT_EXIT;
        }
        r->cli->dir = r->value;
        break;
    case GLOBAL_SOCKET:
        r->cli->socket = r->value;
        break;
    case GLOBAL_JSON:
        r->cli->json = true;
        break;
    case GLOBAL_HELP:
        if (!r->page)
            return OPT_HELP;
        if (r->cli->on_page)
            r->cli->on_page(r->cli->on_page_ctx, r->page);
        else
            r->status = opt_print_page(r->page);
        return OPT_EXIT;
    default:
        break;
    }
    return 0;
}

/* Index of the verb's option, OPT_DONE after a global one was handled, OPT_EXIT, OPT_HELP. */
static int
settle(struct opt_reader *r, int own, int global, const char *attached)
{
    const struct opt *o =
        own >= 0 && r->page ? &r->page->options[own] : &global_options[global];

    if (fetch_value(r, o, attached) < 0)
        return OPT_EXIT;
    if (own >= 0)
        return own;
    global = take_global(r, global);
    return global < 0 ? global : OPT_DONE;
}

static int
read_long(struct opt_reader *r, const char *name)
{
    const char *eq = strchr(name, '=');
    size_t n = eq ? (size_t)(eq - name) : strlen(name);
    int own = find_name(r->page ? r->page->options : NULL, name, n);
    int global = own < 0 ? find_name(global_options, name, n) : -1;

    if (own < 0 && global < 0)
        return fail_option(r, "--", name, n);
    return settle(r, own, global, eq ? eq + 1 : NULL);
}

static int
read_letter(struct opt_reader *r)
{
    const struct opt *table = r->page ? r->page->options : NULL;
    char letter = *r->cluster++;
    int own = find_letter(table, letter);
    int global = own < 0 ? find_letter(global_options, letter) : -1;
    const struct opt *o;
    const char *attached = NULL;

    if (own < 0 && global < 0)
        return fail_option(r, "-", r->cluster - 1, strlen(r->cluster - 1));
    o = own >= 0 && table ? &table[own] : &global_options[global];
    if (o->value && *r->cluster &&
        (!is_optional(o) || *r->cluster == '=' || isdigit((unsigned char)*r->cluster)))
        attached = *r->cluster == '=' ? r->cluster + 1 : r->cluster;
    if (attached || !*r->cluster)
        r->cluster = NULL;
    return settle(r, own, global, attached);
}

/* Moves argv[at], which is not an option, to the other words. */
static void
keep_word(struct opt_reader *r)
{
    r->words[r->n_words++] = r->argv[r->at++];
}

/* All remaining arguments are words. Refuses --json if the verb has no JSON, so that a script
 * does not get text instead. */
static int
finish(struct opt_reader *r)
{
    while (r->at < r->argc)
        keep_word(r);
    if (!r->cli->json || !r->page || !r->page->no_json)
        return OPT_DONE;
    r->status = cli_usage("'berth %s' has no JSON output: %s", r->argv[0], r->page->no_json);
    return OPT_EXIT;
}

int
opt_next(struct opt_reader *r)
{
    for (;;) {
        int found;

        if (r->cluster) {
            found = read_letter(r);
        } else if (r->at >= r->argc) {
            return finish(r);
        } else if (strcmp(r->argv[r->at], "--") == 0) {
            r->at++;
            return finish(r);
        } else if (r->argv[r->at][0] != '-' || r->argv[r->at][1] == '\0') {
            if (r->stop_at_word)
                return finish(r);
            keep_word(r);
            continue;
        } else if (r->argv[r->at][1] == '-') {
            found = read_long(r, r->argv[r->at++] + 2);
        } else {
            r->cluster = r->argv[r->at++] + 1;
            continue;
        }
        if (found != OPT_DONE)
            return found;
    }
}

bool
opt_read_none(struct opt_reader *r, struct cli *cli, const struct page *page, int argc,
              char **argv)
{
    opt_begin(r, cli, page, argc, argv);
    return opt_next(r) == OPT_DONE;
}

bool
opt_read_nothing(struct opt_reader *r, struct cli *cli, const struct page *page, int argc,
                 char **argv)
{
    auto_buf struct buf shown = BUF_INIT;

    if (!opt_read_none(r, cli, page, argc, argv))
        return false;
    if (r->n_words == 0)
        return true;
    text_add_safe(&shown, r->words[0], strlen(r->words[0]), 60);
    r->status = cli_usage("unexpected argument '%s': %s", buf_str(&shown), page->usage);
    return false;
}

int
opt_read_global(struct cli *cli, int argc, char **argv, int *status)
{
    struct opt_reader r;

    opt_begin(&r, cli, NULL, argc, argv);
    r.stop_at_word = true;
    while (r.at < argc) {
        const char *word = argv[r.at];
        int found;

        if (word[0] != '-')
            return r.at;
        if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
            return OPT_VERSION;
        r.at++;
        if (word[1] == '-') {
            found = read_long(&r, word + 2);
        } else {
            r.cluster = word + 1;
            found = *r.cluster ? read_letter(&r) : fail_option(&r, "-", "", 0);
        }
        *status = r.status;
        if (found == OPT_EXIT || found == OPT_HELP)
            return found;
    }
    return argc;
}

static void
add_option(struct buf *out, const struct opt *o)
{
    auto_buf struct buf left = BUF_INIT;

    if (!o->help)
        return;
    if (!o->name[0]) {
        buf_addf(out, "\n%s:\n", o->help);
        return;
    }
    if (o->letter)
        buf_addf(&left, "-%c, ", o->letter);
    else
        buf_adds(&left, "    ");
    buf_addf(&left, "--%s", o->name);
    if (o->value && strcmp(o->value, OPT_SWITCH) != 0)
        buf_addf(&left, "%s%s", is_optional(o) ? "" : " ", o->value);
    if (left.len > NAME_COLUMNS) {
        buf_addf(out, "  %s\n", buf_str(&left));
        buf_clear(&left);
    }
    buf_addf(out, "  %-*s %s\n", NAME_COLUMNS, buf_str(&left), o->help);
}

static bool
starts_with_group(const struct page *page)
{
    return page->options && page->options[0].name && !page->options[0].name[0];
}

int
opt_print_page(const struct page *page)
{
    auto_buf struct buf out = BUF_INIT;
    int listed = 0;

    buf_addf(&out, "usage: %s\n%s\n", page->usage, page->about);
    if (strstr(page->usage, " SEL") || strstr(page->usage, "[SEL"))
        buf_adds(&out, "SEL: " SELECTORS "\n");
    if (page->options && page->options[0].name && !starts_with_group(page))
        buf_addc(&out, '\n');
    for (const struct opt *o = page->options; o && o->name; o++) {
        add_option(&out, o);
        listed += o->help != NULL;
    }
    if (page->notes)
        buf_addf(&out, "\n%s\n", page->notes);
    /* Pages must fit 24 lines; the longest omits the blank line here. */
    if (listed < LISTED_MANY || starts_with_group(page))
        buf_addc(&out, '\n');
    buf_addf(&out, "Everywhere: --dir DIR, --socket PATH%s. `berth help` lists the verbs.\n",
             page->no_json ? "" : ", --json");
    return cli_put(&out);
}
