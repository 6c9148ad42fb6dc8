/* The queue as a table. Each column names the fields of a job it needs and draws one cell
 * from them; the union of the fields is what the daemon is asked for. */
#include "cli/queue_table.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/connect.h"
#include "cli/queue_columns.h"
#include "cli/render.h"
#include "cli/scan.h"
#include "cli/table.h"
#include "wire/client.h"

static const char usual[] = "id,user,state,gpus,vram,time,reason,expected,command";

struct format {
    const struct queue_column *column[QUEUE_COLUMNS_MAX];
    struct column shape[QUEUE_COLUMNS_MAX];
    int n;
    uint64_t needs;
    int at[FIELDS]; /* where a field stands in a row; -1: not asked for */
};

static int
read_format(const char *text, struct format *f, struct err *e)
{
    *f = (struct format){0};
    for (const char *s = text; *s;) {
        size_t n = strcspn(s, ", ");
        const struct queue_column *c = n ? queue_column_find(s, n, e) : NULL;

        if (n && !c)
            return -1;
        if (c && f->n < QUEUE_COLUMNS_MAX) {
            f->column[f->n] = c;
            f->shape[f->n++] = c->shape;
            f->needs |= FIELD_BIT(c->key) | c->more;
        }
        s += n + (s[n] != '\0');
    }
    if (f->n == 0)
        return err_set(e, ERR_USAGE, "--format names no column; for example: --format %s",
                       usual);
    return 0;
}

static json_t *
list_fields(struct format *f)
{
    json_t *list = json_array();

    for (int i = 0; i < FIELDS; i++) {
        f->at[i] = -1;
        if (f->needs & FIELD_BIT(i)) {
            f->at[i] = (int)json_array_size(list);
            json_array_append_new(list, json_string(queue_field_names[i]));
        }
    }
    return list;
}

/* The fields come in the order in which they were asked for. */
static bool
read_row(const struct format *f, struct scan *rows, struct row *row)
{
    struct scan_value more;

    if (!scan_open(rows))
        return false;
    for (int i = 0; i < FIELDS; i++) {
        row->v[i] = (struct scan_value){0};
        if (f->at[i] >= 0)
            scan_next(rows, &row->v[i]);
    }
    while (scan_next(rows, &more))
        continue;
    scan_close(rows);
    return true;
}

static void
draw_row(const struct format *f, const struct row *row, struct table *t, struct buf *cell)
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

/* Where a row stands in the answer, and what it is sorted by. */
struct place {
    const char *at;
    size_t n; /* in the daemon's order, which decides between equals */
    bool known, is_number;
    double number;
    const char *text;
    size_t len;
};

struct rows {
    struct place *v; /* owned */
    size_t n, cap;
    bool own; /* all are the caller's */
};

static void
read_key(struct place *p, const struct scan_value *v)
{
    int64_t at_us = queue_time_us(v);

    p->is_number = v->type == SCAN_NUMBER || at_us != 0;
    p->number = at_us ? (double)at_us : v->type == SCAN_NUMBER ? strtod(v->text, NULL) : 0;
    p->known = p->is_number || v->type == SCAN_STRING;
    p->text = v->text;
    p->len = v->len;
}

static bool
is_own_name(const struct scan_value *user)
{
    const struct passwd *pw = getpwuid(geteuid());

    return pw && scan_is(user, pw->pw_name);
}

/* Finds where the rows are; each is read again when it is drawn. sort may be NULL. */
static void
find_rows(const struct format *f, struct scan *rows, const struct queue_column *sort,
          struct rows *out)
{
    struct scan_value first = {0};
    struct row row;

    *out = (struct rows){.own = true};
    for (const char *at = rows->at; read_row(f, rows, &row); at = rows->at) {
        const struct scan_value *user = &row.v[F_USER];

        if (out->n == out->cap) {
            out->cap = out->cap ? out->cap * 2 : 64;
            out->v = xrealloc(out->v, out->cap * sizeof *out->v);
        }
        out->v[out->n] = (struct place){.at = at, .n = out->n};
        if (sort)
            read_key(&out->v[out->n], &row.v[sort->key]);
        out->n++;
        if (!first.text)
            first = *user;
        out->own = out->own && user->text && user->len == first.len &&
                   memcmp(user->text, first.text, user->len) == 0;
    }
    out->own = out->own && (!first.text || is_own_name(&first));
}

/* What is not known comes last, whichever way. */
static int
compare(const struct place *a, const struct place *b, bool down)
{
    int order = 0;

    if (a->known != b->known)
        return a->known ? -1 : 1;
    if (a->known && a->is_number && b->is_number) {
        order = (a->number > b->number) - (a->number < b->number);
    } else if (a->known) {
        size_t len = a->len < b->len ? a->len : b->len;
        order = memcmp(a->text, b->text, len);
        if (order == 0)
            order = (a->len > b->len) - (a->len < b->len);
    }
    if (order == 0)
        return (a->n > b->n) - (a->n < b->n);
    return down ? -order : order;
}

static int
compare_up(const void *a, const void *b)
{
    return compare(a, b, false);
}

static int
compare_down(const void *a, const void *b)
{
    return compare(a, b, true);
}

static void
draw_rows(const struct format *f, const struct rows *rows, const char *end, struct table *t)
{
    auto_buf struct buf cell = BUF_INIT;
    struct row row;

    for (size_t i = 0; i < rows->n; i++) {
        struct scan at = {rows->v[i].at, end};

        if (read_row(f, &at, &row))
            draw_row(f, &row, t, &cell);
    }
}

/* One user's queue needs no column that repeats the name. */
static void
hide_user(const struct format *f, struct table *t)
{
    for (int c = 0; c < f->n; c++) {
        if (f->column[c]->key == F_USER)
            table_hide(t, c);
    }
}

/* "name" or "-name", the largest first. NULL with e empty: not to be sorted. */
static const struct queue_column *
read_sort(const char *sort, bool *down, struct format *f, struct err *e)
{
    const struct queue_column *c;

    *down = sort && sort[0] == '-';
    if (!sort)
        return NULL;
    c = queue_column_find(sort + *down, strlen(sort + *down), e);
    if (c)
        f->needs |= FIELD_BIT(c->key);
    return c;
}

int
queue_table_add(struct client *c, json_t *params, const struct queue_view *view,
                const struct term *term, struct buf *out, size_t *n, struct err *e)
{
    struct format f;
    auto_table struct table *t = NULL;
    const struct queue_column *sort = NULL;
    const char *text;
    bool down = false;
    size_t len;
    struct scan at;
    struct rows rows = {0};

    if (read_format(view->format  ? view->format
                    : view->usual ? view->usual
                                  : usual,
                    &f, e) < 0 ||
        (view->sort && !(sort = read_sort(view->sort, &down, &f, e)))) {
        json_decref(params);
        return -1;
    }
    json_object_set_new(params, "fields", list_fields(&f));
    if (client_call_raw(c, "jobs", params, &text, &len, e) < 0)
        return -1;
    at = (struct scan){text, text + len};
    t = table_new(f.shape, f.n);
    if (scan_open(&at) && scan_find(&at, "rows") && scan_open(&at))
        find_rows(&f, &at, sort, &rows);
    if (sort && rows.n > 1)
        qsort(rows.v, rows.n, sizeof *rows.v, down ? compare_down : compare_up);
    draw_rows(&f, &rows, text + len, t);
    if (rows.own && !view->format)
        hide_user(&f, t);
    free(rows.v);
    *n = table_rows(t);
    table_print(t, term, out);
    return 0;
}

int
queue_table_print(const struct cli *cli, json_t *params, const struct queue_view *view)
{
    struct err e = {0};
    auto_client struct client *c = connect_daemon(cli, &e);
    auto_buf struct buf out = BUF_INIT;
    struct term term = term_of_stdout();
    size_t n = 0;

    if (!c) {
        json_decref(params);
        return cli_fail(&e);
    }
    if (queue_table_add(c, params, view, &term, &out, &n, &e) < 0)
        return cli_fail(&e);
    if (n == 0 && term.tty) {
        cli_say("%s", view->nothing ? view->nothing
                                    : "no jobs; 'berth queue --all' shows those that have "
                                      "ended");
        return 0;
    }
    return cli_put(&out);
}
