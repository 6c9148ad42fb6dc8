/* Walking through JSON text without building a tree, for lists of ten thousand rows. It
 * trusts the daemon to send JSON (a line that is none was refused before) but never reads
 * beyond the text it was given. */
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

/* One value: its text, for a string with its quotes. Borrowed from what is scanned. */
struct scan_value {
    enum scan_type type;
    bool escaped; /* a string with a backslash in it */
    const char *text;
    size_t len;
};

/* The next value, past any commas; false at the end of the list or the text. */
bool scan_next(struct scan *s, struct scan_value *out);
/* Goes into the array or object that comes next, and out of it once scan_next has said
 * false: so every byte is looked at once. False, and nothing moved: something else is next. */
bool scan_open(struct scan *s);
void scan_close(struct scan *s);
/* Inside an object (whose keys come as values of their own): moves to the value of key. */
bool scan_find(struct scan *s, const char *key);

/* The rows of an answer, {"rows":[[...],...]}: calls row for each with its first n values, of
 * SCAN_NONE where the row has fewer. */
typedef void (*scan_row_cb)(void *arg, const struct scan_value *v);
void scan_rows(const char *text, size_t len, size_t n, scan_row_cb row, void *arg);

int64_t scan_int(const struct scan_value *v, int64_t otherwise);
/* A string's bytes, decoded; a number as it stands; nothing for others. */
void scan_add(struct buf *out, const struct scan_value *v);
bool scan_is(const struct scan_value *v, const char *word); /* a string equal to word */
json_t *scan_tree(const struct scan_value *v);              /* owned by the caller; NULL */

#endif
