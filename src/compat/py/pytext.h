/* Values as Python reads and writes them: front ends replace Python programs whose files and
 * output other programs read. */
#ifndef COMPAT_PY_PYTEXT_H
#define COMPAT_PY_PYTEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct buf;

/* int(s) and float(s): surrounding blanks, a sign and single underscores are accepted. False:
 * not a number. */
bool py_int(const char *s, int64_t *out);
bool py_float(const char *s, double *out);

/* repr(float): the fewest digits that read back as the same value: "5.0", "1e-05", "inf". */
void py_add_float(struct buf *out, double v);
/* repr(str). */
void py_add_repr(struct buf *out, const char *s);

/* Length in bytes of the white-space character at s, as in str.isspace(), within n bytes; 0:
 * none. */
size_t py_space(const char *s, size_t n);

/* str.strip() for Unicode white space: moves *s to the first byte kept and returns the length
 * kept. */
size_t py_strip(const char **s, size_t n);

/* json.dumps(value), with indent=indent if indent is above 0. */
void py_add_json(struct buf *out, const json_t *value, int indent);
/* json.dumps(s[:left].decode(errors="replace")). */
void py_add_string(struct buf *out, const char *s, size_t left);

/* str(Path(dir) / name): "a//./b/" and "x" make "a/b/x". The caller frees. */
char *py_path(const char *dir, const char *name);

/* Forms of local time, as in strftime, from microseconds since 1970. */
enum py_time {
    PY_CLOCK, /* "14:02:10" */
    PY_STAMP, /* "20250410_073631" */
    PY_LOG,   /* "2025-04-10 07:36:31" */
    PY_ISO,   /* "2025-04-10T07:36:31" */
};
void py_add_time(struct buf *out, enum py_time how, int64_t wall_us);
/* datetime.isoformat() of local time: "2025-04-10T07:36:31.123456". */
void py_add_iso(struct buf *out, int64_t wall_us);

/* str(OSError): "[Errno 2] No such file or directory: 'x'". */
void py_add_oserror(struct buf *out, int errnum, const char *path);

#endif
