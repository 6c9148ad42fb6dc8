/* See exposition.h. Label values are escaped as the format requires, and invalid UTF-8 becomes
 * "?": one odd name must not make the whole page unreadable. */
#include "daemon/view/exposition.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/jsonw.h"
#include "base/text.h"
#include "core/learn/histogram.h"

#define EXACT_MAX 1e15

static void
add_label_value(struct buf *out, const char *s)
{
    for (size_t n = strlen(s); n > 0;) {
        size_t len = text_utf8_len(s, n);
        if (*s == '\n')
            buf_adds(out, "\\n");
        else if (*s == '\\' || *s == '"')
            buf_addf(out, "\\%c", *s);
        else if (len == 0)
            buf_addc(out, '?');
        else
            buf_add(out, s, len);
        len = len ? len : 1;
        s += len;
        n -= len;
    }
}

/* Writes as many digits as identify the value; integers stay integers. */
static void
add_number(struct buf *out, double v)
{
    if (v == floor(v) && fabs(v) < EXACT_MAX)
        buf_addf(out, "%.0f", v);
    else
        buf_addf(out, "%.12g", v);
}

static void
put(struct exposition *x, const char *key, double v)
{
    buf_addf(x->text, "%s ", key);
    add_number(x->text, v);
    buf_addc(x->text, '\n');
    jsonw_knum(x->numbers, key, v);
}

void
exposition_family(struct exposition *x, const char *name, const char *type, const char *help)
{
    x->name = name;
    buf_addf(x->text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void
exposition_value(struct exposition *x, double value, ...)
{
    auto_buf struct buf key = BUF_INIT;
    const char *label;
    bool any = false;
    va_list ap;
    buf_adds(&key, x->name);
    va_start(ap, value);
    while ((label = va_arg(ap, const char *))) {
        buf_addf(&key, "%s%s=\"", any ? "," : "{", label);
        add_label_value(&key, va_arg(ap, const char *));
        buf_addc(&key, '"');
        any = true;
    }
    va_end(ap);
    if (any)
        buf_addc(&key, '}');
    put(x, buf_str(&key), value);
}

void
exposition_one(struct exposition *x, const char *name, const char *type, const char *help,
               double value)
{
    exposition_family(x, name, type, help);
    exposition_value(x, value, NULL);
}

void
exposition_histogram(struct exposition *x, const char *name, const char *help,
                     const struct histogram *h)
{
    char key[160];
    exposition_family(x, name, "histogram", help);
    for (int i = 0; i < h->n; i++) {
        snprintf(key, sizeof key, "%s_bucket{le=\"%.9g\"}", name,
                 (double)h->bounds_us[i] / 1e6);
        put(x, key, (double)histogram_at_most(h, i));
    }
    snprintf(key, sizeof key, "%s_bucket{le=\"+Inf\"}", name);
    put(x, key, (double)histogram_count(h));
    snprintf(key, sizeof key, "%s_sum", name);
    put(x, key, (double)h->sum_us / 1e6);
    snprintf(key, sizeof key, "%s_count", name);
    put(x, key, (double)histogram_count(h));
}
