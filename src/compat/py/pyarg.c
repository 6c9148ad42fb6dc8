/* Reads a command line as argparse does; see pyarg.h. */
#include "compat/py/pyarg.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/common/cli.h"
#include "compat/py/pytext.h"

/* A word of the command line as argparse classifies it, before any option takes effect. */
struct word {
    char kind;             /* A: an argument; O: an option; -: the first -- */
    const struct pyarg *a; /* the option; NULL: an unknown one */
    bool is_long;          /* given by a name with two dashes */
    const char *value;     /* value in the same word; NULL: none */
};

struct reader {
    const struct pyarg_parser *p;
    int argc;
    char **argv;
    struct word *words;
    bool *said; /* for each row, whether it was given */
    void *into;
    struct buf extras; /* unknown words */
    int n_extras;
    int command; /* index of the command given; or PYARG_NONE */
    int status;
    bool done;
};

__attribute__((format(printf, 2, 0))) static int
complain(const struct pyarg_parser *p, const char *fmt, va_list ap)
{
    auto_buf struct buf out = BUF_INIT;

    pyarg_add_usage(&out, p);
    buf_addf(&out, "%s: error: ", p->prog);
    buf_addv(&out, fmt, ap);
    buf_addc(&out, '\n');
    (void)file_write_all(STDERR_FILENO, out.data, out.len);
    return err_exit_status(ERR_USAGE);
}

int
pyarg_error(const struct pyarg_parser *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    complain(p, fmt, ap);
    va_end(ap);
    return err_exit_status(ERR_USAGE);
}

__attribute__((format(printf, 2, 3))) static void
fail(struct reader *r, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    r->status = complain(r->p, fmt, ap);
    va_end(ap);
    r->done = true;
}

/* "-v/--verbose", or the name of a positional argument. */
static void
add_name(struct buf *out, const struct pyarg *a)
{
    if (a->letter)
        buf_addf(out, "%s/", a->letter);
    buf_adds(out, a->name);
}

static void
add_choices(struct buf *out, const char *choices)
{
    for (const char *at = choices; at; at = strchr(at, ',')) {
        at += *at == ',';
        buf_addf(out, "%s'%.*s'", at == choices ? "" : ", ", (int)strcspn(at, ","), at);
    }
}

static bool
is_choice(const char *choices, const char *text)
{
    size_t n = strlen(text);

    for (const char *at = choices; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strcspn(at, ",") == n && memcmp(at, text, n) == 0)
            return true;
    }
    return false;
}

static void
store(struct reader *r, const struct pyarg *a, const struct pyarg_value *v)
{
    void *to = (char *)r->into + a->at;

    r->said[a - r->p->args] = true;
    switch (a->place) {
    case PYARG_NOWHERE:
        break;
    case PYARG_TO_BOOL:
        *(bool *)to = true;
        break;
    case PYARG_TO_TEXT:
        *(const char **)to = v->text;
        break;
    case PYARG_TO_INT:
        *(int64_t *)to = v->i;
        break;
    case PYARG_TO_DOUBLE:
        *(double *)to = v->f;
        break;
    case PYARG_TO_VALUE:
        *(struct pyarg_value *)to = *v;
        break;
    }
}

static void
take_value(struct reader *r, const struct pyarg *a, const char *text)
{
    struct pyarg_value v = {.text = text};
    auto_buf struct buf name = BUF_INIT;
    auto_buf struct buf more = BUF_INIT;

    add_name(&name, a);
    py_add_repr(&more, text);
    if (a->type == PYARG_INT && !py_int(text, &v.i)) {
        fail(r, "argument %s: invalid int value: %s", buf_str(&name), buf_str(&more));
    } else if (a->type == PYARG_FLOAT && !py_float(text, &v.f)) {
        fail(r, "argument %s: invalid float value: %s", buf_str(&name), buf_str(&more));
    } else if (a->choices && !is_choice(a->choices, text)) {
        buf_adds(&more, " (choose from ");
        add_choices(&more, a->choices);
        fail(r, "argument %s: invalid choice: %s)", buf_str(&name), buf_str(&more));
    }
    store(r, a, &v);
}

/* --- classifying words --- */

static bool
is_name(const char *name, const char *word, size_t n)
{
    return name && strlen(name) == n && memcmp(name, word, n) == 0;
}

static const struct pyarg *
find_exact(const struct reader *r, const char *word, size_t n)
{
    for (const struct pyarg *a = r->p->args; a->name; a++) {
        if (pyarg_is_option(a) && (is_name(a->name, word, n) || is_name(a->letter, word, n)))
            return a;
    }
    return NULL;
}

/* An unambiguous prefix of a long option, with or without =value; an ambiguous one is an
 * error. */
static bool
find_beginning(struct reader *r, const char *text, struct word *w)
{
    auto_buf struct buf names = BUF_INIT;
    size_t n = strcspn(text, "=");
    int matches = 0;

    for (const struct pyarg *a = r->p->args; a->name; a++) {
        if (strncmp(a->name, text, n) != 0)
            continue;
        buf_addf(&names, "%s%s", matches++ ? ", " : "", a->name);
        *w = (struct word){'O', a, true, text[n] ? text + n + 1 : NULL};
    }
    if (matches > 1)
        fail(r, "ambiguous option: %s could match %s", text, buf_str(&names));
    return matches > 0;
}

static bool
find_option(struct reader *r, const char *text, struct word *w)
{
    const struct pyarg *a = find_exact(r, text, strlen(text));
    size_t n = strcspn(text, "=");

    *w = (struct word){'O', a, text[1] == '-', NULL};
    if (a)
        return true;
    if (text[n] && (w->a = find_exact(r, text, n))) {
        w->value = text + n + 1;
        return true;
    }
    if (text[1] == '-')
        return find_beginning(r, text, w);
    *w = (struct word){'O', find_exact(r, text, 2), false, text + 2};
    return w->a != NULL;
}

/* -5, -.5, -1.5; argparse accepts no other form. */
static bool
is_negative_number(const char *text)
{
    size_t digits = strspn(text + 1, "0123456789");
    const char *rest = text + 1 + digits;

    if (!*rest)
        return digits > 0;
    return *rest == '.' && rest[1] && rest[1 + strspn(rest + 1, "0123456789")] == '\0';
}

/* Not in argparse: a PYARG_ANY option takes a word that begins with - as its value. */
static bool
is_value_of_any(const struct reader *r, int at)
{
    const struct word *before = &r->words[at - 1];

    return at > 1 && before->kind == 'O' && before->a && before->a->type == PYARG_ANY &&
           !before->value && !find_exact(r, r->argv[at], strlen(r->argv[at]));
}

static void
classify(struct reader *r)
{
    bool only_words = false;

    for (int i = 1; i < r->argc && !r->done; i++) {
        const char *text = r->argv[i];
        struct word *w = &r->words[i];

        w->kind = 'A';
        if (only_words || text[0] != '-' || is_value_of_any(r, i))
            continue;
        if (strcmp(text, "--") == 0) {
            only_words = true;
            w->kind = '-';
        } else if (text[1] && !find_option(r, text, w)) {
            *w = (struct word){.kind =
                                   is_negative_number(text) || strchr(text, ' ') ? 'A' : 'O'};
        }
    }
}

/* --- reading --- */

static void
add_extra(struct reader *r, const char *word)
{
    buf_addf(&r->extras, "%s%s", r->n_extras++ ? " " : "", word);
}

static void
obey_flag(struct reader *r, const struct pyarg *a)
{
    auto_buf struct buf out = BUF_INIT;

    if (a->type == PYARG_FLAG) {
        store(r, a, &(struct pyarg_value){.text = ""});
        return;
    }
    if (a->type == PYARG_HELP)
        pyarg_add_help(&out, r->p);
    else
        buf_addf(&out, "%s\n", a->metavar);
    r->status = cli_put(&out);
    r->done = true;
}

static void
fail_explicit(struct reader *r, const struct pyarg *a, const char *value)
{
    auto_buf struct buf name = BUF_INIT, shown = BUF_INIT;

    add_name(&name, a);
    py_add_repr(&shown, value);
    fail(r, "argument %s: ignored explicit argument %s", buf_str(&name), buf_str(&shown));
}

/* Combined short options such as -qv and -qmfast: flags, up to an option that takes the rest
 * as its value. The flags passed take effect after the last option was parsed. Returns that
 * option; NULL: an error was reported. */
static const struct pyarg *
pass_letters(struct reader *r, const struct word *w, const struct pyarg **passed, size_t *n,
             const char **value)
{
    const struct pyarg *a = w->a;

    *value = w->value;
    while (*value && !pyarg_takes_value(a)) {
        const char letter[] = {'-', **value, '\0'};
        const struct pyarg *next = w->is_long || !**value ? NULL : find_exact(r, letter, 2);

        if (!next) {
            fail_explicit(r, a, *value);
            return NULL;
        }
        passed[(*n)++] = a;
        a = next;
        *value = (*value)[1] ? *value + 1 : NULL;
    }
    return a;
}

/* Parse the option at this index. Returns the index after it and its value. */
static int
take_option(struct reader *r, int at)
{
    const struct word *w = &r->words[at];
    auto_free const struct pyarg **passed =
        xcalloc(strlen(r->argv[at]) + 1, sizeof(const struct pyarg *));
    const struct pyarg *a;
    const char *value;
    size_t n = 0;

    if (!w->a) {
        add_extra(r, r->argv[at]);
        return at + 1;
    }
    a = pass_letters(r, w, passed, &n, &value);
    if (a && pyarg_takes_value(a) && !value) {
        auto_buf struct buf name = BUF_INIT;

        add_name(&name, a);
        if (++at == r->argc || r->words[at].kind != 'A') {
            fail(r, "argument %s: expected one argument", buf_str(&name));
            return at;
        }
        value = r->argv[at];
    }
    for (size_t i = 0; a && i < n && !r->done; i++)
        obey_flag(r, passed[i]);
    if (a && !r->done && pyarg_takes_value(a))
        take_value(r, a, value);
    else if (a && !r->done)
        obey_flag(r, a);
    return at + 1;
}

/* The first positional argument without a value. */
static const struct pyarg *
next_word(const struct reader *r)
{
    for (const struct pyarg *a = r->p->args; a->name; a++) {
        if (!pyarg_is_option(a) && !r->said[a - r->p->args])
            return a;
    }
    return NULL;
}

static char
kind_at(const struct reader *r, int at)
{
    return at < r->argc ? r->words[at].kind : '\0';
}

static int take_command(struct reader *r, int at);

/* Take positional arguments, then the command if one is expected. Returns the index of the
 * first word not taken. */
static int
take_words(struct reader *r, int at)
{
    const struct pyarg *a;

    while (!r->done && (a = next_word(r))) {
        int word = at + (kind_at(r, at) == '-');

        if (kind_at(r, word) != 'A')
            return at;
        take_value(r, a, r->argv[word]);
        at = word + 1 + (kind_at(r, word + 1) == '-');
    }
    if (r->done || !r->p->commands || r->command != PYARG_NONE ||
        kind_at(r, at + (kind_at(r, at) == '-')) != 'A')
        return at;
    return take_command(r, at);
}

static void
check_all(struct reader *r)
{
    auto_buf struct buf missing = BUF_INIT;

    for (const struct pyarg *a = r->p->args; !r->done && a->name; a++) {
        if (!pyarg_is_option(a) && !r->said[a - r->p->args])
            buf_addf(&missing, "%s%s", missing.len ? ", " : "", a->name);
    }
    if (!r->done && r->p->commands && r->command == PYARG_NONE && !r->p->needs_no_command)
        buf_addf(&missing, "%s%s", missing.len ? ", " : "", r->p->dest);
    if (missing.len)
        fail(r, "the following arguments are required: %s", buf_str(&missing));
}

static void
read_all(struct reader *r)
{
    int at = 1, last = 0;
    size_t rows = 0;

    while (r->p->args[rows].name)
        rows++;
    r->said = xcalloc(rows + 1, sizeof *r->said);
    for (size_t i = 0; i < rows; i++) {
        if (r->p->args[i].standard)
            take_value(r, &r->p->args[i], r->p->args[i].standard);
    }
    r->words = xcalloc((size_t)r->argc + 1, sizeof *r->words);
    r->command = PYARG_NONE;
    classify(r);
    for (int i = 1; i < r->argc; i++)
        last = r->words[i].kind == 'O' ? i : last;
    while (!r->done && at <= last) {
        int before = at;

        if (kind_at(r, at) != 'O')
            at = take_words(r, at);
        if (at > before)
            continue;
        while (kind_at(r, at) != 'O')
            add_extra(r, r->argv[at++]);
        at = take_option(r, at);
    }
    if (!r->done)
        at = take_words(r, at);
    while (!r->done && at < r->argc)
        add_extra(r, r->argv[at++]);
    check_all(r);
    free(r->words);
    free(r->said);
}

static int
find_command(struct reader *r, const char *name)
{
    auto_buf struct buf all = BUF_INIT, shown = BUF_INIT;
    const struct pyarg_command *commands = r->p->commands;

    for (int i = 0; commands[i].name; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return i;
        buf_addf(&all, "%s'%s'", i ? ", " : "", commands[i].name);
    }
    py_add_repr(&shown, name);
    fail(r, "argument %s: invalid choice: %s (choose from %s)", r->p->dest, buf_str(&shown),
         buf_str(&all));
    return PYARG_NONE;
}

/* All remaining words belong to the command. */
static int
take_command(struct reader *r, int at)
{
    int i = find_command(r, r->argv[at]);

    r->command = i;
    if (i == PYARG_NONE)
        return r->argc;

    auto_free char *prog = xasprintf("%s %s", r->p->prog, r->p->commands[i].name);
    const struct pyarg_parser p = {.prog = prog, .args = r->p->commands[i].args};
    struct reader sub = {.p = &p, .argc = r->argc - at, .argv = r->argv + at, .into = r->into};

    read_all(&sub);
    if (sub.n_extras)
        add_extra(r, buf_str(&sub.extras));
    buf_free(&sub.extras);
    r->done = sub.done;
    r->status = sub.status;
    return r->argc;
}

int
pyarg_read(const struct pyarg_parser *p, int argc, char **argv, void *into, int *status)
{
    struct reader r = {.p = p, .argc = argc, .argv = argv, .into = into};

    read_all(&r);
    if (!r.done && r.n_extras)
        fail(&r, "unrecognized arguments: %s", buf_str(&r.extras));
    buf_free(&r.extras);
    *status = r.status;
    return r.done ? PYARG_EXIT : r.command;
}
