/* Columns of squeue and sinfo; see slurm_table.h. */
#include "compat/slurm/slurm_table.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "compat/slurm/slurm_job.h"
#include "compat/slurm/slurm_words.h"

#define WIDTH_DEFAULT 20 /* for -O */
#define WIDTH_MAX     1000

void
slurm_value_add(const struct slurm_value *v, const struct slurm_row *row, struct buf *out)
{
    size_t before = out->len;

    if (v->constant)
        buf_adds(out, v->constant);
    else if (v->add)
        v->add(out, row->job);
    else if (v->add_row)
        v->add_row(out, row);
    else if (v->text)
        buf_adds(out, v->text(row->job));
    else if (v->key)
        buf_adds(out, answer_str(row->job->json, v->key));
    else if (v->time_us)
        slurm_add_time(out, v->time_us(row->job), "");
    else if (v->number)
        buf_addi(out, v->number(row->job));
    if (out->len == before && v->otherwise)
        buf_adds(out, v->otherwise);
}

void
slurm_table_free(struct slurm_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->at[i].suffix);
    free(t->at);
    free(t->prefix);
    free(t->unknown);
    *t = (struct slurm_table){0};
}

static void
add_column(struct slurm_table *t, const struct slurm_column *c)
{
    t->at = xgrow(t->at, t->n, &t->cap, sizeof *t->at);
    t->at[t->n++] = *c;
}

/* Parse "[.]size" at *p. */
static void
read_width(const char **p, struct slurm_column *c)
{
    c->right = **p == '.';
    *p += c->right;
    while (isdigit((unsigned char)**p)) {
        c->width = c->width * 10 + (**p - '0');
        if (c->width > WIDTH_MAX)
            c->width = WIDTH_MAX;
        ++*p;
    }
}

const struct slurm_field *
slurm_field_of(const struct slurm_field *fields, char letter)
{
    for (; fields->header; fields++)
        if (letter && fields->letter == letter)
            return fields;
    return NULL;
}

static const struct slurm_field *
find_name(const struct slurm_field *fields, const char *name, size_t n)
{
    for (; fields->header; fields++)
        if (fields->name && strlen(fields->name) == n &&
            strncasecmp(fields->name, name, n) == 0)
            return fields;
    return NULL;
}

static void
add_all(struct slurm_table *t, const struct slurm_field *fields)
{
    for (; fields->header; fields++) {
        if (!fields->letter)
            continue;
        add_column(t, &(struct slurm_column){.field = fields, .suffix = xstrdup("|")});
    }
}

/* Parse a column: a letter and the text up to the next %; an unknown letter is kept as
 * text. */
static void
add_letter(struct slurm_table *t, const struct slurm_field *fields, const char **p)
{
    const char *start = *p, *letter;
    struct slurm_column c = {0};

    ++*p;
    read_width(p, &c);
    letter = *p;
    *p += *letter != '\0';
    c.field = slurm_field_of(fields, *letter);
    *p += strcspn(*p, "%");
    if (c.field) {
        c.suffix = xstrndup(letter + 1, (size_t)(*p - letter - 1));
    } else if (start[1]) {
        c = (struct slurm_column){.suffix = xstrndup(start, (size_t)(*p - start))};
        char *longer = xasprintf("%s%c", t->unknown ? t->unknown : "", *letter);

        free(t->unknown);
        t->unknown = longer;
    } else {
        c.suffix = xstrdup(""); /* a final % */
    }
    add_column(t, &c);
}

void
slurm_table_letters(struct slurm_table *t, const struct slurm_field *fields, const char *format)
{
    const char *p = format + strcspn(format, "%");

    t->prefix = xstrndup(format, (size_t)(p - format));
    if (strncmp(p, "%all", 4) == 0) {
        add_all(t, fields);
        return;
    }
    while (*p == '%')
        add_letter(t, fields, &p);
}

int
slurm_table_names(struct slurm_table *t, const struct slurm_field *fields, const char *format,
                  struct err *e)
{
    auto_free char *copy = xstrdup(format);
    char *rest = copy, *piece;

    t->prefix = xstrdup("");
    while ((piece = strsep(&rest, ","))) {
        size_t n = strcspn(piece, ":");
        struct slurm_column c = {.field = find_name(fields, piece, n)};
        const char *p = piece + n;

        if (!piece[0])
            continue;
        if (!c.field)
            return err_set(e, ERR_USAGE, "Invalid job format specification: %.*s", (int)n,
                           piece);
        p += *p == ':';
        read_width(&p, &c);
        if (c.width == 0)
            c.width = WIDTH_DEFAULT;
        c.suffix = xstrdup(p);
        add_column(t, &c);
    }
    return 0;
}

int
slurm_table_detail(const struct slurm_table *t)
{
    int most = 0;

    for (size_t i = 0; i < t->n; i++)
        if (t->at[i].field && t->at[i].field->detail > most)
            most = t->at[i].field->detail;
    return most;
}

/* Length in bytes of the longest prefix of the UTF-8 text that fits the columns. */
static size_t
fitting(const char *text, int columns)
{
    size_t n = 0;

    while (text[n]) {
        size_t len = text_utf8_len(text + n, strlen(text + n));
        char one[8] = "";

        memcpy(one, text + n, len);
        columns -= text_columns(one);
        if (len == 0 || columns < 0)
            break;
        n += len;
    }
    return n;
}

/* Add text, truncated or padded to the column's width. */
static void
add_cell(struct buf *out, const struct slurm_column *c, const char *text)
{
    size_t n = c->width ? fitting(text, c->width) : strlen(text);
    int fill = c->width ? c->width - text_columns(text) : 0;

    for (int i = 0; c->right && i < fill; i++)
        buf_addc(out, ' ');
    buf_add(out, text, n);
    for (int i = 0; !c->right && i < fill; i++)
        buf_addc(out, ' ');
    buf_adds(out, c->suffix);
}

void
slurm_table_add_header(const struct slurm_table *t, struct buf *out)
{
    buf_adds(out, t->prefix);
    for (size_t i = 0; i < t->n; i++)
        add_cell(out, &t->at[i], t->at[i].field ? t->at[i].field->header : "");
    buf_addc(out, '\n');
}

void
slurm_table_add_row(const struct slurm_table *t, const struct slurm_row *row, struct buf *out)
{
    buf_adds(out, t->prefix);
    for (size_t i = 0; i < t->n; i++) {
        auto_buf struct buf text = BUF_INIT, safe = BUF_INIT;

        if (t->at[i].field)
            slurm_value_add(&t->at[i].field->value, row, &text);
        if (text.len)
            text_add_safe(&safe, text.data, text.len, 0);
        add_cell(out, &t->at[i], buf_str(&safe));
    }
    buf_addc(out, '\n');
}
