/* JSON as json.dumps writes it: ", " and ": " as separators, ASCII only, floats as in repr;
 * with an indent, one line per member. */
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "compat/py/pytext.h"

#define DEPTH_MAX 64 /* recursion limit; deeper values become null */

static void
add_unit(struct buf *out, unsigned unit)
{
    buf_addf(out, "\\u%04x", unit);
}

static void
add_wide(struct buf *out, uint32_t c)
{
    if (c >= 0x10000) {
        c -= 0x10000;
        add_unit(out, 0xd800 + (c >> 10));
        add_unit(out, 0xdc00 + (c & 0x3ff));
    } else {
        add_unit(out, c);
    }
}

static void
add_ascii(struct buf *out, char c)
{
    static const char from[] = "\"\\\n\r\t\b\f";
    static const char to[] = "\"\\nrtbf";
    const char *at = c ? strchr(from, c) : NULL;

    if (at)
        buf_addf(out, "\\%c", to[at - from]);
    else if ((unsigned char)c < 0x20 || c == 0x7f)
        add_unit(out, (unsigned char)c);
    else
        buf_addc(out, c);
}

void
py_add_string(struct buf *out, const char *s, size_t left)
{
    buf_addc(out, '"');
    while (left > 0) {
        size_t n = text_utf8_len(s, left);

        if (n > 1)
            add_wide(out, text_code_point(s, n));
        else if (n == 1)
            add_ascii(out, *s);
        else
            add_unit(out, 0xfffd);
        s += n ? n : 1;
        left -= n ? n : 1;
    }
    buf_addc(out, '"');
}

static void
add_break(struct buf *out, int indent, int depth)
{
    if (indent <= 0)
        return;
    buf_addc(out, '\n');
    for (int i = 0; i < indent * depth; i++)
        buf_addc(out, ' ');
}

static void add_value(struct buf *out, const json_t *value, int indent, int depth);

static void
add_members(struct buf *out, const json_t *value, int indent, int depth)
{
    const char *key;
    json_t *v;
    const char *comma = "";

    buf_addc(out, '{');
    json_object_foreach((json_t *)value, key, v)
    {
        buf_adds(out, comma);
        comma = indent > 0 ? "," : ", ";
        add_break(out, indent, depth + 1);
        py_add_string(out, key, strlen(key));
        buf_adds(out, ": ");
        add_value(out, v, indent, depth + 1);
    }
    if (*comma)
        add_break(out, indent, depth);
    buf_addc(out, '}');
}

static void
add_items(struct buf *out, const json_t *value, int indent, int depth)
{
    size_t i;
    json_t *v;

    buf_addc(out, '[');
    json_array_foreach(value, i, v)
    {
        buf_adds(out, i == 0 ? "" : indent > 0 ? "," : ", ");
        add_break(out, indent, depth + 1);
        add_value(out, v, indent, depth + 1);
    }
    if (json_array_size(value) > 0)
        add_break(out, indent, depth);
    buf_addc(out, ']');
}

static void
add_value(struct buf *out, const json_t *value, int indent, int depth)
{
    if (!value || json_is_null(value) || depth > DEPTH_MAX)
        buf_adds(out, "null");
    else if (json_is_object(value))
        add_members(out, value, indent, depth);
    else if (json_is_array(value))
        add_items(out, value, indent, depth);
    else if (json_is_string(value))
        py_add_string(out, json_string_value(value), json_string_length(value));
    else if (json_is_integer(value))
        buf_addf(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        py_add_float(out, json_real_value(value));
    else
        buf_adds(out, json_is_true(value) ? "true" : "false");
}

void
py_add_json(struct buf *out, const json_t *value, int indent)
{
    add_value(out, value, indent, 0);
}
