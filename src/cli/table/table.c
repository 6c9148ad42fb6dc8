/* Aligned columns; see table.h. Columns are separated by two blanks. */
#include "cli/table/table.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"

#define COLUMNS_MAX 32
#define GAP         2

struct cell {
    uint32_t at;
    uint16_t width;
    uint8_t style;
};

struct table {
    const struct column *columns;
    int n_columns;
    struct buf text;
    struct cell *cells;
    size_t n_cells;
    size_t cap;
    int width[COLUMNS_MAX];
    bool filled[COLUMNS_MAX];
    bool hidden[COLUMNS_MAX];
    int cut[COLUMNS_MAX]; /* 0: unlimited */
    bool no_header;
    bool shows_all;
};

struct table *
table_new(const struct column *columns, int n)
{
    struct table *t = xcalloc(1, sizeof *t);

    if (n < 1 || n > COLUMNS_MAX)
        err_abort("a table of %d columns", n);
    t->columns = columns;
    t->n_columns = n;
    for (int i = 0; i < n; i++)
        t->width[i] = text_columns(columns[i].title);
    return t;
}

void
table_cleanup(struct table **t)
{
    if (!*t)
        return;
    buf_free(&(*t)->text);
    free((*t)->cells);
    free(*t);
}

static bool
is_plain(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i] < ' ' || s[i] > '~')
            return false;
    }
    return true;
}

/* Fast path: nearly all text is printable ASCII, whose characters need no further checks. */
static int
add_text(struct buf *out, const char *s, int cut)
{
    size_t n = strlen(s);
    size_t at = out->len;

    if (is_plain(s, n) && (cut == 0 || n <= (size_t)cut)) {
        buf_add(out, s, n + 1);
        return (int)n;
    }
    text_add_safe(out, s, n, cut);
    buf_addc(out, '\0');
    return text_columns(out->data + at);
}

void
table_cell(struct table *t, enum style style, const char *s)
{
    int column = (int)(t->n_cells % (size_t)t->n_columns);
    struct cell *c;
    int width;

    t->cells = xgrow(t->cells, t->n_cells, &t->cap, sizeof *t->cells);
    c = &t->cells[t->n_cells++];
    if (s[0] && strcmp(s, "-") != 0)
        t->filled[column] = true;
    else if (column != t->n_columns - 1)
        s = "-";
    c->at = (uint32_t)t->text.len;
    width = add_text(&t->text, s, t->cut[column]);
    c->width = (uint16_t)(width > UINT16_MAX ? UINT16_MAX : width);
    c->style = (uint8_t)style;
    if (width > t->width[column])
        t->width[column] = width;
}

void
table_cell_int(struct table *t, long long v)
{
    char text[24];

    snprintf(text, sizeof text, "%lld", v);
    table_cell(t, STYLE_NONE, text);
}

void
table_no_header(struct table *t)
{
    t->no_header = true;
}

void
table_hide(struct table *t, int column)
{
    t->hidden[column] = true;
}

void
table_show_all(struct table *t)
{
    t->shows_all = true;
}

void
table_cut(struct table *t, int column, int max)
{
    t->cut[column] = max;
}

size_t
table_rows(const struct table *t)
{
    return t->n_cells / (size_t)t->n_columns;
}

static void
add_blanks(struct buf *out, int n)
{
    static const char blanks[] =
        "                                                                ";

    while (n > 0) {
        size_t part = (size_t)n < sizeof blanks - 1 ? (size_t)n : sizeof blanks - 1;

        buf_add(out, blanks, part);
        n -= (int)part;
    }
}

struct layout {
    const struct table *t;
    const struct term *term;
    struct buf *out;
    bool shown[COLUMNS_MAX];
    int last; /* the last column that is shown */
};

static void
print_cell(const struct layout *l, int column, const char *s, int width, enum style style,
           int *used)
{
    const struct column *c = &l->t->columns[column];
    int pad = l->t->width[column] - width;
    int room = l->term->columns ? l->term->columns - *used : 0;

    if (column == l->last && width == 0)
        return;
    if (c->right)
        add_blanks(l->out, pad);
    if (column == l->last && l->term->columns && width > room) {
        auto_buf struct buf cut = BUF_INIT;

        text_add_safe(&cut, s, strlen(s), room < 8 ? 8 : room);
        term_add(l->term, l->out, style, buf_str(&cut));
    } else {
        term_add(l->term, l->out, style, s);
    }
    if (column != l->last) {
        if (!c->right)
            add_blanks(l->out, pad);
        add_blanks(l->out, GAP);
    }
    *used += l->t->width[column] + GAP;
}

static void
print_row(const struct layout *l, const struct cell *cells)
{
    int used = 0;

    for (int i = 0; i < l->t->n_columns; i++) {
        if (!l->shown[i])
            continue;
        if (cells)
            print_cell(l, i, l->t->text.data + cells[i].at, cells[i].width,
                       (enum style)cells[i].style, &used);
        else
            print_cell(l, i, l->t->columns[i].title, text_columns(l->t->columns[i].title),
                       STYLE_DIM, &used);
    }
    while (l->out->len > 0 && l->out->data[l->out->len - 1] == ' ')
        l->out->len--; /* trailing padding of empty columns */
    buf_addc(l->out, '\n');
}

void
table_print(const struct table *t, const struct term *term, struct buf *out)
{
    struct layout l = {.t = t, .term = term, .out = out};

    for (int i = 0; i < t->n_columns; i++) {
        l.shown[i] = !t->hidden[i] && (t->filled[i] || t->shows_all || !t->columns[i].optional);
        if (l.shown[i])
            l.last = i;
    }
    if (!t->no_header)
        print_row(&l, NULL);
    for (size_t row = 0; row < table_rows(t); row++)
        print_row(&l, &t->cells[row * (size_t)t->n_columns]);
}
