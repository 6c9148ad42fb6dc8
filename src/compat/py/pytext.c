/* Python's formats of numbers, texts, JSON and times; see pytext.h. Pure except for the time
 * zone. */
#include "compat/py/pytext.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"

#define DIGITS_MAX   17 /* enough for every double */
#define FIXED_EXP    16 /* repr uses an exponent from this power of ten on */
#define FIXED_MIN    -4
#define NUMBER_BYTES 64

/* In UTF-8: next line, no-break, fixed-width, line and paragraph separators. */
static const char *const wide_spaces[] = {
    "\xc2\x85", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003",
    "\u2004",   "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a",
    "\u2028",   "\u2029", "\u202f", "\u205f", "\u3000",
};

size_t
py_space(const char *s, size_t n)
{
    if (n > 0 && (*s == ' ' || (*s >= '\t' && *s <= '\r') || (*s >= 0x1c && *s <= 0x1f)))
        return 1;
    if (n < 2 || (unsigned char)*s < 0xc2)
        return 0;
    for (size_t i = 0; i < sizeof wide_spaces / sizeof wide_spaces[0]; i++) {
        size_t len = strlen(wide_spaces[i]);

        if (len <= n && memcmp(s, wide_spaces[i], len) == 0)
            return len;
    }
    return 0;
}

/* Length in bytes of the last character if it is white space; else 0. */
static size_t
space_before(const char *s, size_t n)
{
    for (size_t len = 1; len <= 3 && len <= n; len++) {
        if (py_space(s + n - len, len) == len)
            return len;
    }
    return 0;
}

size_t
py_strip(const char **s, size_t n)
{
    size_t len;

    while ((len = py_space(*s, n)) > 0)
        *s += len, n -= len;
    while ((len = space_before(*s, n)) > 0)
        n -= len;
    return n;
}

/* Reduce s to the form our own parser takes: no blanks, plus sign or underscores. False: not a
 * number. */
static bool
bare_number(const char *s, char *out)
{
    size_t n = py_strip(&s, strlen(s)), at = 0;

    bool plus = n > 0 && s[0] == '+';

    s += plus;
    n -= plus;
    if (n == 0 || (plus && (s[0] == '-' || s[0] == '+' || py_space(s, n))) || n >= NUMBER_BYTES)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (s[i] != '_')
            out[at++] = s[i];
        else if (i == 0 || i + 1 == n || !isdigit((unsigned char)s[i - 1]) ||
                 !isdigit((unsigned char)s[i + 1]))
            return false;
    }
    out[at] = '\0';
    return true;
}

bool
py_int(const char *s, int64_t *out)
{
    char bare[NUMBER_BYTES];

    if (!bare_number(s, bare))
        return false;
    for (const char *p = bare + (bare[0] == '-'); *p; p++) {
        if (!isdigit((unsigned char)*p))
            return false;
    }
    return parse_int(bare, INT64_MIN, INT64_MAX, out, NULL) == 0;
}

bool
py_float(const char *s, double *out)
{
    char bare[NUMBER_BYTES];
    char *end;

    if (!bare_number(s, bare) || strpbrk(bare, "xXpP()"))
        return false;
    *out = strtod(bare, &end);
    return end != bare && *end == '\0';
}

/* The fewest digits that read back as v, which must be > 0. Returns the first digit's power of
 * ten. */
static int
shortest(double v, char *digits)
{
    char text[NUMBER_BYTES];

    for (int n = 1; n <= DIGITS_MAX; n++) {
        snprintf(text, sizeof text, "%.*e", n - 1, v);
        if (strtod(text, NULL) == v)
            break;
    }
    size_t at = 0;
    const char *p = text;
    for (; *p && *p != 'e'; p++) {
        if (isdigit((unsigned char)*p))
            digits[at++] = *p;
    }
    while (at > 1 && digits[at - 1] == '0')
        at--;
    digits[at] = '\0';
    return *p ? (int)strtol(p + 1, NULL, 10) : 0;
}

static void
add_fixed(struct buf *out, const char *digits, int exp)
{
    int n = (int)strlen(digits);

    if (exp < 0) {
        buf_adds(out, "0.");
        for (int i = -1; i > exp; i--)
            buf_addc(out, '0');
        buf_adds(out, digits);
        return;
    }
    for (int i = 0; i <= exp || i < n; i++) {
        buf_addc(out, i < n ? digits[i] : '0');
        if (i == exp)
            buf_adds(out, n > exp + 1 ? "." : ".0");
    }
}

void
py_add_float(struct buf *out, double v)
{
    char digits[NUMBER_BYTES] = "0";
    int exp;

    if (isnan(v)) {
        buf_adds(out, "nan");
        return;
    }
    if (signbit(v))
        buf_addc(out, '-');
    v = fabs(v);
    if (isinf(v)) {
        buf_adds(out, "inf");
        return;
    }
    exp = v > 0 ? shortest(v, digits) : 0;
    if (v <= 0)
        buf_adds(out, "0.0");
    else if (exp >= FIXED_MIN && exp < FIXED_EXP)
        add_fixed(out, digits, exp);
    else
        buf_addf(out, "%c%s%se%c%02d", digits[0], digits[1] ? "." : "", digits + 1,
                 exp < 0 ? '-' : '+', abs(exp));
}

/* str.isprintable() beyond ASCII, except that unassigned code points count as printable. */
static bool
is_printable(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } others[] = {
        {0x80, 0xa0},     {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},
        {0x6dd, 0x6dd},   {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},
        {0x1680, 0x1680}, {0x180e, 0x180e},   {0x2000, 0x200f},   {0x2028, 0x202f},
        {0x205f, 0x206f}, {0x3000, 0x3000},   {0xe000, 0xf8ff},   {0xfeff, 0xfeff},
        {0xfff9, 0xfffb}, {0x1d173, 0x1d17a}, {0xe0001, 0xe007f}, {0xf0000, 0x10ffff},
    };

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (c >= others[i].first && c <= others[i].last)
            return false;
    }
    return true;
}

static void
add_wide(struct buf *out, const char *s, size_t n)
{
    uint32_t c = text_code_point(s, n);

    if (is_printable(c))
        buf_add(out, s, n);
    else
        buf_addf(out, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
}

void
py_add_repr(struct buf *out, const char *s)
{
    char quote = strchr(s, '\'') && !strchr(s, '"') ? '"' : '\'';
    size_t left = strlen(s);

    buf_addc(out, quote);
    while (left > 0) {
        size_t n = text_utf8_len(s, left);
        unsigned char c = (unsigned char)*s;

        if (n > 1)
            add_wide(out, s, n);
        else if (c == '\n' || c == '\r' || c == '\t')
            buf_addf(out, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
        else if (n == 0)
            buf_addf(out, "\\udc%02x", c); /* Python's surrogate escape for an invalid byte */
        else if (c < 0x20 || c == 0x7f)
            buf_addf(out, "\\x%02x", c);
        else if (c == '\\' || *s == quote)
            buf_addf(out, "\\%c", c);
        else
            buf_addc(out, (char)c);
        n = n ? n : 1;
        s += n;
        left -= n;
    }
    buf_addc(out, quote);
}

char *
py_path(const char *dir, const char *name)
{
    auto_free char *whole = xasprintf("%s/%s", dir, name);
    auto_free char *copy = xstrdup(name[0] == '/' ? name : whole);
    auto_buf struct buf out = BUF_INIT;
    char *rest = copy, *part;

    if (copy[0] == '/' && (dir[0] || name[0] == '/'))
        buf_addc(&out, '/');
    while ((part = strsep(&rest, "/"))) {
        if (!part[0] || strcmp(part, ".") == 0)
            continue;
        if (out.len > 0 && out.data[out.len - 1] != '/')
            buf_addc(&out, '/');
        buf_adds(&out, part);
    }
    if (out.len == 0)
        buf_addc(&out, '.');
    return buf_take(&out);
}

void
py_add_time(struct buf *out, enum py_time how, int64_t wall_us)
{
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm tm;

    localtime_r(&seconds, &tm);
    if (how == PY_STAMP)
        buf_addf(out, "%04d%02d%02d_%02d%02d%02d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
                 tm.tm_hour, tm.tm_min, tm.tm_sec);
    else if (how != PY_CLOCK)
        buf_addf(out, "%04d-%02d-%02d%c", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
                 how == PY_LOG ? ' ' : 'T');
    if (how != PY_STAMP)
        buf_addf(out, "%02d:%02d:%02d", tm.tm_hour, tm.tm_min, tm.tm_sec);
}

void
py_add_iso(struct buf *out, int64_t wall_us)
{
    py_add_time(out, PY_ISO, wall_us);
    if (wall_us % 1000000)
        buf_addf(out, ".%06lld", (long long)(wall_us % 1000000));
}

void
py_add_oserror(struct buf *out, int errnum, const char *path)
{
    buf_addf(out, "[Errno %d] %s: ", errnum, strerror(errnum));
    py_add_repr(out, path);
}
