/* Escaping: see html.h. Called by web_page.c and plain.c. */
#include "web/pages/html.h"

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

void
html_add(struct buf *out, const char *s)
{
    size_t n = s ? strlen(s) : 0;

    for (size_t i = 0, len; i < n; i += len ? len : 1) {
        const char *entity = entity_of(s[i]);
        len = text_utf8_len(s + i, n - i);
        if (entity)
            buf_adds(out, entity);
        else if (s[i] == '\n' || s[i] == '\t')
            buf_addc(out, s[i]);
        else if (len > 1 && text_is_unsafe(s + i, len))
            buf_addf(out, "[U+%04X]", (unsigned)text_code_point(s + i, len));
        else if (len == 0 || text_is_unsafe(s + i, len))
            buf_adds(out, "\xef\xbf\xbd");
        else
            buf_add(out, s + i, len);
    }
}

/* In JSON these characters occur only within strings, where \u003c is equivalent. */
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
