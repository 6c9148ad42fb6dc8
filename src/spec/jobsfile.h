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
    char key[JOBSFILE_KEY_SIZE]; /* identity; does not depend on the attributes */
    int line;                    /* 1-based; the first physical line of a continued one */
    int column;                  /* 1-based: where the job begins in that line */
};

struct jobsfile {
    struct jobsfile_line *lines; /* owned, in the file's order */
    size_t n_lines;
    char *errors[JOBSFILE_ERRORS_MAX]; /* owned; "FILE:LINE:COLUMN: words" */
    size_t n_errors;
};

/* Parses len bytes (a NUL among them is an error; no terminator is needed). file_name is used
 * in messages, clock for times such as begin=16:00; NULL: only times that need no clock.
 * Returns 0, or -1 with the first error in e, all of them (up to the bound) in out->errors,
 * and no lines. Columns count characters from 1. *out need not be initialised; the caller
 * frees it in both cases. */
int jobsfile_parse(const char *file_name, const char *text, size_t len,
                   const struct when_clock *clock, struct jobsfile *out, struct err *e);

/* Applies models_apply to every line and validates it again. -1 with "FILE:LINE:COLUMN: ..."
 * for the first line that cannot have what its model needs. */
struct models;
int jobsfile_apply_models(struct jobsfile *f, const char *file_name, const struct models *m,
                          struct err *e);

void jobsfile_free(struct jobsfile *f); /* frees the contents, not f */

#endif
