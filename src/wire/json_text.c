/* See json_text.h. The reader gives up at anything rare: a fraction, a number that may not
 * fit, \u beyond ASCII, a key that is long or not ASCII, deep nesting, and invalid JSON.
 * json_loadb then parses from the start, so only one place judges validity. Called wherever
 * messages are read. */
#include "wire/json_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"

#define DEPTH_MAX  16
#define KEY_MAX    64 /* bytes, with the NUL */
#define DIGITS_MAX 18 /* always fit into 64 bits */

struct reader {
    const char *at, *end;
    int depth;
};

static json_t *read_value(struct reader *r);

static void
skip_space(struct reader *r)
{
    while (r->at < r->end &&
           (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r'))
        r->at++;
}

/* Skips the character if it comes next. */
static bool
take(struct reader *r, char c)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static int
hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The character of a \u00XX escape, at XX; -1: give up. */
static int
read_hex(const char *at)
{
    int high = hex_digit(at[0]), low = hex_digit(at[1]);
    int c = high < 0 || high > 7 || low < 0 ? -1 : high * 16 + low;
    return c == 0 ? -1 : c;
}

/* The character of an escape, after its backslash; -1: give up. */
static int
read_escape(struct reader *r)
{
    static const char LETTERS[] = "\"\\/bfnrt", MEANT[] = "\"\\/\b\f\n\r\t";
    const char *found;
    if (r->at == r->end || !*r->at)
        return -1;
    if (*r->at == 'u') {
        int c =
            r->end - r->at < 5 || r->at[1] != '0' || r->at[2] != '0' ? -1 : read_hex(r->at + 3);
        r->at += c < 0 ? 0 : 5;
        return c;
    }
    found = strchr(LETTERS, *r->at++);
    return found ? MEANT[found - LETTERS] : -1;
}

/* The end of a run up to a quote or backslash; ORs the run's bytes into *high. */
static const char *
run_end(const struct reader *r, unsigned *high)
{
    const char *at = r->at;
    for (; at < r->end && *at != '"' && *at != '\\'; at++) {
        if ((unsigned char)*at < 0x20)
            return NULL;
        *high |= (unsigned char)*at;
    }
    return at < r->end ? at : NULL;
}

static json_t *
make_string(const char *text, size_t n, unsigned high)
{
    return high < 0x80 ? json_stringn_nocheck(text, n) : json_stringn(text, n);
}

/* Reads a string with escapes, whose first run ends at end. */
static json_t *
read_escaped(struct reader *r, const char *end, unsigned high)
{
    auto_buf struct buf out = BUF_INIT;
    for (; end; end = run_end(r, &high)) {
        buf_add(&out, r->at, (size_t)(end - r->at));
        r->at = end + 1;
        if (*end == '"')
            return make_string(buf_str(&out), out.len, high);
        int c = read_escape(r);
        if (c < 0)
            return NULL;
        buf_addc(&out, (char)c);
    }
    return NULL;
}

/* Reads a string after its opening quote. */
static json_t *
read_string(struct reader *r)
{
    unsigned high = 0;
    const char *from = r->at, *end = run_end(r, &high);
    if (end && *end == '\\')
        return read_escaped(r, end, high);
    if (!end)
        return NULL;
    r->at = end + 1;
    return make_string(from, (size_t)(end - from), high);
}

static json_t *
read_number(struct reader *r)
{
    bool is_negative = *r->at == '-';
    const char *from = r->at += is_negative;
    int64_t n = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9' && r->at - from < DIGITS_MAX;
         r->at++)
        n = n * 10 + (*r->at - '0');
    if (r->at == from || r->at == r->end || (*from == '0' && r->at - from > 1) ||
        !strchr(",]} \n\t\r", *r->at))
        return NULL;
    return json_integer(is_negative ? -n : n);
}

static json_t *
read_word(struct reader *r, const char *word, json_t *value)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
        return NULL;
    r->at += n;
    return value;
}

/* Reads a key and its colon. */
static bool
read_key(struct reader *r, char key[KEY_MAX])
{
    unsigned high = 0;
    if (!take(r, '"'))
        return false;
    const char *from = r->at, *end = run_end(r, &high);
    if (!end || *end != '"' || high >= 0x80 || end - from >= KEY_MAX)
        return false;
    memcpy(key, from, (size_t)(end - from));
    key[end - from] = '\0';
    r->at = end + 1;
    return take(r, ':');
}

/* Reads an object's members after its brace (for an array: its items after the bracket). */
static bool
fill_object(struct reader *r, json_t *object)
{
    char key[KEY_MAX];
    if (take(r, '}'))
        return true;
    do
        if (!read_key(r, key) || json_object_set_new_nocheck(object, key, read_value(r)) < 0)
            return false;
    while (take(r, ','));
    return take(r, '}');
}

static bool
fill_array(struct reader *r, json_t *array)
{
    if (take(r, ']'))
        return true;
    do
        if (json_array_append_new(array, read_value(r)) < 0)
            return false;
    while (take(r, ','));
    return take(r, ']');
}

static json_t *
read_filled(struct reader *r, json_t *value, bool (*fill)(struct reader *, json_t *))
{
    bool full = value && ++r->depth <= DEPTH_MAX && fill(r, value);
    r->depth--;
    if (full)
        return value;
    json_decref(value);
    return NULL;
}

static json_t *
read_value(struct reader *r)
{
    skip_space(r);
    if (r->at == r->end)
        return NULL;
    switch (*r->at) {
    case '{':
        r->at++;
        return read_filled(r, json_object(), fill_object);
    case '[':
        r->at++;
        return read_filled(r, json_array(), fill_array);
    case '"':
        r->at++;
        return read_string(r);
    case 't':
        return read_word(r, "true", json_true());
    case 'f':
        return read_word(r, "false", json_false());
    case 'n':
        return read_word(r, "null", json_null());
    default:
        return read_number(r);
    }
}

json_t *
json_text_read(const char *text, size_t n, json_error_t *why)
{
    struct reader r = {.at = text, .end = text + n};
    skip_space(&r);
    bool is_list = r.at < r.end && (*r.at == '{' || *r.at == '[');
    json_t *value = is_list ? read_value(&r) : NULL;
    skip_space(&r);
    if (value && r.at == r.end) {
        /* As json_loadb does: callers print it for JSON that they do not expect. */
        if (why)
            why->text[0] = '\0';
        return value;
    }
    json_decref(value);
    return json_loadb(text, n, 0, why);
}
