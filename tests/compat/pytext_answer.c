/* pytext's results for values, for pytext_test.py, which asks Python the same. Each input line
 * is a JSON array of an operation and its text; each answer is a JSON string on one line, or
 * null if the text is refused. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "compat/py/pytext.h"

static bool
add_json(struct buf *out, const char *text, int indent)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);

    if (!value)
        return false;
    py_add_json(out, value, indent);
    json_decref(value);
    return true;
}

static bool
add_answer(struct buf *out, const char *what, const char *text)
{
    double real;
    int64_t whole;

    if (strcmp(what, "dumps") == 0)
        return add_json(out, text, 0);
    if (strcmp(what, "indent") == 0)
        return add_json(out, text, 4);
    if (strcmp(what, "repr") == 0) {
        py_add_repr(out, text);
        return true;
    }
    if (strcmp(what, "int") == 0 && py_int(text, &whole)) {
        buf_addf(out, "%lld", (long long)whole);
        return true;
    }
    if (strcmp(what, "float") == 0 && py_float(text, &real)) {
        py_add_float(out, real);
        return true;
    }
    if (strcmp(what, "strip") == 0) {
        size_t n = py_strip(&text, strlen(text));

        buf_add(out, text, n);
        return true;
    }
    return false;
}

int
main(void)
{
    auto_free char *line = NULL;
    size_t cap = 0;
    ssize_t n;

    while ((n = getline(&line, &cap, stdin)) > 0) {
        json_t *asked = json_loadb(line, (size_t)n, 0, NULL), *told = json_null();
        auto_buf struct buf out = BUF_INIT;
        const char *what, *text;

        if (json_unpack(asked, "[s,s]", &what, &text) < 0)
            err_abort("no question: %s", line);
        if (add_answer(&out, what, text))
            told = json_string(buf_str(&out));
        json_dumpf(told, stdout, JSON_ENCODE_ANY);
        putchar('\n');
        json_decref(told);
        json_decref(asked);
    }
    return 0;
}
