/* Files of JSON lines that belong to a tool but that people and other programs also read and
 * write: lines that are not JSON are kept as they are, and readers never see a partly
 * rewritten file. */
#ifndef COMPAT_ENGINE_LINE_RECORDS_H
#define COMPAT_ENGINE_LINE_RECORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct buf;
struct err;

struct record {
    json_t *value; /* owned; NULL: the line is not JSON */
    char *text;    /* owned; the raw line if value is NULL */
};

struct records {
    struct record *at; /* owned */
    size_t n, cap;
};

/* Read the file; a missing file has no lines. Blank lines are dropped. *out is overwritten. */
int records_load(const char *path, struct records *out, struct err *e);
void records_free(struct records *r); /* frees what *r owns */

/* Append whole lines, atomically with respect to others that append this way; an incomplete
 * last line is ended first. With sync they are durable on return. On error nothing is appended
 * and the message begins with the path. */
int records_append(const char *path, const struct buf *lines, bool sync, struct err *e);

/* Replace the whole file atomically; it keeps its mode and owner. Follows a symlink. With sync
 * it is durable on return. */
int records_replace(const char *path, const void *bytes, size_t n, bool sync, struct err *e);
/* The same with sync, but only if the file is still the one that was read (`was`: its stat;
 * st_ino 0: there was none). Returns 1 without a change if it was changed meanwhile. */
int records_replace_if(const char *path, const void *bytes, size_t n, const struct stat *was,
                       struct err *e);

/* Path of the lock that serialises work on a file: DIR/.NAME.lock beside the file's real path.
 * The caller frees. */
char *records_lock_path(const char *path);

#endif
