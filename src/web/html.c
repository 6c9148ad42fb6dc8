/* Escaping: see html.h. Called by page.c and plain.c. */
#include "web/html.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"

static const char *
entity_of(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

/* A character of two or three bytes. */
static uint32_t
code_of(const char *s, size_t len)
{
    if (len == 2)
        return (uint32_t)(s[0] & 0x1f) << 6 | (uint32_t)(s[1] & 0x3f);
    if (len == 3)
        return (uint32_t)(s[0] & 0x0f) << 12 | (uint32_t)(s[1] & 0x3f) << 6 |
               (uint32_t)(s[2] & 0x3f);
    return 0;
}

/* Marks that make text read otherwise than it stands (U+202A..E, U+2066..9, U+200E, F,
 * U+061C), and the second set of control characters. */
static bool
is_deceptive(uint32_t code)
{
    return (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0x200e || code == 0x200f || code == 0x061c || (code >= 0x80 && code < 0xa0);
}

void
html_add(struct buf *out, const char *s)
{
    size_t n = s ? strlen(s) : 0;

    for (size_t i = 0, len; i < n; i += len ? len : 1) {
        const char *entity = entity_of(s[i]);
        len = text_utf8_len(s + i, n - i);
        if (entity)
            buf_adds(out, entity);
        else if (len == 0 || (len == 1 && ((unsigned char)s[i] < ' ' || s[i] == 0x7f) &&
                              s[i] != '\n' && s[i] != '\t'))
            buf_adds(out, "\xef\xbf\xbd");
        else if (len > 1 && is_deceptive(code_of(s + i, len)))
            buf_addf(out, "[U+%04X]", code_of(s + i, len));
        else
            buf_add(out, s + i, len);
    }
}

/* These characters stand in JSON only within strings, where \u003c is the same. */
void
html_add_json(struct buf *out, const char *json, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        switch (json[i]) {
        case '<':
            buf_adds(out, "\\u003c");
            break;
        case '>':
            buf_adds(out, "\\u003e");
            break;
        case '&':
            buf_adds(out, "\\u0026");
            break;
        default:
            buf_addc(out, json[i]);
        }
    }
}
