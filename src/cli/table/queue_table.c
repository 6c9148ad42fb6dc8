/* The table of the queue. Each column names the fields that it needs and draws one cell from
 * them; the daemon is asked for the union of these fields (queue_rows.c). */
#include "cli/table/queue_table.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/ask/answer_pages.h"
#include "cli/ask/ask.h"
#include "cli/ask/connect.h"
#include "cli/common/cli.h"
#include "cli/table/gpu_table.h"
#include "cli/table/queue_columns.h"
#include "cli/table/queue_rows.h"
#include "cli/table/render.h"
#include "cli/table/table.h"
#include "wire/client.h"

#define WIDE_COLUMNS 100
#define ID_COLUMNS   16 /* an array may have many tasks to list */

static const char usual[] = "id,user,state,gpus,vram,time,reason,expected,command";
static const char narrow[] = "id,user,state,gpus,vram,note,command";

static void
draw_row(const struct queue_format *f, const struct row *row, struct table *t, struct buf *cell)
{
    for (int c = 0; c < f->n; c++) {
        enum style style = STYLE_NONE;

        buf_clear(cell);
        f->column[c]->draw(row, cell);
        if (f->column[c]->key == F_STATE)
            style = render_state_style(buf_str(cell));
        table_cell(t, style, buf_str(cell));
    }
}

/* Hides the user column if all jobs belong to one user. */
static void
hide_user(const struct queue_format *f, struct table *t)
{
    for (int c = 0; c < f->n; c++) {
        if (f->column[c]->key == F_USER)
            table_hide(t, c);
    }
}

/* chosen: the user chose the columns and their widths. */
static struct table *
draw_rows(const struct queue_format *f, const struct queue_rows *rows, bool chosen)
{
    struct table *t = table_new(f->shape, f->n);
    auto_buf struct buf cell = BUF_INIT;
    struct row row;

    for (int c = 0; c < f->n; c++)
        table_cut(t, c, !chosen && f->column[c]->key == F_ID ? ID_COLUMNS : f->cut[c]);
    for (size_t i = 0; i < rows->n; i++) {
        if (queue_rows_read(f, rows, i, &row))
            draw_row(f, &row, t, &cell);
    }
    return t;
}

/* Gets the answer, which is in the connection's buffer or in `pages`. */
static int
ask(struct client *c, json_t *params, const struct queue_view *view, struct buf *pages,
    const char **text, size_t *len, struct err *e)
{
    if (!view->past)
        return client_call_raw(c, "jobs", params, text, len, e);
    if (pages_ask(c, params, view->limit, pages, e) < 0)
        return -1;
    *text = buf_str(pages);
    *len = pages->len;
    return 0;
}

int
queue_table_add(struct client *c, json_t *params, const struct queue_view *view,
                const struct term *term, struct buf *out, size_t *n, struct err *e)
{
    bool narrow_term = term->columns > 0 && term->columns < WIDE_COLUMNS;
    const char *columns = view->format  ? view->format
                          : view->usual ? view->usual
                          : narrow_term ? narrow
                                        : usual;
    struct queue_format f;
    struct queue_rows rows;
    auto_buf struct buf pages = BUF_INIT;
    const char *text;
    size_t len;

    if (queue_format_read(&f, columns, view->sort, 0, e) < 0) {
        json_decref(params);
        return -1;
    }
    json_object_set_new(params, "fields", queue_format_fields(&f));
    if (ask(c, params, view, &pages, &text, &len, e) < 0)
        return -1;
    queue_rows_find(&f, text, len, &rows);
    auto_table struct table *t = draw_rows(&f, &rows, view->format != NULL);
    if (view->format)
        table_show_all(t);
    else if (rows.own)
        hide_user(&f, t);
    queue_rows_free(&rows);
    *n = table_rows(t);
    if (view->no_header)
        table_no_header(t);
    table_print(t, term, out);
    return 0;
}

/* An empty table may be due to a typo: says if the name is unknown. */
static void
say_unknown(struct client *c, const struct queue_view *view)
{
    auto_json json_t *result = NULL;

    ask_say_no_user(view->user);
    if (view->gpus && client_call(c, "gpus", NULL, &result, NULL) == 0)
        gpu_table_say_missing(json_object_get(result, "gpus"), view->gpus);
}

int
queue_table_print(const struct cli *cli, json_t *params, const struct queue_view *view)
{
    struct err e = {0};
    auto_client struct client *c = connect_kept(cli, &e);
    auto_buf struct buf out = BUF_INIT;
    struct term term = term_of_stdout();
    size_t n = 0;

    if (!c) {
        json_decref(params);
        return cli_fail(&e);
    }
    if (queue_table_add(c, params, view, &term, &out, &n, &e) < 0)
        return cli_fail(&e);
    if (n == 0)
        say_unknown(c, view);
    if (n == 0 && term.tty) {
        cli_say("%s", view->nothing ? view->nothing
                                    : "no jobs; 'berth queue --all' shows those that have "
                                      "ended");
        return 0;
    }
    return cli_put(&out);
}
