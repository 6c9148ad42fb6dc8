/* Reading a command line as argparse does; see pyarg.h. */
#include "cli/compat/pyarg.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/compat/pytext.h"

struct reader {
    const struct pyarg_parser *p;
    const struct pyarg_parser *whole; /* who complains of words that nobody knows */
    int argc;
    char **argv;
    int at;
    struct pyarg_value *values;
    struct buf extras; /* words that nobody knows */
    bool only_words;   /* behind -- */
    int command;       /* index in argv; 0: not yet */
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

/* "-v/--verbose", or what a word is called. */
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
take_value(struct reader *r, const struct pyarg *a, const char *text)
{
    struct pyarg_value *v = &r->values[a - r->p->args];
    auto_buf struct buf name = BUF_INIT;
    auto_buf struct buf more = BUF_INIT;

    v->text = text;
    add_name(&name, a);
    py_add_repr(&more, text);
    if (a->type == PYARG_INT && !py_int(text, &v->i)) {
        fail(r, "argument %s: invalid int value: %s", buf_str(&name), buf_str(&more));
    } else if (a->type == PYARG_FLOAT && !py_float(text, &v->f)) {
        fail(r, "argument %s: invalid float value: %s", buf_str(&name), buf_str(&more));
    } else if (a->choices && !is_choice(a->choices, text)) {
        buf_adds(&more, " (choose from ");
        add_choices(&more, a->choices);
        fail(r, "argument %s: invalid choice: %s)", buf_str(&name), buf_str(&more));
    }
}

/* ------------------------------------------------------- which word is what */

/* The option of that whole name of n bytes. */
static const struct pyarg *
find_exact(const struct reader *r, const char *word, size_t n)
{
    for (const struct pyarg *a = r->p->args; a->name; a++) {
        if (!pyarg_is_option(a))
            continue;
        if ((strlen(a->name) == n && memcmp(a->name, word, n) == 0) ||
            (a->letter && strlen(a->letter) == n && memcmp(a->letter, word, n) == 0))
            return a;
    }
    return NULL;
}

/* The only option whose name begins so; several are an error. */
static const struct pyarg *
find_beginning(struct reader *r, const char *word, size_t n)
{
    const struct pyarg *found = NULL;
    auto_buf struct buf names = BUF_INIT;
    int matches = 0;

    for (const struct pyarg *a = r->p->args; a->name; a++) {
        if (!pyarg_is_option(a) || strncmp(a->name, word, n) != 0)
            continue;
        buf_addf(&names, "%s%s", matches++ ? ", " : "", a->name);
        found = a;
    }
    if (matches > 1)
        fail(r, "ambiguous option: %s could match %s", word, buf_str(&names));
    return found;
}

static bool
is_negative_number(const char *word)
{
    double v;

    return word[0] == '-' && (isdigit((unsigned char)word[1]) || word[1] == '.') &&
           py_float(word, &v);
}

/* Whether argparse takes the word for an option, known or not. */
static bool
looks_like_option(const struct reader *r, const char *word)
{
    if (word[0] != '-' || !word[1] || r->only_words)
        return false;
    if (find_exact(r, word, strcspn(word, "=")))
        return true;
    return !is_negative_number(word) && !strchr(word, ' ');
}

/* ------------------------------------------------------------------ reading */

static void
show(struct reader *r, const struct pyarg *a)
{
    auto_buf struct buf out = BUF_INIT;

    if (a->type == PYARG_HELP)
        pyarg_add_help(&out, r->p);
    else
        buf_addf(&out, "%s\n", a->metavar);
    r->status = cli_put(&out);
    r->done = true;
}

/* value: behind `=` or in the same word as a letter; NULL: the next word, if it needs one. */
static void
take_option(struct reader *r, const struct pyarg *a, const char *value)
{
    auto_buf struct buf name = BUF_INIT;
    bool takes_none = a->type >= PYARG_FLAG;

    add_name(&name, a);
    if (takes_none && value) {
        auto_buf struct buf shown = BUF_INIT;

        py_add_repr(&shown, value);
        fail(r, "argument %s: ignored explicit argument %s", buf_str(&name), buf_str(&shown));
    } else if (a->type == PYARG_FLAG) {
        r->values[a - r->p->args].text = "";
    } else if (takes_none) {
        show(r, a);
    } else if (value) {
        take_value(r, a, value);
    } else if (r->at + 1 < r->argc && strcmp(r->argv[r->at + 1], "--") != 0 &&
               !looks_like_option(r, r->argv[r->at + 1])) {
        take_value(r, a, r->argv[++r->at]);
    } else {
        fail(r, "argument %s: expected one argument", buf_str(&name));
    }
}

/* -v, -vfoo, -xv; a letter that nobody knows leaves the word to the extras. */
static bool
take_letters(struct reader *r, const char *word)
{
    for (const char *at = word + 1; *at && !r->done; at++) {
        char name[3] = {'-', *at, '\0'};
        const struct pyarg *a = find_exact(r, name, 2);

        if (!a)
            return at != word + 1;
        if (a->type < PYARG_FLAG) {
            take_option(r, a, at[1] ? at + 1 : NULL);
            return true;
        }
        take_option(r, a, NULL);
    }
    return true;
}

static void
add_extra(struct reader *r, const char *word)
{
    if (r->extras.len)
        buf_addc(&r->extras, ' ');
    buf_adds(&r->extras, word);
}

static void
take_dashed(struct reader *r, char *word)
{
    size_t n = strcspn(word, "=");
    const struct pyarg *a = find_exact(r, word, strlen(word));

    if (!a && word[n])
        a = find_exact(r, word, n);
    if (!a && word[1] == '-')
        a = find_beginning(r, word, n);
    if (r->done)
        return;
    if (a)
        take_option(r, a, word[n] ? word + n + 1 : NULL);
    else if (word[1] == '-' || !take_letters(r, word))
        add_extra(r, word);
}

/* The first word of the table that has no value yet. */
static const struct pyarg *
next_word(const struct reader *r)
{
    for (const struct pyarg *a = r->p->args; a->name; a++) {
        if (!pyarg_is_option(a) && !r->values[a - r->p->args].text)
            return a;
    }
    return NULL;
}

static void
take_word(struct reader *r, char *word)
{
    const struct pyarg *a = next_word(r);

    if (a)
        take_value(r, a, word);
    else if (r->p->commands && !r->command)
        r->command = r->at;
    else
        add_extra(r, word);
}

static void
check_command(struct reader *r)
{
    auto_buf struct buf shown = BUF_INIT;

    if (!r->p->commands || r->done)
        return;
    if (!r->command) {
        if (!r->p->needs_no_command)
            fail(r, "the following arguments are required: %s", r->p->dest);
        return;
    }
    for (const struct pyarg_command *c = r->p->commands; c->name; c++) {
        if (strcmp(c->name, r->argv[r->command]) == 0)
            return;
        buf_addf(&shown, "%s'%s'", shown.len ? ", " : "", c->name);
    }
    {
        auto_buf struct buf word = BUF_INIT;

        py_add_repr(&word, r->argv[r->command]);
        fail(r, "argument %s: invalid choice: %s (choose from %s)", r->p->dest, buf_str(&word),
             buf_str(&shown));
    }
}

static void
check_all(struct reader *r)
{
    auto_buf struct buf missing = BUF_INIT;

    for (const struct pyarg *a = r->p->args; !r->done && a->name; a++) {
        if (!pyarg_is_option(a) && !r->values[a - r->p->args].text)
            buf_addf(&missing, "%s%s", missing.len ? ", " : "", a->name);
    }
    if (missing.len)
        fail(r, "the following arguments are required: %s", buf_str(&missing));
    check_command(r);
    if (!r->done && r->extras.len) {
        r->p = r->whole;
        fail(r, "unrecognized arguments: %s", buf_str(&r->extras));
    }
}

static int
read_all(struct reader *r)
{
    for (r->at = 1; r->at < r->argc && !r->done && !r->command; r->at++) {
        char *word = r->argv[r->at];

        if (!r->only_words && strcmp(word, "--") == 0)
            r->only_words = true;
        else if (looks_like_option(r, word))
            take_dashed(r, word);
        else
            take_word(r, word);
    }
    check_all(r);
    buf_free(&r->extras);
    return r->done ? PYARG_EXIT : r->command;
}

static void
clear_values(const struct pyarg *args, struct pyarg_value *values)
{
    for (size_t i = 0; args[i].name; i++)
        values[i] = (struct pyarg_value){0};
}

int
pyarg_read(const struct pyarg_parser *p, int argc, char **argv, struct pyarg_value *values,
           int *status)
{
    struct reader r = {.p = p, .whole = p, .argc = argc, .argv = argv, .values = values};
    int rc;

    clear_values(p->args, values);
    rc = read_all(&r);
    *status = r.status;
    return rc;
}

int
pyarg_read_command(const struct pyarg_parser *p, int argc, char **argv,
                   struct pyarg_value *values, int *status)
{
    const struct pyarg_command *c = p->commands;

    while (strcmp(c->name, argv[0]) != 0)
        c++;
    auto_free char *prog = xasprintf("%s %s", p->prog, c->name);
    const struct pyarg_parser sub = {.prog = prog, .args = c->args};
    struct reader r = {.p = &sub, .whole = p, .argc = argc, .argv = argv, .values = values};

    clear_values(c->args, values);
    int rc = read_all(&r);
    *status = r.status;
    return rc == PYARG_EXIT ? PYARG_EXIT : (int)(c - p->commands);
}
