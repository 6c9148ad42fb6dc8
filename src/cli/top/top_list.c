/* The jobs in `berth top`: one line each, as wide as the window allows. The reason for waiting
 * and the run time share a column, as no job has both. */
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "cli/table/render.h"
#include "cli/top/top_layout.h"
#include "cli/top/top_model.h"

#define GAP         2
#define COLUMNS_MAX 16

struct list_column {
    const char *name; /* of queue_columns, or "note" */
    const char *title;
    int from; /* minimum width of the window */
    int max;  /* maximum width; 0: the rest of the line */
    bool right;
};

static const struct list_column columns[] = {
    {"id", "ID", 0, 16, true},           {"user", "USER", 0, 12, false},
    {"state", "STATE", 0, 13, false},    {"gpus", "GPU", 0, 11, false},
    {"vram", "VRAM", 0, 9, true},        {"now", "USES", 100, 9, true},
    {"priority", "PRIO", 120, 6, true},  {"note", "TIME / WHY", 0, 30, false},
    {"limit", "LIMIT", 140, 8, true},    {"submitted", "SUBMITTED", 160, 12, false},
    {"command", "COMMAND", 0, 0, false},
};
#define N_COLUMNS ((int)(sizeof columns / sizeof columns[0]))

struct list {
    const struct top *t;
    struct grid *g;
    struct area area;
    int width[COLUMNS_MAX]; /* -1: not shown */
};

/* "3m12s"; "GpuMemory, 14:31"; "exit 1" */
static void
draw_note(const struct top *t, const struct row *row, struct buf *out)
{
    auto_buf struct buf why = BUF_INIT;
    auto_buf struct buf when = BUF_INIT;

    top_add_run_time(t, row, out);
    if (out->len == 0 && row->v[F_REASON].type == SCAN_NULL)
        queue_column_draw("time", row, out);
    queue_column_draw("reason", row, &why);
    queue_column_draw("expected", row, &when);
    buf_addf(out, "%s%s", out->len && why.len ? "  " : "", buf_str(&why));
    if (when.len)
        buf_addf(out, "%s~%s", out->len ? " " : "", buf_str(&when));
}

static void
draw_cell(const struct top *t, const struct list_column *c, const struct row *row,
          struct buf *out)
{
    buf_clear(out);
    if (strcmp(c->name, "note") == 0)
        draw_note(t, row, out);
    else if (strcmp(c->name, "now") == 0)
        top_add_use(t, row, out);
    else
        queue_column_draw(c->name, row, out);
}

static int
width_of(const char *text)
{
    auto_buf struct buf safe = BUF_INIT;

    text_add_safe(&safe, text, strlen(text), 0);
    return text_columns(buf_str(&safe));
}

static bool
read_row(const struct list *l, int at, struct row *row)
{
    const struct top *t = l->t;
    size_t i = t->first + (size_t)at;

    return i < t->n_shown && queue_rows_read(&t->format, &t->rows, t->shown[i], row);
}

/* Measures the rows in view, so that other rows do not change the layout. */
static void
measure(struct list *l)
{
    auto_buf struct buf cell = BUF_INIT;
    int left = l->area.columns;
    struct row row;

    for (int c = 0; c < N_COLUMNS; c++) {
        bool hide = columns[c].from > l->g->columns ||
                    (l->t->rows.own && strcmp(columns[c].name, "user") == 0);

        l->width[c] = hide ? -1 : (int)strlen(columns[c].title);
    }
    for (int i = 0; i < l->area.rows - 1 && read_row(l, i, &row); i++) {
        for (int c = 0; c < N_COLUMNS; c++) {
            if (l->width[c] < 0 || columns[c].max == 0)
                continue;
            draw_cell(l->t, &columns[c], &row, &cell);
            int width = width_of(buf_str(&cell));
            if (width > columns[c].max)
                width = columns[c].max;
            if (width > l->width[c])
                l->width[c] = width;
        }
    }
    for (int c = 0; c < N_COLUMNS - 1; c++)
        left -= l->width[c] < 0 ? 0 : l->width[c] + GAP;
    l->width[N_COLUMNS - 1] = left < 4 ? 4 : left;
}

static enum style
style_of(const struct list_column *c, const char *text)
{
    return strcmp(c->name, "state") == 0 ? render_state_style(text) : STYLE_NONE;
}

static void
put_cell(const struct list *l, int row, int at, int c, enum style style, const char *text)
{
    int width = l->width[c];

    if (columns[c].right)
        grid_put_right(l->g, row, at + width, width, style, text);
    else
        grid_put(l->g, row, at, width, style, text);
}

static void
draw_row(const struct list *l, int line, const struct row *row)
{
    auto_buf struct buf cell = BUF_INIT;
    int at = l->area.column;

    for (int c = 0; c < N_COLUMNS; c++) {
        if (l->width[c] < 0)
            continue;
        if (row)
            draw_cell(l->t, &columns[c], row, &cell);
        put_cell(l, line, at, c, row ? style_of(&columns[c], buf_str(&cell)) : STYLE_DIM,
                 row ? buf_str(&cell) : columns[c].title);
        at += l->width[c] + GAP;
    }
}

/* Describes the view in the title line: filter, order, number of rows out of sight. Placed
 * after the titles, or in place of the last one. */
static void
draw_view(const struct list *l)
{
    const struct top *t = l->t;
    auto_buf struct buf text = BUF_INIT;

    if (t->filter[0])
        buf_addf(&text, " only: %s ", t->filter);
    if (t->sort > 0)
        buf_addf(&text, " by %s ", top_sort_name(t->sort));
    if (t->n_shown > (size_t)(l->area.rows - 1) || t->cut)
        buf_addf(&text, " %zu-%zu of %s%zu ", t->first + 1,
                 t->first + (size_t)(l->area.rows - 1) < t->n_shown
                     ? t->first + (size_t)(l->area.rows - 1)
                     : t->n_shown,
                 t->cut ? "more than " : "", t->n_shown);
    int width = l->width[N_COLUMNS - 1], end = l->area.column + l->area.columns;
    int room = width - (int)strlen(columns[N_COLUMNS - 1].title);
    if (text_columns(buf_str(&text)) > room && text.len)
        grid_fill(l->g, l->area.row, end - width, width, STYLE_NONE, " ", ' ');
    grid_put_right(l->g, l->area.row, end, width, STYLE_BOLD, buf_str(&text));
}

static void
say_empty(const struct list *l)
{
    const struct top *t = l->t;

    if (l->area.rows > 1 && t->answer.len)
        grid_put(l->g, l->area.row + 1, l->area.column, l->area.columns, STYLE_DIM,
                 t->filter[0] ? "no job matches; / and Enter shows all again"
                              : "no jobs; 'berth submit' and 'berth run' queue some");
}

/* Scrolls only if the selected row would be out of view. */
static void
keep_in_view(struct top *t, int rows)
{
    size_t n = rows > 0 ? (size_t)rows : 1;

    t->list_rows = (int)n;
    if (t->at < t->first)
        t->first = t->at;
    if (t->at >= t->first + n)
        t->first = t->at - n + 1;
    if (t->first + n > t->n_shown)
        t->first = t->n_shown > n ? t->n_shown - n : 0;
}

void
top_draw_list(struct top *t, struct grid *g, struct area a)
{
    struct list l = {.t = t, .g = g, .area = a};
    struct row row;

    if (a.rows < 1)
        return;
    keep_in_view(t, a.rows - 1);
    measure(&l);
    draw_row(&l, a.row, NULL);
    draw_view(&l);
    for (int i = 0; i < a.rows - 1 && read_row(&l, i, &row); i++) {
        draw_row(&l, a.row + 1 + i, &row);
        if (t->first + (size_t)i == t->at)
            grid_reverse(g, a.row + 1 + i, a.column, a.columns);
    }
    if (t->n_shown == 0)
        say_empty(&l);
}
