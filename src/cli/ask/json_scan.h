/* Scans JSON text without building a tree, for lists of ten thousand rows. It relies on the
 * daemon to send valid JSON (the client has refused other lines) but never reads beyond the
 * given text. */
#ifndef CLI_ASK_JSON_SCAN_H
#define CLI_ASK_JSON_SCAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

struct scan {
    const char *at;
    const char *end;
};

enum scan_type {
    SCAN_NONE,
    SCAN_NULL,
    SCAN_BOOL,
    SCAN_NUMBER,
    SCAN_STRING,
    SCAN_ARRAY,
    SCAN_OBJECT
};

/* One value: its text, with the quotes for a string. Borrowed from the scanned text. */
struct scan_value {
    enum scan_type type;
    bool escaped; /* a string with a backslash in it */
    const char *text;
    size_t len;
};

/* Returns the next value, skipping commas; false at the end of the list or text. */
bool scan_next(struct scan *s, struct scan_value *out);
/* Enters the array or object that comes next; scan_close leaves it, after scan_next has
 * returned false, so that every byte is scanned once. False, with the position unchanged:
 * something else comes next. */
bool scan_open(struct scan *s);
void scan_close(struct scan *s);
/* Inside an object (whose keys are returned as values too): moves to the value of key. */
bool scan_find(struct scan *s, const char *key);

/* Calls row for each row of an answer, {"rows":[[...],...]}, with its first n values, which
 * are SCAN_NONE where the row has fewer. */
typedef void (*scan_row_cb)(void *arg, const struct scan_value *v);
void scan_rows(const char *text, size_t len, size_t n, scan_row_cb row, void *arg);

int64_t scan_int(const struct scan_value *v, int64_t otherwise);
/* Appends a string's bytes, decoded, or a number unchanged; nothing for others. */
void scan_add(struct buf *out, const struct scan_value *v);
bool scan_is(const struct scan_value *v, const char *word); /* a string equal to word */
json_t *scan_tree(const struct scan_value *v); /* owned by the caller; may be NULL */

#endif
