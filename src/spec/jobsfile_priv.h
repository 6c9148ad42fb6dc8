/* Shared by jobsfile.c and jobsfile_lines.c. */
#ifndef SPEC_JOBSFILE_PRIV_H
#define SPEC_JOBSFILE_PRIV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct jobsfile;

/* One physical line, and its offset in the logical line. */
struct piece {
    const char *text;
    size_t len;
    size_t at; /* offset of its first byte in the logical line */
    int number;
};

/* A logical line: one physical line with its continuations. */
struct logical {
    const char *text; /* points into the file, or into joined if there are several pieces */
    size_t len;
    struct piece *pieces; /* owned */
    size_t n_pieces, cap_pieces;
    struct buf joined;
};

struct parser {
    const char *file_name;
    const struct when_clock *clock; /* NULL: none */
    const char *at, *end;           /* the unread text */
    int number;                     /* of the line at `at` */
    struct logical line;
    struct jobsfile *out;
    size_t cap_lines;
};

static inline bool
jobsfile_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static inline bool
jobsfile_is_quote(char c)
{
    return c == '"' || c == '\'';
}

/* Reads the next line that is neither blank nor a comment into p->line; lines with an error
 * are reported and skipped. A comment does not continue, as in the shell. */
bool jobsfile_next_line(struct parser *p);

/* Records an error at a byte of a physical line. */
void jobsfile_report(struct parser *p, const struct piece *piece, size_t offset,
                     const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* True, and reports an error, if the command, which begins at byte `at` of the line, looks
 * like misplaced attributes. behind_block: attributes precede it. */
bool jobsfile_is_slip(struct parser *p, const char *command, size_t at, bool behind_block);

/* The physical line that contains a byte of the logical line. */
const struct piece *jobsfile_piece_at(const struct logical *line, size_t offset);

/* Records an error at a byte of p->line. */
#define jobsfile_report_at(p, offset, ...)                                                     \
    do {                                                                                       \
        const struct piece *piece_ = jobsfile_piece_at(&(p)->line, (offset));                  \
        jobsfile_report((p), piece_, (offset)-piece_->at, __VA_ARGS__);                        \
    } while (0)

#endif
