/* UTF-8, safe display, display width, globs, suggestions, digests. Pure. Untrusted text
 * reaches a terminal only through text_add_safe. */
#include "base/text.h"

#include <ctype.h>
#include <sha1.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"

#define WORD_MAX 48 /* longer words are not compared: nobody mistypes 49 letters */

size_t
text_utf8_len(const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s;
    /* The second byte's range rules out overlong forms, surrogates and above U+10FFFF. */
    unsigned char low = 0x80, high = 0xbf;
    size_t len;

    if (n == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    len = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (p[0] == 0xe0)
        low = 0xa0;
    else if (p[0] == 0xed)
        high = 0x9f;
    else if (p[0] == 0xf0)
        low = 0x90;
    else if (p[0] == 0xf4)
        high = 0x8f;
    if (len > n || p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return len;
}

bool
text_is_utf8(const char *s, size_t n, size_t *bad_at)
{
    for (size_t at = 0; at < n;) {
        size_t len = text_utf8_len(s + at, n - at);
        if (len == 0) {
            if (bad_at)
                *bad_at = at;
            return false;
        }
        at += len;
    }
    return true;
}

uint32_t
text_code_point(const char *s, size_t len)
{
    static const unsigned char lead_mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t cp = (unsigned char)s[0] & lead_mask[len];

    for (size_t i = 1; i < len; i++)
        cp = cp << 6 | ((unsigned char)s[i] & 0x3f);
    return cp;
}

struct range {
    uint32_t first, last;
};

static bool
in_ranges(uint32_t cp, const struct range *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (cp >= r[i].first && cp <= r[i].last)
            return true;
    return false;
}

/* Columns of one character: the blocks of Unicode's East Asian Width W and F and of the common
 * combining marks. Coarse on purpose: a table off by a column does no harm. The locale's
 * wcwidth is not used, because the daemon's locale says nothing about the reader's. */
static int
char_columns(uint32_t cp)
{
    static const struct range zero[] = {
        {0x0300, 0x036f},   {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a},
        {0x064b, 0x065f},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200d},
        {0x20d0, 0x20ff},   {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff},
        {0xe0100, 0xe01ef},
    };
    static const struct range wide[] = {
        {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2e80, 0x303e},   {0x3041, 0x33ff},
        {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xa000, 0xa4cf},   {0xac00, 0xd7a3},
        {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},
        {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
    };

    if (cp < 0x0300)
        return 1;
    if (in_ranges(cp, zero, sizeof zero / sizeof zero[0]))
        return 0;
    return in_ranges(cp, wide, sizeof wide / sizeof wide[0]) ? 2 : 1;
}

static bool
is_unsafe(uint32_t cp)
{
    static const struct range tricky[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c},
        {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
    };

    return in_ranges(cp, tricky, sizeof tricky / sizeof tricky[0]);
}

bool
text_is_unsafe(const char *s, size_t len)
{
    return is_unsafe(text_code_point(s, len));
}

void
text_add_json_escape(struct buf *out, const char *s, size_t len)
{
    buf_addf(out, "\\u%04x", (unsigned)text_code_point(s, len));
}

/* Outside strings, the only unsafe characters in JSON are line breaks. */
void
text_add_json(struct buf *out, const char *json, size_t n)
{
    for (size_t at = 0, len; at < n; at += len) {
        size_t run = at;
        while (run < n && (unsigned char)json[run] < 0x7f)
            run++;
        buf_add(out, json + at, run - at);
        at = run;
        if (at == n)
            return;
        len = text_utf8_len(json + at, n - at);
        if (len && text_is_unsafe(json + at, len))
            text_add_json_escape(out, json + at, len);
        else
            buf_add(out, json + at, len ? len : (len = 1));
    }
}

/* Appends the character at s, escaped if unsafe; *used is its length in bytes. Returns
 * columns. */
static int
add_safe_char(struct buf *out, const char *s, size_t n, size_t *used)
{
    size_t len = text_utf8_len(s, n), before = out->len;
    uint32_t cp = len ? text_code_point(s, len) : 0;

    *used = len ? len : 1;
    if (len && !is_unsafe(cp)) {
        buf_add(out, s, len);
        return char_columns(cp);
    }
    if (*s == '\n')
        buf_adds(out, "\\n");
    else if (*s == '\t')
        buf_adds(out, "\\t");
    else
        for (size_t i = 0; i < *used; i++)
            buf_addf(out, "\\x%02X", (unsigned char)s[i]);
    return (int)(out->len - before);
}

void
text_add_safe(struct buf *out, const char *s, size_t n, int max_columns)
{
    int columns = 0, dots = max_columns < 3 ? max_columns : 3;
    size_t cut = out->len, used;

    for (size_t at = 0; at < n; at += used) {
        columns += add_safe_char(out, s + at, n - at, &used);
        if (max_columns <= 0) {
            columns = 0;
            continue;
        }
        if (columns <= max_columns - dots)
            cut = out->len;
        if (columns > max_columns) {
            buf_reserve(out, 1);
            out->len = cut;
            buf_add(out, "...", (size_t)dots);
            return;
        }
    }
}

void
text_copy_cut(char *out, size_t size, const char *s)
{
    size_t n = strlen(s);

    if (n < size) {
        memcpy(out, s, n + 1);
        return;
    }
    n = size - sizeof "...";
    while (n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80)
        n--;
    snprintf(out, size, "%.*s...", (int)n, s);
}

void
text_add_quoted(struct buf *out, const char *s)
{
    buf_addc(out, '\'');
    for (; *s; s++)
        if (*s == '\'')
            buf_adds(out, "'\\''");
        else
            buf_addc(out, *s);
    buf_addc(out, '\'');
}

int
text_columns(const char *s)
{
    size_t n = strlen(s), len;
    int columns = 0;

    for (size_t at = 0; at < n; at += len) {
        len = text_utf8_len(s + at, n - at);
        columns += len ? char_columns(text_code_point(s + at, len)) : 1;
        len = len ? len : 1;
    }
    return columns;
}

/* On a mismatch, only the last star is extended by one byte: constant memory, time at worst
 * the product of the lengths. */
bool
text_glob(const char *pattern, const char *s)
{
    const char *star = NULL, *retry = NULL;

    while (*s) {
        if (*pattern == '*') {
            star = ++pattern;
            retry = s;
        } else if (*pattern == '?') {
            size_t len = text_utf8_len(s, strnlen(s, 4));
            pattern++;
            s += len ? len : 1;
        } else if (*pattern == *s) {
            pattern++;
            s++;
        } else if (star) {
            pattern = star;
            s = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

static int
min2(int a, int b)
{
    return a < b ? a : b;
}

static int
fold(char c)
{
    return tolower((unsigned char)c);
}

/* Edit distance (insert, delete, replace a letter, swap two) of words of at most WORD_MAX
 * letters. */
static int
edit_distance(const char *a, size_t la, const char *b, size_t lb)
{
    int rows[3][WORD_MAX + 1];

    for (size_t j = 0; j <= lb; j++)
        rows[0][j] = (int)j;
    for (size_t i = 1; i <= la; i++) {
        int *row = rows[i % 3];
        const int *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];
        row[0] = (int)i;
        for (size_t j = 1; j <= lb; j++) {
            bool same = fold(a[i - 1]) == fold(b[j - 1]);
            row[j] = min2(up[j - 1] + !same, min2(up[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) &&
                fold(a[i - 2]) == fold(b[j - 1]))
                row[j] = min2(row[j], up2[j - 2] + 1);
        }
    }
    return rows[la % 3][lb];
}

const char *
text_nearest(const char *word, const char *const *candidates)
{
    size_t len = strlen(word);
    int best = len < 6 ? 1 : len < 9 ? 2 : 3;
    const char *nearest = NULL;

    if (len == 0 || len > WORD_MAX)
        return NULL;
    for (; *candidates; candidates++) {
        size_t other = strlen(*candidates);
        if (other > WORD_MAX)
            continue;
        int d = edit_distance(word, len, *candidates, other);
        if (len > 1 && other > len && strncasecmp(word, *candidates, len) == 0)
            d = 1; /* a prefix of the candidate */
        if ((size_t)d < len && (d < best || (d == best && !nearest))) {
            best = d;
            nearest = *candidates;
        }
    }
    return nearest;
}

/* Like SHA1Final, but adds the padding at once: byte by byte, it would take longer than the
 * digest of a short text. */
static void
sha1_finish(SHA1_CTX *ctx, size_t n)
{
    uint8_t pad[SHA1_BLOCK_LENGTH + 8] = {0x80};
    size_t used = n % SHA1_BLOCK_LENGTH;
    size_t zeros = (used < 56 ? 56 : 56 + SHA1_BLOCK_LENGTH) - used;

    for (int i = 0; i < 8; i++)
        pad[zeros + (size_t)i] = (uint8_t)((uint64_t)n * 8 >> (56 - 8 * i));
    SHA1Update(ctx, pad, zeros + 8);
}

static void
sha1_hex(const void *bytes, size_t n, char *out, size_t digits)
{
    static const char hex[] = "0123456789abcdef";
    SHA1_CTX ctx;

    SHA1Init(&ctx);
    SHA1Update(&ctx, bytes, n);
    sha1_finish(&ctx, n);
    for (size_t i = 0; i < digits; i++)
        out[i] = hex[ctx.state[i / 8] >> (28 - 4 * (i % 8)) & 0xf];
    out[digits] = '\0';
}

void
text_sha1_12(const void *bytes, size_t n, char *out)
{
    sha1_hex(bytes, n, out, 12);
}

void
text_sha1(const void *bytes, size_t n, char *out)
{
    sha1_hex(bytes, n, out, 40);
}

bool
text_begins_with(const char *s, const char *const *beginnings)
{
    for (; *beginnings; beginnings++)
        if (strncmp(s, *beginnings, strlen(*beginnings)) == 0)
            return true;
    return false;
}

size_t
text_list_len(char *const *list)
{
    size_t n = 0;

    while (list[n])
        n++;
    return n;
}

void
text_list_free(char **list)
{
    for (char **p = list; p && *p; p++)
        free(*p);
    free(list);
}
