/* Settings as text: those in force, and a sample of all with their help, ranges and defaults.
 * config_read accepts both. */
#include <stdio.h>

#include "base/buf.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "spec/config.h"
#include "spec/config_table.h"

void
config_add_quoted(struct buf *out, const char *s)
{
    buf_addc(out, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            buf_addf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            buf_addf(out, "\\x%02x", c);
        else
            buf_addc(out, (char)c);
    }
    buf_addc(out, '"');
}

/* The shortest decimal that parses to the same fraction. */
static void
add_fraction(struct buf *out, double v)
{
    char text[32];
    double back = -1;

    for (int digits = 1; digits <= 15; digits++) {
        snprintf(text, sizeof text, "%.*f", digits, v);
        if (parse_double(text, 0, 1e9, &back, NULL) == 0 && back == v)
            break;
    }
    buf_adds(out, text);
}

void
config_add_value(const struct setting *s, const struct config *c, struct buf *out)
{
    const void *field = (const char *)c + s->offset;

    switch (s->type) {
    case TYPE_INT:
        buf_addf(out, " %lld", (long long)*(const int64_t *)field);
        break;
    case TYPE_FRACTION:
        buf_addc(out, ' ');
        add_fraction(out, *(const double *)field);
        break;
    case TYPE_CHOICE:
        buf_addf(out, " %s", s->choices[*(const int *)field]);
        break;
    case TYPE_USERS:
        config_add_users_text(c, out);
        break;
    case TYPE_TEXT:
    case TYPE_PATH:
        buf_addc(out, ' ');
        config_add_quoted(out, *(const char *const *)field);
        break;
    case TYPE_LIST: {
        char *const *list = *(char *const *const *)field;
        if (!list || !*list)
            buf_adds(out, " []");
        for (; list && *list; list++) {
            buf_adds(out, "\n  - ");
            config_add_quoted(out, *list);
        }
        break;
    }
    }
}

void
config_show(const struct config *c, struct buf *out)
{
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        buf_addf(out, "%s:", config_settings[i].key);
        config_add_value(&config_settings[i], c, out);
        buf_addc(out, '\n');
    }
}

static void
add_json_value(const struct setting *s, const struct config *c, struct jsonw *w)
{
    const void *field = (const char *)c + s->offset;

    switch (s->type) {
    case TYPE_INT:
        jsonw_int(w, *(const int64_t *)field);
        break;
    case TYPE_FRACTION:
        jsonw_num(w, *(const double *)field);
        break;
    case TYPE_CHOICE:
        jsonw_str(w, s->choices[*(const int *)field]);
        break;
    case TYPE_USERS:
        config_add_users_json(c, w);
        break;
    case TYPE_TEXT:
    case TYPE_PATH:
        jsonw_str(w, *(const char *const *)field);
        break;
    case TYPE_LIST:
        jsonw_array(w);
        for (char *const *list = *(char *const *const *)field; list && *list; list++)
            jsonw_str(w, *list);
        jsonw_end_array(w);
        break;
    }
}

void
config_show_json(const struct config *c, struct buf *out)
{
    struct jsonw w;

    jsonw_init(&w, out);
    jsonw_object(&w);
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        jsonw_key(&w, config_settings[i].key);
        add_json_value(&config_settings[i], c, &w);
    }
    jsonw_end_object(&w);
}

static void
add_range(const struct setting *s, struct buf *out)
{
    switch (s->type) {
    case TYPE_INT:
        buf_addf(out, "%.0f to %.0f", s->min, s->max);
        break;
    case TYPE_FRACTION:
        buf_addf(out, "%g to %g", s->min, s->max);
        break;
    case TYPE_CHOICE:
        for (int i = 0; s->choices[i]; i++)
            buf_addf(out, "%s%s", i ? " or " : "", s->choices[i]);
        break;
    case TYPE_LIST:
        buf_addf(out, "at most %d texts", CONFIG_LIST_MAX);
        break;
    case TYPE_TEXT:
        buf_addf(out, "at most %.0f bytes", s->max);
        break;
    case TYPE_PATH:
        buf_adds(out, "an absolute path");
        break;
    case TYPE_USERS:
        buf_addf(out, "at most %d users", CONFIG_USERS_MAX);
        break;
    }
}

void
config_sample(struct buf *out)
{
    struct config c;

    config_init(&c);
    buf_adds(out,
             "# Settings of Berth, each with its default. Omitted lines keep their default.\n");
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        const struct setting *s = &config_settings[i];
        buf_addf(out, "\n# %s\n# (", s->help);
        add_range(s, out);
        buf_addf(out, ")\n%s:", s->key);
        config_add_value(s, &c, out);
        buf_addc(out, '\n');
    }
    config_free(&c);
}
