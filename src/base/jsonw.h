/* Writes JSON straight into a buffer, for the answers that may list 100,000 jobs: building
 * a tree first costs more than everything else. Commas are kept by the writer. Reading is
 * jansson's. */
#ifndef BASE_JSONW_H
#define BASE_JSONW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

struct jsonw {
    struct buf *out;
    bool comma; /* the next value needs one in front */
    bool full;  /* there was more than max: what stands in out is of no use */
    size_t max; /* bytes that out may hold; 0: any number */
};

void jsonw_init(struct jsonw *w, struct buf *out);
/* From now on *out never holds much more than max bytes (by one value at most). A writer with
 * more to say becomes full and forgets what it wrote; callers that write lists check for that,
 * and stop. */
void jsonw_bound(struct jsonw *w, size_t max);
void jsonw_object(struct jsonw *w); /* { */
void jsonw_end_object(struct jsonw *w);
void jsonw_array(struct jsonw *w); /* [ */
void jsonw_end_array(struct jsonw *w);
void jsonw_key(struct jsonw *w, const char *key);
/* A string; bytes that are not UTF-8 become U+FFFD, control bytes are escaped. NULL: null. */
void jsonw_str(struct jsonw *w, const char *s);
void jsonw_strn(struct jsonw *w, const char *s, size_t n);
void jsonw_int(struct jsonw *w, int64_t v);
void jsonw_num(struct jsonw *w, double v); /* not finite: null */
void jsonw_bool(struct jsonw *w, bool v);
void jsonw_null(struct jsonw *w);
void jsonw_int_or_null(struct jsonw *w, int64_t v, bool known);
/* {"unix": seconds with fraction, "rfc3339": "..."}; 0 is null. */
void jsonw_time(struct jsonw *w, int64_t wall_us);
void jsonw_raw(struct jsonw *w, const char *json, size_t n); /* one ready-made value */

/* key and value in one */
void jsonw_kstr(struct jsonw *w, const char *key, const char *s);
void jsonw_kint(struct jsonw *w, const char *key, int64_t v);
void jsonw_kint_or_null(struct jsonw *w, const char *key, int64_t v, bool known);
void jsonw_knum(struct jsonw *w, const char *key, double v);
void jsonw_kbool(struct jsonw *w, const char *key, bool v);
void jsonw_knull(struct jsonw *w, const char *key);
void jsonw_ktime(struct jsonw *w, const char *key, int64_t wall_us);
void jsonw_kobject(struct jsonw *w, const char *key); /* and what begins there */
void jsonw_karray(struct jsonw *w, const char *key);

#endif
