/* Files of JSON lines that belong to a tool, and that people and other programs read and write
 * too: what is no JSON is kept as it stands, and a reader never sees half of a rewritten
 * file. */
#ifndef COMPAT_ENGINE_LINE_RECORDS_H
#define COMPAT_ENGINE_LINE_RECORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct buf;
struct err;

struct record {
    json_t *value; /* owned; NULL: no JSON */
    char *text;    /* owned; the line as it was read, where value is NULL */
};

struct records {
    struct record *at; /* owned */
    size_t n, cap;
};

/* Reads the file; one that is missing has no lines. Blank lines are not kept. *out is
 * overwritten. */
int records_load(const char *path, struct records *out, struct err *e);
void records_free(struct records *r); /* what it owns */

/* Whole lines at the end, in one piece among those of others that append so; a last line that
 * was torn off is ended first. With sync they are durable when this returns. All of them, or
 * none when it fails, and then the words begin with the path. */
int records_append(const char *path, const struct buf *lines, bool sync, struct err *e);

/* A whole file, replaced at once; it keeps its permissions and its owner. Follows a link. With
 * sync it is durable when this returns. */
int records_replace(const char *path, const void *bytes, size_t n, bool sync, struct err *e);
/* The same, durable, if the file is still the one that was read (what stat said of it; st_ino
 * 0: there was none). 1 and nothing done: it has been changed meanwhile. */
int records_replace_if(const char *path, const void *bytes, size_t n, const struct stat *was,
                       struct err *e);

/* Where the lock of a file is, with which one at a time works on it: DIR/.NAME.lock beside it,
 * under the file's real name. The caller frees. */
char *records_lock_path(const char *path);

#endif
