/* The lines of a jobs file: splits the text, checks that each line is plain text, joins lines
 * that backslashes continue, and locates errors in the file. jobsfile.c parses the lines.
 * Takes linear time, also for long lines. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "spec/jobsfile.h"
#include "spec/jobsfile_priv.h"

#define SHOWN_NAME_BYTES 256

static size_t
count_characters(const char *s, size_t n)
{
    size_t count = 0;

    for (size_t at = 0; at < n; count++) {
        size_t len = text_utf8_len(s + at, n - at);
        at += len ? len : 1;
    }
    return count;
}

/* Truncates the front of a path that is too long for a message. */
static const char *
shown_name(const char *name)
{
    size_t n = strlen(name);

    if (n <= SHOWN_NAME_BYTES)
        return name;
    name += n - SHOWN_NAME_BYTES;
    while (((unsigned char)*name & 0xc0) == 0x80)
        name++;
    return name;
}

static bool
is_full_of_errors(const struct parser *p)
{
    return p->out->n_errors == JOBSFILE_ERRORS_MAX;
}

void
jobsfile_report(struct parser *p, const struct piece *piece, size_t offset, const char *fmt,
                ...)
{
    auto_free char *words = NULL;
    va_list ap;

    if (is_full_of_errors(p))
        return;
    va_start(ap, fmt);
    if (vasprintf(&words, fmt, ap) < 0)
        err_abort("no memory for an error");
    va_end(ap);
    p->out->errors[p->out->n_errors++] =
        xasprintf("%s:%d:%zu: %s", shown_name(p->file_name), piece->number,
                  count_characters(piece->text, offset) + 1, words);
}

const struct piece *
jobsfile_piece_at(const struct logical *line, size_t offset)
{
    size_t i = line->n_pieces - 1;

    while (i > 0 && line->pieces[i].at > offset)
        i--;
    return &line->pieces[i];
}

/* The first byte that is invalid in a jobs file; len if there is none. */
static size_t
find_bad_byte(const char *s, size_t len)
{
    size_t at = 0;

    while (at < len) {
        unsigned char c = (unsigned char)s[at];
        if ((c >= 0x20 && c < 0x7f) || c == '\t') {
            at++;
            continue;
        }
        size_t n = c < 0x80 ? 0 : text_utf8_len(s + at, len - at);
        if (n == 0)
            break;
        at += n;
    }
    return at;
}

static void
check_bytes(struct parser *p, const struct piece *piece)
{
    size_t at = find_bad_byte(piece->text, piece->len);
    unsigned char c;

    if (at == piece->len)
        return;
    c = (unsigned char)piece->text[at];
    if (piece->number == 1 && at == 0 && (c == 0xff || c == 0xfe))
        jobsfile_report(p, piece, at, "this looks like UTF-16; save the file as UTF-8");
    else if (c >= 0x80)
        jobsfile_report(p, piece, at, "byte 0x%02x is not UTF-8; save the file as UTF-8", c);
    else if (c == 0)
        jobsfile_report(p, piece, at,
                        "a NUL byte; a jobs file is plain text, one command per line");
    else if (c == '\r')
        jobsfile_report(
            p, piece, at,
            "a carriage return inside a line; end lines with LF or CRLF, and write \\r for "
            "one in a command");
    else
        jobsfile_report(p, piece, at,
                        "control character 0x%02x; only tabs are allowed; write \\%03o for "
                        "printf if a command needs it",
                        c, c);
}

/* Takes the next physical line from the text. */
static struct piece
next_piece(struct parser *p)
{
    const char *newline = memchr(p->at, '\n', (size_t)(p->end - p->at));
    const char *stop = newline ? newline : p->end;
    struct piece piece = {.text = p->at, .len = (size_t)(stop - p->at), .number = p->number};

    if (newline && piece.len > 0 && stop[-1] == '\r')
        piece.len--;
    p->at = newline ? newline + 1 : p->end;
    p->number++;
    check_bytes(p, &piece);
    return piece;
}

/* True if an odd number of backslashes ends the line, so that the last is not escaped. */
static bool
is_continued(const struct piece *piece)
{
    size_t n = 0;

    while (n < piece->len && piece->text[piece->len - 1 - n] == '\\')
        n++;
    return n % 2 == 1;
}

static void
push_piece(struct logical *line, struct piece piece)
{
    line->pieces = xgrow(line->pieces, line->n_pieces, &line->cap_pieces, sizeof *line->pieces);
    line->pieces[line->n_pieces++] = piece;
}

static bool
is_comment_or_blank(const struct piece *piece)
{
    size_t i = 0;

    while (i < piece->len && jobsfile_is_blank(piece->text[i]))
        i++;
    return i == piece->len || piece->text[i] == '#';
}

/* Joins continued lines. Like the shell, it removes backslash and newline, so the command
 * equals the one written on a single line. */
static void
join_pieces(struct parser *p, struct piece piece)
{
    struct logical *line = &p->line;
    bool more = true;

    buf_clear(&line->joined);
    line->n_pieces = 0;
    while (more) {
        more = is_continued(&piece);
        piece.at = line->joined.len;
        push_piece(line, piece);
        buf_add(&line->joined, piece.text, piece.len - more);
        if (more && p->at == p->end) {
            jobsfile_report(p, &piece, piece.len - 1,
                            "the backslash continues this line, but the file ends here; add "
                            "the rest, or remove the backslash");
            break;
        }
        if (more)
            piece = next_piece(p);
    }
    line->text = buf_str(&line->joined);
    line->len = line->joined.len;
}

bool
jobsfile_next_line(struct parser *p)
{
    while (p->at < p->end && !is_full_of_errors(p)) {
        size_t errors = p->out->n_errors;
        struct piece piece = next_piece(p);
        if (is_comment_or_blank(&piece))
            continue;
        if (is_continued(&piece)) {
            join_pieces(p, piece);
        } else {
            p->line.n_pieces = 0;
            push_piece(&p->line, piece);
            p->line.text = piece.text;
            p->line.len = piece.len;
        }
        if (p->out->n_errors == errors)
            return true;
    }
    return false;
}
