/* Usage and help in argparse's layout: wrapped to the terminal, options in brackets, help
 * texts in their own column. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "compat/py/pyarg.h"

#define HELP_COLUMN_MAX 24
#define TEXT_MIN        11
#define PARTS_MAX       64

bool
pyarg_is_option(const struct pyarg *a)
{
    return a->name[0] == '-';
}

/* COLUMNS, else the terminal's width, else 80, less the two columns argparse leaves free. */
static int
width(void)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    int64_t n = 0;

    if (columns && parse_int(columns, 1, 10000, &n, NULL) == 0)
        return (int)n - 2;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col - 2;
    return 78;
}

/* Placeholder for the value: "MARGIN", "{run,status}". */
static void
add_metavar(struct buf *out, const struct pyarg *a)
{
    const char *name = a->name;

    if (a->metavar) {
        buf_adds(out, a->metavar);
    } else if (a->choices) {
        buf_addf(out, "{%s}", a->choices);
    } else if (!pyarg_is_option(a)) {
        buf_adds(out, name);
    } else {
        for (name += strspn(name, "-"); *name; name++)
            buf_addc(out, (char)(*name == '-' ? '_' : toupper((unsigned char)*name)));
    }
}

/* "[--margin MIB]" or "jobs_file" */
static char *
usage_part(const struct pyarg *a)
{
    auto_buf struct buf part = BUF_INIT;

    if (!pyarg_is_option(a)) {
        add_metavar(&part, a);
        return buf_take(&part);
    }
    buf_addf(&part, "[%s", a->letter ? a->letter : a->name);
    if (pyarg_takes_value(a)) {
        buf_addc(&part, ' ');
        add_metavar(&part, a);
    }
    buf_addc(&part, ']');
    return buf_take(&part);
}

static void
add_command_names(struct buf *out, const struct pyarg_parser *p)
{
    buf_addc(out, '{');
    for (const struct pyarg_command *c = p->commands; c->name; c++)
        buf_addf(out, "%s%s", c == p->commands ? "" : ",", c->name);
    buf_addc(out, '}');
}

/* The usage parts of the options, or of the positional arguments and commands;
 * NULL-terminated. */
static char **
collect(const struct pyarg_parser *p, bool options)
{
    char **parts = xcalloc(PARTS_MAX, sizeof *parts);
    int n = 0;

    for (const struct pyarg *a = p->args; a->name; a++) {
        if (!a->hidden && pyarg_is_option(a) == options && n < PARTS_MAX - 3)
            parts[n++] = usage_part(a);
    }
    if (!options && p->commands) {
        auto_buf struct buf names = BUF_INIT;

        add_command_names(&names, p);
        parts[n++] = buf_take(&names);
        parts[n++] = xstrdup("...");
    }
    return parts;
}

static void
begin_line(struct buf *out, int indent, int *column)
{
    buf_addf(out, "\n%*s", indent, "");
    *column = indent - 1;
}

/* Add parts, breaking the line before one that does not fit. *column: characters already on
 * the line. */
static void
add_wrapped(struct buf *out, char **parts, int indent, int columns, int *column)
{
    for (; *parts; parts++) {
        int len = text_columns(*parts);

        if (*column + 1 + len > columns && *column > indent)
            begin_line(out, indent, column);
        else if (out->len && out->data[out->len - 1] != ' ' && out->data[out->len - 1] != '\n')
            buf_addc(out, ' ');
        buf_adds(out, *parts);
        *column += 1 + len;
    }
}

static int
sum_columns(char **parts)
{
    int sum = 0;

    for (; *parts; parts++)
        sum += 1 + text_columns(*parts);
    return sum;
}

void
pyarg_add_usage(struct buf *out, const struct pyarg_parser *p)
{
    auto_buf struct buf line = BUF_INIT;
    char **options = collect(p, true), **words = collect(p, false);
    int columns = width() > TEXT_MIN ? width() : TEXT_MIN;
    int indent, column, all;
    bool fits;

    all = sum_columns(options) + sum_columns(words);
    buf_addf(&line, "usage: %s", p->prog);
    column = (int)line.len;
    indent = column + 1;
    fits = column + all <= columns;
    /* After a long program name too little room is left: options begin on the next line. */
    if (!fits && column * 4 > columns * 3) {
        indent = (int)strlen("usage: ");
        begin_line(&line, indent, &column);
        fits = column + all <= columns;
    }
    add_wrapped(&line, options, indent, columns, &column);
    /* If not everything fits on one line, positional arguments begin on their own line. */
    if (!fits && *options && *words)
        begin_line(&line, indent, &column);
    add_wrapped(&line, words, indent, columns, &column);
    buf_add(out, line.data, line.len);
    buf_addc(out, '\n');
    text_list_free(options);
    text_list_free(words);
}

/* --- help --- */

/* Add text wrapped to `columns`, with `indent` blanks before each line but the first. */
static void
add_text(struct buf *out, const char *text, int indent, int columns)
{
    int at = 0;

    while (*text) {
        int n = (int)strcspn(text, " \n");
        auto_free char *word = xstrndup(text, (size_t)n);
        int len = text_columns(word);

        if (at > 0 && at + 1 + len > columns) {
            buf_addf(out, "\n%*s", indent, "");
            at = 0;
        }
        buf_addf(out, "%s%s", at ? " " : "", word);
        at += (at ? 1 : 0) + len;
        text += n;
        text += strspn(text, " \n");
    }
    buf_addc(out, '\n');
}

/* "-v, --verbose" or "--margin MIB" */
static void
add_invocation(struct buf *out, const struct pyarg *a)
{
    if (a->letter) {
        buf_adds(out, a->letter);
        if (pyarg_takes_value(a)) {
            buf_addc(out, ' ');
            add_metavar(out, a);
        }
        buf_adds(out, ", ");
    }
    if (pyarg_is_option(a))
        buf_adds(out, a->name);
    if (pyarg_is_option(a) && pyarg_takes_value(a))
        buf_addc(out, ' ');
    if (pyarg_takes_value(a))
        add_metavar(out, a);
}

static void
add_row(struct buf *out, const char *head, const char *help, int indent, int column)
{
    int len = text_columns(head), room = column - indent - 2;
    int columns = width() - column > TEXT_MIN ? width() - column : TEXT_MIN;

    buf_addf(out, "%*s%s", indent, "", head);
    if (!help || !help[0]) {
        buf_addc(out, '\n');
        return;
    }
    if (len <= room)
        buf_addf(out, "%*s", column - indent - len, "");
    else
        buf_addf(out, "\n%*s", column, "");
    add_text(out, help, column, columns);
}

static int
help_column(const struct pyarg_parser *p)
{
    int longest = 0, most = width() - 20 > 4 ? width() - 20 : 4;

    for (const struct pyarg *a = p->args; a->name; a++) {
        auto_buf struct buf head = BUF_INIT;

        add_invocation(&head, a);
        if (!a->hidden && text_columns(buf_str(&head)) + 2 > longest)
            longest = text_columns(buf_str(&head)) + 2;
    }
    for (const struct pyarg_command *c = p->commands; c && c->name; c++) {
        if (text_columns(c->name) + 4 > longest)
            longest = text_columns(c->name) + 4;
    }
    if (most > HELP_COLUMN_MAX)
        most = HELP_COLUMN_MAX;
    return longest + 2 < most ? longest + 2 : most;
}

static void
add_section(struct buf *out, const struct pyarg_parser *p, bool options, int column)
{
    bool begun = false;

    for (const struct pyarg *a = p->args; a->name; a++) {
        auto_buf struct buf head = BUF_INIT;

        if (pyarg_is_option(a) != options || a->hidden)
            continue;
        if (!begun)
            buf_adds(out, options ? "\noptions:\n" : "\npositional arguments:\n");
        begun = true;
        add_invocation(&head, a);
        add_row(out, buf_str(&head), a->help, 2, column);
    }
    if (options || !p->commands)
        return;
    if (!begun)
        buf_adds(out, "\npositional arguments:\n");
    buf_adds(out, "  ");
    add_command_names(out, p);
    buf_addc(out, '\n');
    for (const struct pyarg_command *c = p->commands; c->name; c++)
        add_row(out, c->name, c->help, 4, column);
}

void
pyarg_add_help(struct buf *out, const struct pyarg_parser *p)
{
    int column = help_column(p);

    pyarg_add_usage(out, p);
    if (p->about) {
        buf_addc(out, '\n');
        add_text(out, p->about, 0, width());
    }
    add_section(out, p, false, column);
    add_section(out, p, true, column);
}
