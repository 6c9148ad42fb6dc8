/* The native jobs file: one shell command per line, `#` comments, an optional leading
 * [key=value ... word]. Text in, requests out; all or nothing. Pure: the caller reads the
 * file. */
#ifndef SPEC_JOBSFILE_H
#define SPEC_JOBSFILE_H

#include <stddef.h>

#include "base/request.h"

struct err;
struct when_clock;

#define JOBSFILE_COMMAND_MAX (4 * 1024 * 1024) /* bytes of one command */
#define JOBSFILE_ERRORS_MAX  21                /* the first, and up to 20 more */
#define JOBSFILE_KEY_SIZE    24                /* 12 hex digits, '#', occurrence, NUL */

struct jobsfile_line {
    struct request req;          /* command set, validated */
    char key[JOBSFILE_KEY_SIZE]; /* identity: attributes are no part of it */
    int line;                    /* 1-based; of a continued line the first */
    int column;                  /* 1-based: where it begins there */
};

struct jobsfile {
    struct jobsfile_line *lines; /* owned, in the file's order */
    size_t n_lines;
    char *errors[JOBSFILE_ERRORS_MAX]; /* owned; "FILE:LINE:COLUMN: words" */
    size_t n_errors;
};

/* Parses len bytes (a NUL among them is an error, none is needed behind them). file_name is
 * for messages, clock for moments such as begin=16:00; NULL: only what needs none. 0, or -1
 * with the first error in e, all of them (up to the bound) in out->errors, and no lines.
 * Columns count characters from 1. *out need not be initialised and is to be freed in both
 * cases. */
int jobsfile_parse(const char *file_name, const char *text, size_t len,
                   const struct when_clock *clock, struct jobsfile *out, struct err *e);

/* models_apply on every line, and what follows from it. -1 with "FILE:LINE:COLUMN: ..." for the
 * first line that cannot have what its model needs. */
struct models;
int jobsfile_apply_models(struct jobsfile *f, const char *file_name, const struct models *m,
                          struct err *e);

void jobsfile_free(struct jobsfile *f); /* what it owns; not f */

#endif
