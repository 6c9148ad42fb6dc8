/* Finds the option lines of a script, splits them into words as a shell would, and passes each
 * option to the attributes (#BERTH) or to sbatch.c (#SBATCH). Every message has its line
 * number, and all are collected and reported together. Called by `berth submit`. */
#include "spec/script.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/request.h"
#include "base/text.h"
#include "spec/attr.h"
#include "spec/script_priv.h"

#define WORDS_MAX   64 /* per line */
#define OPTIONS_MAX 128

/* #BERTH's options that are not attributes. */
enum { OWN_EXPORT, OWN_COUNT };
static const struct script_option own[OWN_COUNT] = {
    [OWN_EXPORT] = {"export", 0, TAKES_VALUE},
};

struct reader {
    const char *file;
    const struct when_clock *clock;
    struct request *r;
    struct script *out;
    struct sbatch sbatch;
    int line;
    bool foreign_said;   /* lines of another batch system were reported */
    bool slurm_env_said; /* set by #BERTH --slurm-env, so #SBATCH lines do not decide it */
};

/* One option line, and how much of it has been read. */
struct directive {
    const char *mark; /* "#SBATCH" */
    bool is_sbatch;
    char *words[WORDS_MAX]; /* owned */
    int n, at;
    const char *cluster; /* remaining letters of combined options such as "-HQ" */
};

static void
add_to(struct script_list *list, char *text)
{
    if (list->n == SCRIPT_WORDS_MAX) {
        free(text);
        return;
    }
    list->at = xrealloc(list->at, (list->n + 2) * sizeof *list->at);
    list->at[list->n++] = text;
    list->at[list->n] = NULL;
}

static void
free_list(struct script_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->at[i]);
    free(list->at);
    *list = (struct script_list){NULL, 0};
}

void
script_free(struct script *s)
{
    free(s->interpreter);
    free(s->export);
    s->interpreter = s->export = NULL;
    free_list(&s->errors);
    free_list(&s->unsupported);
    free_list(&s->notes);
    free_list(&s->ignored);
    free_list(&s->variables);
}

void
script_note(struct script *s, int line, const char *words)
{
    add_to(&s->notes, line ? xasprintf("%s:%d: %s", s->file, line, words) : xstrdup(words));
}

void
script_ignore(struct script *s, const char *option)
{
    for (size_t i = 0; i < s->ignored.n; i++)
        if (strcmp(s->ignored.at[i], option) == 0)
            return;
    add_to(&s->ignored, xstrdup(option));
}

void
script_add_variable(struct script *s, char *entry)
{
    add_to(&s->variables, entry);
}

/* Adds "FILE:LINE: #SBATCH --name: words" to the list for rc: -1 errors, 1 unsupported. For
 * options from elsewhere (line 0): "--name: words". */
static void
complain(struct reader *rd, int rc, int line, const char *mark, const char *name,
         const char *words)
{
    auto_buf struct buf shown = BUF_INIT, safe = BUF_INIT;

    text_add_safe(&shown, name, strlen(name), 60);
    text_add_safe(&safe, words, strlen(words), 0);
    add_to(rc < 0 ? &rd->out->errors : &rd->out->unsupported,
           line ? xasprintf("%s:%d: %s %s: %s", rd->file, line, mark, buf_str(&shown),
                            buf_str(&safe))
                : xasprintf("%s: %s", buf_str(&shown), buf_str(&safe)));
}

/* --- words --- */

/* Returns the next word at *p as a new string: blanks end it, quotes and backslashes work as
 * in the shell. NULL at the end and at a comment, which in sbatch can begin inside a word;
 * *open: a quote was not closed. */
static char *
take_word(const char **p, const char *end, bool is_sbatch, bool *open)
{
    auto_buf struct buf word = BUF_INIT;
    const char *s = *p;
    char quote = '\0';

    while (s < end && (*s == ' ' || *s == '\t'))
        s++;
    if (s == end || *s == '#')
        return NULL;
    for (; s < end && (quote || (*s != ' ' && *s != '\t' && (*s != '#' || !is_sbatch))); s++) {
        if (quote && *s == quote)
            quote = '\0';
        else if (!quote && (*s == '"' || *s == '\''))
            quote = *s;
        else if (*s == '\\' && quote != '\'' && s + 1 < end)
            buf_addc(&word, *++s);
        else
            buf_addc(&word, *s);
    }
    *open = quote != '\0';
    *p = s;
    return xstrdup(buf_str(&word));
}

/* False, with a message added, if the line cannot be split. */
static bool
take_words(struct reader *rd, struct directive *d, const char *p, const char *end)
{
    bool open = false;
    char *word;

    while ((word = take_word(&p, end, d->is_sbatch, &open))) {
        if (open || d->n == WORDS_MAX) {
            complain(rd, -1, rd->line, d->mark, word,
                     open ? "the quote is not closed" : "more than 64 words on the line");
            free(word);
            return false;
        }
        d->words[d->n++] = word;
    }
    return true;
}

/* --- options --- */

/* Row i of the options of #BERTH or #SBATCH lines; attributes follow #BERTH's own options. */
static bool
row_at(bool is_sbatch, int i, struct script_option *out)
{
    const struct attr *a;

    if (is_sbatch) {
        const struct script_option *o = sbatch_option(i);
        if (o)
            *out = *o;
        return o != NULL;
    }
    if (i < OWN_COUNT) {
        *out = own[i];
        return true;
    }
    a = attr_at((size_t)(i - OWN_COUNT));
    if (a)
        *out = (struct script_option){a->doors & ATTR_COMMAND_LINE ? a->name : "",
                                      a->doors & ATTR_COMMAND_LINE ? a->letter : '\0',
                                      a->metavar ? TAKES_VALUE : TAKES_MAYBE};
    return a != NULL;
}

/* sbatch uses getopt_long, which accepts a unique prefix of an option's name. -1: none, or
 * ambiguous. */
static int
find_cut_short(const char *name, size_t n, struct script_option *out)
{
    struct script_option o;
    int found = -1, n_found = 0;

    for (int i = 0; row_at(true, i, &o); i++)
        if (strncmp(o.name, name, n) == 0) {
            *out = o;
            found = i;
            n_found++;
        }
    return n_found == 1 ? found : -1;
}

/* Finds an option by name (n bytes) or, if n is 0, by letter; -1: none. */
static int
find_row(bool is_sbatch, const char *name, size_t n, char letter, struct script_option *out)
{
    for (int i = 0; row_at(is_sbatch, i, out); i++) {
        if (n ? strlen(out->name) == n && memcmp(out->name, name, n) == 0
              : letter && out->letter == letter)
            return i;
    }
    if (n && !is_sbatch) { /* an alias */
        auto_free char *copy = xstrndup(name, n);
        const struct attr *a = attr_find(copy, ATTR_COMMAND_LINE);
        for (int i = OWN_COUNT; a && row_at(false, i, out); i++)
            if (attr_at((size_t)(i - OWN_COUNT)) == a)
                return i;
    }
    return n && is_sbatch ? find_cut_short(name, n, out) : -1;
}

static void
complain_unknown(struct reader *rd, const struct directive *d, const char *word)
{
    const char *known[OPTIONS_MAX + 1];
    auto_free char *name = xstrndup(word, strcspn(word, "="));
    auto_free char *words = NULL;
    struct script_option o;
    int n = 0;

    for (int i = 0; n < OPTIONS_MAX && row_at(d->is_sbatch, i, &o); i++)
        if (o.name[0])
            known[n++] = o.name;
    known[n] = NULL;
    const char *near = strncmp(name, "--", 2) == 0 ? text_nearest(name + 2, known) : NULL;
    words = near ? xasprintf("unknown option; did you mean --%s?", near)
                 : xstrdup(d->is_sbatch ? "unknown option, or not supported on one machine"
                                        : "unknown option");
    if (d->is_sbatch && strncmp(name, "--", 2) == 0 && attr_find(name + 2, ATTR_COMMAND_LINE)) {
        free(words);
        words = xstrdup("it is not a Slurm option; write it on a #BERTH line");
        near = name;
    }
    complain(rd, d->is_sbatch && !near ? 1 : -1, rd->line, d->mark, name, words);
}

static int
apply_berth(struct reader *rd, int row, const char *value, struct err *e)
{
    if (row >= OWN_COUNT) {
        const char *name = attr_at((size_t)(row - OWN_COUNT))->name;
        rd->slurm_env_said = rd->slurm_env_said || strcmp(name, "slurm-env") == 0;
        sbatch_replace(&rd->sbatch, name);
        return attr_set_named(rd->r, name, value, ATTR_COMMAND_LINE, rd->clock, e);
    }
    free(rd->out->export);
    rd->out->export = xstrdup(value);
    return 0;
}

/* Finds the option's value and applies it. */
static void
settle(struct reader *rd, struct directive *d, int row, const struct script_option *o,
       const char *attached)
{
    auto_free char *shown = xasprintf("--%s", o->name);
    const char *value = attached;
    struct err e;
    int rc;

    if (o->takes == TAKES_VALUE && !value) {
        if (d->at == d->n) {
            complain(rd, -1, rd->line, d->mark, shown, "it needs a value");
            return;
        }
        value = d->words[d->at++];
    } else if (o->takes == TAKES_NOTHING && value) {
        complain(rd, -1, rd->line, d->mark, shown, "it takes no value");
        return;
    }
    rc = d->is_sbatch ? sbatch_apply(&rd->sbatch, row, value, rd->line, &e)
                      : apply_berth(rd, row, value, &e);
    if (rc != 0)
        complain(rd, rc, rd->line, d->mark, shown, e.text);
}

static void
read_long(struct reader *rd, struct directive *d, const char *word)
{
    const char *eq = strchr(word, '=');
    size_t n = eq ? (size_t)(eq - word - 2) : strlen(word + 2);
    struct script_option o;
    int row = n ? find_row(d->is_sbatch, word + 2, n, '\0', &o) : -1;

    if (row < 0)
        complain_unknown(rd, d, word);
    else
        settle(rd, d, row, &o, eq ? eq + 1 : NULL);
}

static void
read_letters(struct reader *rd, struct directive *d, const char *letters)
{
    while (*letters) {
        struct script_option o;
        int row = find_row(d->is_sbatch, NULL, 0, *letters, &o);
        if (row < 0) {
            char shown[] = {'-', *letters, '\0'};
            complain_unknown(rd, d, shown);
            return;
        }
        letters++;
        if (o.takes == TAKES_VALUE) {
            settle(rd, d, row, &o, *letters == '=' ? letters + 1 : *letters ? letters : NULL);
            return;
        }
        settle(rd, d, row, &o, NULL);
    }
}

static void
read_directive(struct reader *rd, struct directive *d)
{
    while (d->at < d->n) {
        const char *word = d->words[d->at++];
        if (word[0] != '-' || !word[1])
            complain(rd, -1, rd->line, d->mark, word, "not an option; options begin with -");
        else if (word[1] == '-')
            read_long(rd, d, word);
        else
            read_letters(rd, d, word + 1);
    }
}

/* --- lines --- */

static bool
begins_with(const char *s, const char *end, const char *mark)
{
    size_t n = strlen(mark);

    return (size_t)(end - s) >= n && memcmp(s, mark, n) == 0 &&
           (s + n == end || s[n] == ' ' || s[n] == '\t');
}

/* Slurm reads #PBS lines too: without a note, what they request would be lost silently. */
static void
note_foreign(struct reader *rd, const char *s, const char *end)
{
    const char *mark = begins_with(s, end, "#PBS")    ? "#PBS"
                       : begins_with(s, end, "#BSUB") ? "#BSUB"
                                                      : NULL;

    if (!mark)
        return;
    auto_free char *note = xasprintf("%s lines are not read; write #SBATCH", mark);
    script_note(rd->out, rd->line, note);
    rd->foreign_said = true;
}

/* Reads one line without its newline; false: it is the first command. */
static bool
read_line(struct reader *rd, const char *s, const char *end)
{
    const char *p = s;
    struct directive d = {.mark = "#BERTH"};

    while (end > s && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t'))
        end--;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    if (p < end && *p != '#')
        return false;
    if (rd->line == 1 && end - s > 2 && memcmp(s, "#!", 2) == 0) {
        s += 2 + strspn(s + 2, " \t");
        rd->out->interpreter = s < end ? xstrndup(s, (size_t)(end - s)) : NULL;
    } else if (begins_with(s, end, "#BERTH") || begins_with(s, end, "#SBATCH")) {
        d.is_sbatch = begins_with(s, end, "#SBATCH");
        d.mark = d.is_sbatch ? "#SBATCH" : "#BERTH";
        rd->out->n_lines++;
        rd->out->n_sbatch += d.is_sbatch;
        rd->r->slurm_env |= d.is_sbatch && !rd->slurm_env_said;
        if (take_words(rd, &d, s + strlen(d.mark), end))
            read_directive(rd, &d);
        for (int i = 0; i < d.n; i++)
            free(d.words[i]);
    } else if (rd->sbatch.bare && !rd->foreign_said) {
        note_foreign(rd, s, end);
    }
    return true;
}

static void
read_over(struct reader *rd, const struct script_word *over, size_t n)
{
    struct err wrong;

    for (size_t i = 0; i < n; i++) {
        rd->sbatch.is_variable = over[i].is_variable;
        int rc = sbatch_apply(&rd->sbatch, over[i].option, over[i].value, 0, &wrong);

        if (rc != 0)
            complain(rd, rc, 0, "", over[i].from, wrong.text);
    }
}

static int
read_text(struct reader *rd, const char *text, size_t len, const struct script_word *over,
          size_t n, struct err *e)
{
    struct script *out = rd->out;
    const char *end = text + len, *what;
    struct err wrong;
    int rc, line;

    memset(out, 0, sizeof *out);
    out->file = rd->file;
    rd->sbatch.r = rd->r;
    rd->sbatch.out = out;
    rd->sbatch.clock = rd->clock;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        rd->line++;
        if (!read_line(rd, text, newline ? newline : end))
            break;
        text = newline ? newline + 1 : end;
    }
    read_over(rd, over, n);
    while ((rc = sbatch_finish(&rd->sbatch, &line, &what, &wrong)) != 0)
        complain(rd, rc, line, "#SBATCH", what, wrong.text);
    return out->errors.n ? err_set(e, ERR_USAGE, "%s", out->errors.at[0]) : 0;
}

int
script_read_over(const char *file, const char *text, size_t len, const struct when_clock *clock,
                 const char *host, const struct script_word *over, size_t n, struct request *r,
                 struct script *out, struct err *e)
{
    struct reader rd = {.file = file,
                        .clock = clock,
                        .r = r,
                        .out = out,
                        .sbatch = {.bare = true, .host = host}};

    return read_text(&rd, text, len, over, n, e);
}

int
script_read(const char *file, const char *text, size_t len, const struct when_clock *clock,
            const struct request *over, struct request *r, struct script *out, struct err *e)
{
    struct reader rd = {
        .file = file, .clock = clock, .r = r, .out = out, .sbatch = {.over = over}};

    return read_text(&rd, text, len, NULL, 0, e);
}
