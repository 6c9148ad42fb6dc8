/* The native jobs file. A first pass over its lines (jobsfile_lines.c) makes a request of
 * each; a second, over the commands only, gives them their identity. `berth run` calls it at
 * every change of the file, so 100,000 lines must take only some tens of milliseconds. All or
 * nothing: a file with an error yields no lines. */
#include "spec/jobsfile.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "spec/attr.h"
#include "spec/jobsfile_priv.h"
#include "spec/models.h"

#define TOKEN_MAX_BYTES 8192 /* one key=value; the longest sensible one is a log's path */

/* True if the line, from its first non-blank byte, begins with attributes: `[[` and `[ ` are
 * the shell's test. */
static bool
has_attributes(const char *s, size_t n)
{
    return n > 0 && s[0] == '[' && (n == 1 || (s[1] != '[' && !jobsfile_is_blank(s[1])));
}

/* True if the comma at `at` ends a token. Values can be lists, so a comma after a = ends the
 * token only if a blank, the end or another name=value follows. */
static bool
is_separator(const char *s, size_t at, size_t n, bool in_value)
{
    size_t name = at + 1, end;

    if (!in_value || name == n || jobsfile_is_blank(s[name]))
        return true;
    for (end = name; end < n && !strchr(" \t,=\"'", s[end]); end++)
        ;
    auto_free char *word = xstrndup(s + name, end - name);
    return end < n && s[end] == '=' && attr_find(word, ATTR_JOBS_FILE | ATTR_COMMAND_LINE);
}

/* End of the token (at a blank or comma) or, with in_token false, of the block (at its `]`)
 * that begins at `at`. Text in quotes after a = is skipped. *hidden: the opening quote that
 * hides the first `]`, or n. */
static size_t
end_of(const char *s, size_t at, size_t n, bool in_token, size_t *hidden)
{
    char quote = '\0';
    size_t opened = n;
    bool in_value = false;

    *hidden = n;
    for (; at < n; at++) {
        in_value |= s[at] == '=';
        if (quote && s[at] == ']' && *hidden == n)
            *hidden = opened;
        if (quote)
            quote = s[at] == quote ? '\0' : quote;
        else if (in_token ? jobsfile_is_blank(s[at]) ||
                                (s[at] == ',' && is_separator(s, at, n, in_value))
                          : s[at] == ']')
            break;
        else if (jobsfile_is_quote(s[at]) && s[at - 1] == '=')
            quote = s[opened = at];
    }
    return at;
}

/* Strips the quotes from a value, also after a name as in env=NAME="a b"; false if text
 * adjoins them. */
static bool
unquote(char *value)
{
    char *open = value, *close;

    while (*open && !(jobsfile_is_quote(*open) && (open == value || open[-1] == '=')))
        open++;
    if (!*open)
        return true;
    close = strchr(open + 1, *open);
    if (!close || close[1])
        return false;
    memmove(open, open + 1, (size_t)(close - open) - 1);
    close[-1] = '\0';
    return true;
}

/* Parses one key=value or word of the block; token is a copy that may be modified. */
static void
parse_token(struct parser *p, struct request *r, char *token, size_t offset, bool after_value)
{
    struct err e;
    char *equals = strchr(token, '='), *value = equals ? equals + 1 : NULL;

    if (equals)
        *equals = '\0';
    if (value && !unquote(value))
        jobsfile_report_at(p, offset, "%s: expected a blank or ] after the closing quote",
                           token);
    else if (equals == token)
        jobsfile_report_at(p, offset,
                           "a value without a name; write vram=8G, without blanks around =");
    else if (attr_set_at(r, token, value, ATTR_JOBS_FILE, p->clock, &e) < 0)
        jobsfile_report_at(p, offset, "%s%s", e.text,
                           after_value && !equals && !attr_find(token, ATTR_JOBS_FILE)
                               ? "; quote values that have blanks: write vram=8G, not vram=8 G"
                               : "");
}

/* Parses the block that begins with `[` at offset `at`; returns the offset after its `]`, or 0
 * if that is missing. */
static size_t
parse_attributes(struct parser *p, struct request *r, size_t at)
{
    const char *s = p->line.text;
    size_t hidden, end = end_of(s, at + 1, p->line.len, false, &hidden), start = at++;
    bool after_value = false;
    char token[TOKEN_MAX_BYTES];

    if (end == p->line.len && hidden < end) {
        jobsfile_report_at(
            p, hidden, "unterminated %c; close it before the ], as in [name=\"a b\"] command",
            s[hidden]);
        return 0;
    }
    if (end == p->line.len) {
        jobsfile_report_at(
            p, start, "unterminated [; close the attributes with ], as in [vram=8G] command");
        return 0;
    }
    while (at < end) {
        size_t first = at;
        at = end_of(s, at, end, true, &hidden);
        if (at - first >= sizeof token) {
            jobsfile_report_at(p, first, "the attribute has %zu bytes; the maximum is %d",
                               at - first, TOKEN_MAX_BYTES - 1);
        } else if (at > first) {
            memcpy(token, s + first, at - first);
            token[at - first] = '\0';
            bool has_value = strchr(token, '=') != NULL;
            parse_token(p, r, token, first, after_value);
            after_value = has_value;
        }
        while (at < end && (jobsfile_is_blank(s[at]) || s[at] == ','))
            at++;
    }
    return end + 1;
}

static void
push_line(struct parser *p, const struct request *r, size_t start)
{
    const struct piece *first = &p->line.pieces[0];
    struct jobsfile *out = p->out;

    out->lines = xgrow(out->lines, out->n_lines, &p->cap_lines, sizeof *out->lines);
    out->lines[out->n_lines++] = (struct jobsfile_line){
        .req = *r, .line = first->number, .column = start < first->len ? (int)start + 1 : 1};
}

/* Takes the command between at and end, with surrounding blanks already stripped. A preceding
 * `[]` marks it as shell, even if it looks like attributes. */
static void
parse_command(struct parser *p, struct request *r, size_t start, size_t at, size_t end)
{
    struct err e;
    bool has_block = at > start;
    bool is_plain = has_block && p->line.text[start + 1] == ']';

    if (at == end) {
        jobsfile_report_at(p, at, "no command after the attributes; write one after the ]");
    } else if (end - at > JOBSFILE_COMMAND_MAX) {
        jobsfile_report_at(p, at, "the command has %zu bytes; the maximum is %d", end - at,
                           JOBSFILE_COMMAND_MAX);
    } else {
        r->command = xmalloc(end - at + 1);
        memcpy(r->command, p->line.text + at, end - at);
        r->command[end - at] = '\0';
        if (!is_plain && jobsfile_is_slip(p, r->command, at, has_block))
            return;
        if (request_validate(r, &e) < 0)
            jobsfile_report_at(p, start, "%s", e.text);
    }
}

static void
parse_line(struct parser *p)
{
    const char *s = p->line.text;
    size_t at = 0, start, end = p->line.len, errors = p->out->n_errors;
    struct request r;

    while (at < end && jobsfile_is_blank(s[at]))
        at++;
    while (end > at && jobsfile_is_blank(s[end - 1]))
        end--;
    start = at;
    request_begin(&r);
    if (has_attributes(s + at, end - at))
        at = parse_attributes(p, &r, at);
    if (p->out->n_errors == errors) {
        while (at < end && jobsfile_is_blank(s[at]))
            at++;
        parse_command(p, &r, start, at, end);
    }
    if (p->out->n_errors == 0)
        push_line(p, &r, start);
    else
        request_free(&r);
}

/* The slot of this identity in the table: its own, or the first free one after it. */
static size_t
find_slot(const struct jobsfile *f, const uint32_t *slots, size_t mask, const char *key)
{
    uint64_t hash;
    size_t slot;

    memcpy(&hash, key, sizeof hash); /* eight of its digits, spread by Knuth's constant */
    slot = (size_t)(hash * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
    while (slots[slot] && memcmp(f->lines[slots[slot] - 1].key, key, 12) != 0)
        slot = (slot + 1) & mask;
    return slot;
}

/* Sets the identities: the digest of the command, and its ordinal among equal commands. The
 * table holds the first line (+1) of each digest; counts[i] is how often line i's digest has
 * occurred. */
static void
give_keys(struct jobsfile *f)
{
    size_t size = 16;

    while (size < f->n_lines * 2)
        size *= 2;
    auto_free uint32_t *slots = xcalloc(size, sizeof *slots);
    auto_free uint32_t *counts = xcalloc(f->n_lines, sizeof *counts);
    for (size_t i = 0; i < f->n_lines; i++) {
        struct jobsfile_line *line = &f->lines[i];
        text_sha1_12(line->req.command, strlen(line->req.command), line->key);
        size_t slot = find_slot(f, slots, size - 1, line->key);
        if (!slots[slot])
            slots[slot] = (uint32_t)i + 1;
        uint32_t earlier = counts[slots[slot] - 1]++;
        if (earlier == 0)
            memcpy(line->key + 12, "#0", 3); /* the usual case, and much faster */
        else
            snprintf(line->key + 12, sizeof line->key - 12, "#%u", earlier);
    }
}

static void
drop_lines(struct jobsfile *f)
{
    for (size_t i = 0; i < f->n_lines; i++)
        request_free(&f->lines[i].req);
    free(f->lines);
    f->lines = NULL;
    f->n_lines = 0;
}

int
jobsfile_parse(const char *file_name, const char *text, size_t len,
               const struct when_clock *clock, struct jobsfile *out, struct err *e)
{
    struct parser p = {
        .file_name = file_name, .clock = clock, .at = text, .number = 1, .out = out};

    memset(out, 0, sizeof *out);
    if (len == 0)
        return 0;
    p.end = text + len;
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        p.at += 3; /* a byte order mark, which some editors write */
    while (jobsfile_next_line(&p))
        parse_line(&p);
    free(p.line.pieces);
    buf_free(&p.line.joined);
    if (out->n_errors > 0) {
        drop_lines(out);
        return err_set(e, ERR_USAGE, "%s", out->errors[0]);
    }
    give_keys(out);
    return 0;
}

int
jobsfile_apply_models(struct jobsfile *f, const char *file_name, const struct models *m,
                      struct err *e)
{
    for (size_t i = 0; i < f->n_lines; i++) {
        models_apply(m, &f->lines[i].req);
        if (request_validate(&f->lines[i].req, e) < 0)
            return err_prefix(e, "%s:%d:%d", file_name, f->lines[i].line, f->lines[i].column);
    }
    return 0;
}

void
jobsfile_free(struct jobsfile *f)
{
    drop_lines(f);
    for (size_t i = 0; i < f->n_errors; i++)
        free(f->errors[i]);
    f->n_errors = 0;
}
