/* Writes JSON straight into a buffer, for answers that may list 100,000 jobs: building a tree
 * first would cost more than everything else. The writer places commas. jansson does the
 * reading. */
#ifndef BASE_JSONW_H
#define BASE_JSONW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

struct jsonw {
    struct buf *out;
    bool comma; /* a comma is due before the next value */
    bool full;  /* max was exceeded: the content of out is useless */
    size_t max; /* upper bound on the size of out; 0: no bound */
};

void jsonw_init(struct jsonw *w, struct buf *out);
/* Bounds *out to max bytes, plus at most one value. On overflow the writer sets `full` and
 * discards its output; callers that write lists check `full` and stop. */
void jsonw_bound(struct jsonw *w, size_t max);
void jsonw_object(struct jsonw *w); /* { */
void jsonw_end_object(struct jsonw *w);
void jsonw_array(struct jsonw *w); /* [ */
void jsonw_end_array(struct jsonw *w);
void jsonw_key(struct jsonw *w, const char *key);
/* A string; invalid UTF-8 becomes U+FFFD, control bytes are escaped. NULL: null. */
void jsonw_str(struct jsonw *w, const char *s);
void jsonw_strn(struct jsonw *w, const char *s, size_t n);
void jsonw_int(struct jsonw *w, int64_t v);
void jsonw_num(struct jsonw *w, double v); /* null if not finite */
void jsonw_bool(struct jsonw *w, bool v);
void jsonw_null(struct jsonw *w);
void jsonw_int_or_null(struct jsonw *w, int64_t v, bool known);
/* {"unix": seconds with fraction, "rfc3339": "..."}; 0 is null. */
void jsonw_time(struct jsonw *w, int64_t wall_us);
void jsonw_raw(struct jsonw *w, const char *json, size_t n); /* one complete JSON value */

/* Key and value in one call: */
void jsonw_kstr(struct jsonw *w, const char *key, const char *s);
void jsonw_kint(struct jsonw *w, const char *key, int64_t v);
void jsonw_kint_or_null(struct jsonw *w, const char *key, int64_t v, bool known);
void jsonw_knum(struct jsonw *w, const char *key, double v);
void jsonw_kbool(struct jsonw *w, const char *key, bool v);
void jsonw_knull(struct jsonw *w, const char *key);
void jsonw_ktime(struct jsonw *w, const char *key, int64_t wall_us);
void jsonw_kobject(struct jsonw *w, const char *key); /* opens an object as the key's value */
void jsonw_karray(struct jsonw *w, const char *key);

#endif
