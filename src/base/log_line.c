/* The formats of a line: see log_line.h. A caller writes key=value words and, if needed, a
 * sentence after them; this file parses them again, so that callers need not know the format.
 * Called by log.c. */
#include "base/log_line.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "base/text.h"

#define FIELDS_MAX 32 /* per line; a repeated key counts as part of the sentence */
#define KEY_MAX    40

static void
stamp_text(int64_t at_us, char out[40])
{
    char whole[32];

    clock_rfc3339(at_us, whole);
    whole[strcspn(whole, "Z")] = '\0';
    snprintf(out, 40, "%s.%03dZ", whole, (int)(at_us / 1000 % 1000));
}

/* --- parsing --- */

static size_t
key_length(const char *s, size_t n)
{
    size_t i = 0;

    while (i < n && ((s[i] >= 'a' && s[i] <= 'z') || s[i] == '_' ||
                     (i > 0 && s[i] >= '0' && s[i] <= '9')))
        i++;
    return i < KEY_MAX && i < n && s[i] == '=' ? i : 0;
}

/* The length of the value at s; *skip is the number of bytes of its surrounding quotes. */
static size_t
value_length(const char *s, size_t n, size_t *skip)
{
    size_t i = 0;

    *skip = 0;
    if (n > 0 && s[0] == '"') {
        const char *end = memchr(s + 1, '"', n - 1);
        if (end && (end + 1 == s + n || end[1] == ' ')) {
            *skip = 1;
            return (size_t)(end - s) + 1;
        }
    }
    while (i < n && s[i] != ' ')
        i++;
    return i;
}

struct span {
    const char *at;
    size_t len;
};

static bool
is_known(const struct span *known, int n, const char *key, size_t len)
{
    for (int i = 0; i < n; i++)
        if (known[i].len == len && memcmp(known[i].at, key, len) == 0)
            return true;
    return false;
}

typedef void (*field_cb)(void *ctx, const char *key, size_t key_len, const char *value,
                         size_t value_len);

/* Calls cb for each key=value at the start of the words, without quotes. Returns the offset of
 * the sentence after them. */
static size_t
each_field(const char *words, size_t n, field_cb cb, void *ctx)
{
    struct span known[FIELDS_MAX];
    size_t at = 0;

    for (int i = 0; i < FIELDS_MAX && at < n; i++) {
        size_t key = key_length(words + at, n - at), skip;
        if (key == 0 || is_known(known, i, words + at, key))
            return at;
        const char *value = words + at + key + 1;
        size_t len = value_length(value, n - at - key - 1, &skip);
        known[i] = (struct span){words + at, key};
        cb(ctx, words + at, key, value + skip, len - 2 * skip);
        at += key + 1 + len;
        at += at < n && words[at] == ' ';
    }
    return at;
}

/* --- formats --- */

void
log_line_text(const struct log_stamp *s, const char *words, size_t n, struct buf *out)
{
    char stamp[40];

    stamp_text(s->at_us, stamp);
    if (s->program[0])
        buf_addf(out, "%s: ", s->program);
    buf_addf(out, "%s %s ", stamp, s->level);
    text_add_safe(out, words, n, 0);
    buf_addc(out, '\n');
}

/* A whole number becomes a JSON number; "007" and numbers too long stay text. */
static void
add_value(struct jsonw *w, const char *value, size_t n)
{
    char digits[20];
    int64_t v;

    if (n > 0 && n < sizeof digits && (value[0] != '0' || n == 1) && value[0] != '+') {
        memcpy(digits, value, n);
        digits[n] = '\0';
        if (parse_int(digits, INT64_MIN, INT64_MAX, &v, NULL) == 0) {
            jsonw_int(w, v);
            return;
        }
    }
    jsonw_strn(w, value, n);
}

static void
on_json_field(void *ctx, const char *key, size_t key_len, const char *value, size_t value_len)
{
    char name[KEY_MAX + 1];

    snprintf(name, sizeof name, "%.*s", (int)key_len, key);
    jsonw_key(ctx, name);
    add_value(ctx, value, value_len);
}

void
log_line_json(const struct log_stamp *s, const char *words, size_t n, struct buf *out)
{
    struct jsonw w;
    char stamp[40];

    stamp_text(s->at_us, stamp);
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_kstr(&w, "time", stamp);
    jsonw_kstr(&w, "level", s->level);
    size_t rest = each_field(words, n, on_json_field, &w);
    if (rest < n) {
        jsonw_key(&w, "text");
        jsonw_strn(&w, words + rest, n - rest);
    }
    jsonw_end_object(&w);
    buf_addc(out, '\n');
}

/* A value with a line break is preceded by its length in eight bytes, little-endian. */
static void
add_entry(struct buf *out, const char *value, size_t n)
{
    if (!memchr(value, '\n', n)) {
        buf_addc(out, '=');
    } else {
        buf_addc(out, '\n');
        for (int i = 0; i < 8; i++)
            buf_addc(out, (char)((uint64_t)n >> (8 * i) & 0xff));
    }
    buf_add(out, value, n);
    buf_addc(out, '\n');
}

static void
on_journal_field(void *ctx, const char *key, size_t key_len, const char *value,
                 size_t value_len)
{
    buf_adds(ctx, "BERTH_");
    for (size_t i = 0; i < key_len; i++)
        buf_addc(ctx, (char)(key[i] >= 'a' && key[i] <= 'z' ? key[i] - 'a' + 'A' : key[i]));
    add_entry(ctx, value, value_len);
}

void
log_line_journal(const struct log_stamp *s, const char *words, size_t n, struct buf *out)
{
    buf_adds(out, "MESSAGE");
    add_entry(out, words, n);
    buf_addf(out, "PRIORITY=%d\n", s->priority);
    if (s->program[0])
        buf_addf(out, "SYSLOG_IDENTIFIER=%s\n", s->program);
    each_field(words, n, on_journal_field, out);
}
