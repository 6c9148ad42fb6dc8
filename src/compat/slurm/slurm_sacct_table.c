/* Layout of sacct's columns: fixed widths, with + at the end of truncated values, or a
 * delimiter between columns. Pure. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "compat/slurm/slurm_sacct.h"

/* Names may be abbreviated; the first match wins. */
static const struct sacct_field *
find_in(const struct sacct_field *fields, const char *name)
{
    for (const struct sacct_field *f = fields; f->name; f++)
        if (strncasecmp(f->name, name, strlen(name)) == 0)
            return f;
    return NULL;
}

static const struct sacct_field *
find_field(const char *name)
{
    const struct sacct_field *f = find_in(sacct_fields, name);

    return f ? f : find_in(sacct_later_fields, name);
}

static void
add_column(struct sacct_table *t, const struct sacct_field *field, int width)
{
    t->at = xgrow(t->at, t->n, &t->cap, sizeof *t->at);
    t->at[t->n++] = (struct sacct_column){field, width};
}

static void
add_all(struct sacct_table *t)
{
    for (const struct sacct_field *f = sacct_fields; f->name; f++)
        add_column(t, f, f->width);
}

int
sacct_read_format(struct sacct_table *t, const char *format, struct err *e)
{
    auto_free char *copy = xstrdup(format);
    char *rest = copy, *piece;

    while ((piece = strsep(&rest, ", "))) {
        char *percent = strchr(piece, '%');
        const struct sacct_field *field;

        if (!piece[0])
            continue;
        if (percent)
            *percent = '\0';
        if (strcasecmp(piece, "ALL") == 0) {
            add_all(t);
            continue;
        }
        field = find_field(piece);
        if (!field)
            return err_set(e, ERR_USAGE, "Invalid field requested: \"%s\"", piece);
        add_column(t, field, percent ? (int)strtol(percent + 1, NULL, 10) : field->width);
    }
    return 0;
}

void
sacct_table_free(struct sacct_table *t)
{
    free(t->at);
    *t = (struct sacct_table){0};
}

/* Add text in a column of this width, and a blank. */
static void
add_padded(struct buf *out, int width, const char *text)
{
    auto_buf struct buf cut = BUF_INIT;
    int columns = width < 0 ? -width : width, fill = columns - text_columns(text);

    if (fill < 0) {
        size_t n = strlen(text);

        while (n > 0 && (text_columns(buf_str(&cut)) > columns - 1 || cut.len == 0)) {
            n--;
            while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80)
                n--;
            buf_clear(&cut);
            buf_add(&cut, text, n);
        }
        buf_addc(&cut, '+');
        text = buf_str(&cut);
        fill = 0;
    }
    if (width >= 0)
        buf_addf(out, "%*s", fill, "");
    buf_adds(out, text);
    if (width < 0)
        buf_addf(out, "%*s", fill, "");
    buf_addc(out, ' ');
}

static void
add_cell(const struct sacct_table *t, size_t i, const char *text, struct buf *out)
{
    if (!t->delimiter) {
        add_padded(out, t->at[i].width, text);
        return;
    }
    buf_adds(out, text);
    if (t->at_end || i + 1 < t->n)
        buf_adds(out, t->delimiter);
}

void
sacct_add_header(const struct sacct_table *t, struct buf *out)
{
    for (size_t i = 0; i < t->n; i++)
        add_cell(t, i, t->at[i].field->name, out);
    buf_addc(out, '\n');
    for (size_t i = 0; !t->delimiter && i < t->n; i++) {
        for (int k = abs(t->at[i].width); k > 0; k--)
            buf_addc(out, '-');
        buf_addc(out, ' ');
    }
    if (!t->delimiter)
        buf_addc(out, '\n');
}

void
sacct_add_row(const struct sacct_table *t, const struct slurm_row *row, struct buf *out)
{
    for (size_t i = 0; i < t->n; i++) {
        auto_buf struct buf text = BUF_INIT, safe = BUF_INIT;
        const struct sacct_field *f = t->at[i].field;

        if (f->of == SACCT_BOTH || (f->of == SACCT_STEP) == row->is_step)
            slurm_value_add(&f->value, row, &text);
        if (text.len)
            text_add_safe(&safe, text.data, text.len, 0);
        add_cell(t, i, buf_str(&safe), out);
    }
    buf_addc(out, '\n');
}
