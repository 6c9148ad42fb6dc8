/* A rectangle of character cells; see grid.h. */
#include "cli/common/grid.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"

struct grid *
grid_new(int rows, int columns, bool ascii)
{
    struct grid *g = xcalloc(1, sizeof *g);

    g->rows = rows;
    g->columns = columns;
    g->ascii = ascii;
    g->cells = xcalloc((size_t)rows * (size_t)columns + 1, sizeof *g->cells);
    grid_clear(g);
    return g;
}

void
grid_free(struct grid *g)
{
    if (!g)
        return;
    free(g->cells);
    free(g);
}

void
grid_clear(struct grid *g)
{
    for (int i = 0; i < g->rows * g->columns; i++)
        g->cells[i] = (struct grid_cell){.text = " "};
}

struct grid_cell *
grid_at(const struct grid *g, int row, int column)
{
    if (row < 0 || column < 0 || row >= g->rows || column >= g->columns)
        return NULL;
    return &g->cells[row * g->columns + column];
}

/* Columns that the terminal uses for the character of len bytes; -1: it must be replaced. */
static int
width_of(const struct grid *g, const char *s, size_t len)
{
    mbstate_t state = {0};
    wchar_t c;

    if (len == 1)
        return 1;
    if (g->ascii || mbrtowc(&c, s, len, &state) != len)
        return -1;
    return wcwidth(c);
}

/* Appends a combining character to the character before it, if there is room. */
static void
combine(const struct grid *g, int row, int column, const char *s, size_t len)
{
    struct grid_cell *c = grid_at(g, row, column - 1);

    if (c && !c->text[0])
        c = grid_at(g, row, column - 2);
    if (c && strlen(c->text) + len < sizeof c->text)
        strncat(c->text, s, len);
}

static void
set(const struct grid *g, int row, int column, enum style style, const char *s, size_t len)
{
    struct grid_cell *c = grid_at(g, row, column);

    if (!c)
        return;
    memcpy(c->text, s, len);
    c->text[len] = '\0';
    c->style = (uint8_t)style;
}

int
grid_put(struct grid *g, int row, int column, int max, enum style style, const char *s)
{
    auto_buf struct buf safe = BUF_INIT;
    int room = g->columns - column < max ? g->columns - column : max;
    int used = 0;
    size_t len;

    if (room <= 0)
        return 0;
    text_add_safe(&safe, s, strlen(s), room);
    for (size_t at = 0; at < safe.len; at += len) {
        len = text_utf8_len(safe.data + at, safe.len - at);
        int width = width_of(g, safe.data + at, len);

        if (width == 0) {
            combine(g, row, column + used, safe.data + at, len);
            continue;
        }
        if (used + (width < 0 ? 1 : width) > room)
            break;
        set(g, row, column + used, style, width < 0 ? "?" : safe.data + at,
            width < 0 ? 1 : len);
        if (width == 2)
            set(g, row, column + used + 1, style, "", 0);
        used += width < 0 ? 1 : width;
    }
    return used;
}

int
grid_putf(struct grid *g, int row, int column, int max, enum style style, const char *fmt, ...)
{
    auto_buf struct buf text = BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_addv(&text, fmt, ap);
    va_end(ap);
    return grid_put(g, row, column, max, style, buf_str(&text));
}

void
grid_put_right(struct grid *g, int row, int end, int max, enum style style, const char *s)
{
    int width = text_columns(s);

    grid_put(g, row, end - (width < max ? width : max), max, style, s);
}

void
grid_fill(struct grid *g, int row, int column, int n, enum style style, const char *glyph,
          char ascii)
{
    const char *s = g->ascii ? &ascii : glyph;
    size_t len = g->ascii ? 1 : strlen(glyph);

    for (int i = 0; i < n; i++)
        set(g, row, column + i, style, s, len);
}

void
grid_reverse(struct grid *g, int row, int column, int n)
{
    for (int i = 0; i < n; i++) {
        struct grid_cell *c = grid_at(g, row, column + i);

        if (c)
            c->reverse = true;
    }
}

void
grid_add_row(const struct grid *g, int row, struct buf *out)
{
    size_t from = out->len;

    for (int i = 0; i < g->columns; i++)
        buf_adds(out, g->cells[row * g->columns + i].text);
    while (out->len > from && out->data[out->len - 1] == ' ')
        out->data[--out->len] = '\0';
}
