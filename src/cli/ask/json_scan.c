/* Scans JSON text; see json_scan.h. */
#include "cli/ask/json_scan.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

static void
skip_between(struct scan *s)
{
    while (s->at < s->end && (*s->at == ',' || *s->at == ':' || *s->at == ' ' ||
                              *s->at == '\t' || *s->at == '\r' || *s->at == '\n'))
        s->at++;
}

/* Scans from the opening quote to after the closing one. */
static void
take_string(struct scan *s, struct scan_value *out)
{
    const char *p = s->at + 1;

    out->type = SCAN_STRING;
    for (;;) {
        const char *quote = p < s->end ? memchr(p, '"', (size_t)(s->end - p)) : NULL;
        const char *slash = memchr(p, '\\', (size_t)((quote ? quote : s->end) - p));

        if (!slash) {
            s->at = quote ? quote + 1 : s->end;
            return;
        }
        out->escaped = true;
        p = slash + 2;
        if (p > s->end) {
            s->at = s->end;
            return;
        }
    }
}

/* Scans an array or object to its end, ignoring brackets in strings. */
static void
take_nested(struct scan *s, struct scan_value *out)
{
    int depth = 0;

    out->type = *s->at == '[' ? SCAN_ARRAY : SCAN_OBJECT;
    while (s->at < s->end) {
        struct scan_value ignored = {0};
        char c = *s->at;

        if (c == '"') {
            take_string(s, &ignored);
            continue;
        }
        s->at++;
        if (c == '[' || c == '{')
            depth++;
        else if ((c == ']' || c == '}') && --depth == 0)
            break;
    }
}

static void
take_plain(struct scan *s, struct scan_value *out)
{
    char first = *s->at;

    out->type = first == 'n'                   ? SCAN_NULL
                : first == 't' || first == 'f' ? SCAN_BOOL
                                               : SCAN_NUMBER;
    while (s->at < s->end && *s->at != ',' && *s->at != ']' && *s->at != '}' && *s->at > ' ')
        s->at++;
}

bool
scan_next(struct scan *s, struct scan_value *out)
{
    *out = (struct scan_value){0};
    skip_between(s);
    if (s->at >= s->end || *s->at == ']' || *s->at == '}')
        return false;
    out->text = s->at;
    if (*s->at == '"')
        take_string(s, out);
    else if (*s->at == '[' || *s->at == '{')
        take_nested(s, out);
    else
        take_plain(s, out);
    out->len = (size_t)(s->at - out->text);
    return true;
}

bool
scan_open(struct scan *s)
{
    skip_between(s);
    if (s->at >= s->end || (*s->at != '[' && *s->at != '{'))
        return false;
    s->at++;
    return true;
}

void
scan_close(struct scan *s)
{
    skip_between(s);
    if (s->at < s->end)
        s->at++;
}

bool
scan_is(const struct scan_value *v, const char *word)
{
    size_t n = strlen(word);

    return v->type == SCAN_STRING && v->len == n + 2 && memcmp(v->text + 1, word, n) == 0;
}

bool
scan_find(struct scan *s, const char *key)
{
    struct scan_value name;
    struct scan_value skipped;

    while (scan_next(s, &name)) {
        if (scan_is(&name, key))
            return true;
        scan_next(s, &skipped);
    }
    return false;
}

void
scan_rows(const char *text, size_t len, size_t n, scan_row_cb row, void *arg)
{
    auto_free struct scan_value *v = xcalloc(n, sizeof *v);
    struct scan at = {text, text + len};
    struct scan_value more;

    if (!scan_open(&at) || !scan_find(&at, "rows") || !scan_open(&at))
        return;
    while (scan_open(&at)) {
        for (size_t i = 0; i < n; i++)
            scan_next(&at, &v[i]);
        while (scan_next(&at, &more))
            continue;
        scan_close(&at);
        row(arg, v);
    }
}

int64_t
scan_int(const struct scan_value *v, int64_t otherwise)
{
    bool negative = v->len > 0 && v->text[0] == '-';
    int64_t n = 0;

    if (v->type != SCAN_NUMBER)
        return otherwise;
    for (size_t i = negative; i < v->len && v->text[i] >= '0' && v->text[i] <= '9'; i++) {
        if (n > INT64_MAX / 10 - 1)
            return otherwise;
        n = n * 10 + (v->text[i] - '0');
    }
    return negative ? -n : n;
}

json_t *
scan_tree(const struct scan_value *v)
{
    return v->len ? json_loadb(v->text, v->len, JSON_DECODE_ANY, NULL) : NULL;
}

void
scan_add(struct buf *out, const struct scan_value *v)
{
    if (v->type == SCAN_NUMBER) {
        buf_add(out, v->text, v->len);
    } else if (v->type == SCAN_STRING && !v->escaped && v->len >= 2) {
        buf_add(out, v->text + 1, v->len - 2);
    } else if (v->type == SCAN_STRING) {
        json_t *tree = scan_tree(v);

        if (tree)
            buf_add(out, json_string_value(tree), json_string_length(tree));
        json_decref(tree);
    }
}
