/* Writing JSON by hand. Strings are copied in runs: a table says which bytes need no escape,
 * so ordinary text is one scan and one copy. The output is valid JSON whatever the input bytes
 * are; callers balance the brackets. */
#include "base/jsonw.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"

void
jsonw_init(struct jsonw *w, struct buf *out)
{
    *w = (struct jsonw){.out = out};
}

void
jsonw_bound(struct jsonw *w, size_t max)
{
    w->max = max;
}

/* The output will be discarded, so the buffer is reused: writers need not check for
 * overflow. */
static void
begin_anew(struct jsonw *w)
{
    w->full = true;
    w->out->len = 0;
}

/* Reserves n bytes plus a comma, which is written if due: one check of the buffer per value.
 * finish() sets the new length. */
static inline char *
begin(struct jsonw *w, size_t n)
{
    struct buf *out = w->out;

    if (w->max > 0 && out->len > w->max)
        begin_anew(w);
    if (out->cap < n + 2 || out->cap - n - 2 < out->len)
        buf_reserve(out, n + 1);
    if (w->comma)
        out->data[out->len++] = ',';
    return out->data + out->len;
}

static inline void
finish(struct jsonw *w, const char *end)
{
    w->out->len = (size_t)(end - w->out->data);
    w->out->data[w->out->len] = '\0';
    w->comma = true;
}

static void
put(struct jsonw *w, const char *bytes, size_t n)
{
    char *at = begin(w, n);

    memcpy(at, bytes, n);
    finish(w, at + n);
}

static void
open_bracket(struct jsonw *w, char c)
{
    char *at = begin(w, 1);

    *at = c;
    finish(w, at + 1);
    w->comma = false;
}

static void
close_bracket(struct jsonw *w, char c)
{
    w->comma = false;
    put(w, &c, 1);
}

void
jsonw_object(struct jsonw *w)
{
    open_bracket(w, '{');
}

void
jsonw_end_object(struct jsonw *w)
{
    close_bracket(w, '}');
}

void
jsonw_array(struct jsonw *w)
{
    open_bracket(w, '[');
}

void
jsonw_end_array(struct jsonw *w)
{
    close_bracket(w, ']');
}

/* Printable ASCII other than quote and backslash. DEL is escaped for the terminal's sake. */
static bool
is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Sets the top bit of each byte of v that is zero (and perhaps of bytes above such a byte). */
static uint64_t
zero_bytes(uint64_t v)
{
    return (v - EACH(1)) & ~v & EACH(0x80);
}

/* The number of plain bytes from s on, tested eight at a time. Borrows give false positives
 * only in groups that hold a special byte anyway. */
static size_t
count_plain(const char *s, size_t n)
{
    size_t run = 0;

    for (uint64_t v; run + 8 <= n; run += 8) {
        memcpy(&v, s + run, 8);
        if ((v & EACH(0x80)) | zero_bytes(v ^ EACH('"')) | zero_bytes(v ^ EACH('\\')) |
            zero_bytes(v ^ EACH(0x7f)) | ((v - EACH(0x20)) & ~v & EACH(0x80)))
            break;
    }
    while (run < n && is_plain((unsigned char)s[run]))
        run++;
    return run;
}

static void
add_escaped(struct buf *out, unsigned char c)
{
    static const char letters[] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n',  ['\f'] = 'f',
        ['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\',
    };
    char letter = c < sizeof letters ? letters[c] : '\0';

    if (letter) {
        char pair[2] = {'\\', letter};
        buf_add(out, pair, 2);
    } else {
        buf_addf(out, "\\u%04x", c);
    }
}

/* Appends the non-plain character at s, escaped if needed; returns its length in bytes. */
static size_t
add_special(struct buf *out, const char *s, size_t n)
{
    size_t len = 1;

    if ((unsigned char)*s < 0x80) {
        add_escaped(out, (unsigned char)*s);
        return 1;
    }
    len = text_utf8_len(s, n);
    if (len == 0) {
        buf_add(out, "\xef\xbf\xbd", 3); /* U+FFFD */
        return 1;
    }
    if (text_is_unsafe(s, len))
        text_add_json_escape(out, s, len);
    else
        buf_add(out, s, len);
    return len;
}

/* Writes the rest of a string from its first special byte on, with the closing quote. */
static void
finish_special(struct jsonw *w, const char *s, size_t n)
{
    size_t at = 0;

    while (at < n) {
        size_t run = count_plain(s + at, n - at);
        buf_add(w->out, s + at, run);
        at += run;
        if (at < n)
            at += add_special(w->out, s + at, n - at);
    }
    buf_addc(w->out, '"');
}

void
jsonw_strn(struct jsonw *w, const char *s, size_t n)
{
    size_t run;
    char *at;

    if (!s) {
        jsonw_null(w);
        return;
    }
    run = count_plain(s, n);
    at = begin(w, n + 2);
    *at++ = '"';
    memcpy(at, s, run);
    at += run;
    if (run == n)
        *at++ = '"';
    finish(w, at);
    if (run < n)
        finish_special(w, s + run, n - run);
}

/* No comma on either side of a colon. */
static void
put_colon(struct jsonw *w)
{
    w->comma = false;
    open_bracket(w, ':');
}

void
jsonw_str(struct jsonw *w, const char *s)
{
    jsonw_strn(w, s, s ? strlen(s) : 0);
}

void
jsonw_key(struct jsonw *w, const char *key)
{
    jsonw_str(w, key);
    put_colon(w);
}

void
jsonw_int(struct jsonw *w, int64_t v)
{
    char room[24];
    size_t n;
    const char *digits = decimal_digits(v, room, &n);
    put(w, digits, n);
}

void
jsonw_num(struct jsonw *w, double v)
{
    char text[40];

    if (!isfinite(v)) {
        jsonw_null(w);
        return;
    }
    /* The shorter of two precisions that reads back as the same number. */
    int n = snprintf(text, sizeof text, "%.15g", v);
    if (strtod(text, NULL) != v)
        n = snprintf(text, sizeof text, "%.17g", v);
    for (int i = 0; i < n; i++)
        if (text[i] == ',')
            text[i] = '.'; /* undo a locale's decimal comma */
    put(w, text, (size_t)n);
}

void
jsonw_bool(struct jsonw *w, bool v)
{
    if (v)
        put(w, "true", 4);
    else
        put(w, "false", 5);
}

void
jsonw_null(struct jsonw *w)
{
    put(w, "null", 4);
}

void
jsonw_raw(struct jsonw *w, const char *json, size_t n)
{
    put(w, json, n);
}

void
jsonw_kstr(struct jsonw *w, const char *key, const char *s)
{
    jsonw_key(w, key);
    jsonw_str(w, s);
}

void
jsonw_kobject(struct jsonw *w, const char *key)
{
    jsonw_key(w, key);
    jsonw_object(w);
}

void
jsonw_karray(struct jsonw *w, const char *key)
{
    jsonw_key(w, key);
    jsonw_array(w);
}

void
jsonw_knum(struct jsonw *w, const char *key, double v)
{
    jsonw_key(w, key);
    jsonw_num(w, v);
}

void
jsonw_kint(struct jsonw *w, const char *key, int64_t v)
{
    jsonw_key(w, key);
    jsonw_int(w, v);
}

void
jsonw_kbool(struct jsonw *w, const char *key, bool v)
{
    jsonw_key(w, key);
    jsonw_bool(w, v);
}

void
jsonw_knull(struct jsonw *w, const char *key)
{
    jsonw_key(w, key);
    jsonw_null(w);
}

/* Writes microseconds exactly, without floating point. */
static void
put_seconds(struct jsonw *w, int64_t wall_us)
{
    char text[40];
    uint64_t us = wall_us < 0 ? 0 - (uint64_t)wall_us : (uint64_t)wall_us;
    int n = snprintf(text, sizeof text, "%s%llu.%06llu", wall_us < 0 ? "-" : "",
                     (unsigned long long)(us / 1000000), (unsigned long long)(us % 1000000));

    put(w, text, (size_t)n);
}

void
jsonw_ktime(struct jsonw *w, const char *key, int64_t wall_us)
{
    jsonw_key(w, key);
    jsonw_time(w, wall_us);
}

void
jsonw_kint_or_null(struct jsonw *w, const char *key, int64_t v, bool known)
{
    jsonw_key(w, key);
    jsonw_int_or_null(w, v, known);
}

void
jsonw_int_or_null(struct jsonw *w, int64_t v, bool known)
{
    if (known)
        jsonw_int(w, v);
    else
        jsonw_null(w);
}

void
jsonw_time(struct jsonw *w, int64_t wall_us)
{
    char text[32];

    if (wall_us == 0) {
        jsonw_null(w);
        return;
    }
    jsonw_object(w);
    jsonw_key(w, "unix");
    put_seconds(w, wall_us);
    jsonw_kstr(w, "rfc3339", clock_rfc3339(wall_us, text));
    jsonw_end_object(w);
}
