/* Selects columns and sorts rows; see queue_rows.h. Rows remain the text that the daemon sent:
 * for each, only its start and its sort keys are stored. */
#include "cli/table/queue_rows.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "wire/account.h"

#define CUT_MIN 3
#define CUT_MAX 1000

/* The position of a row in the answer, and its sort keys. */
struct sort_key {
    bool known, is_number;
    double number;
    const char *text;
    size_t len;
};

struct queue_place {
    const char *at;
    size_t n; /* position in the daemon's order, which breaks ties */
    struct sort_key key[QUEUE_SORT_MAX];
};

/* Parses the width in "reason:40". */
static int
read_cut(const char *text, size_t n, int *cut, struct err *e)
{
    auto_buf struct buf word = BUF_INIT;
    int64_t width;

    buf_add(&word, text, n);
    if (parse_int(buf_str(&word), CUT_MIN, CUT_MAX, &width, e) < 0)
        return err_prefix(e, "the width of a column, for example reason:40");
    *cut = (int)width;
    return 0;
}

static int
read_columns(const char *text, struct queue_format *f, struct err *e)
{
    for (const char *s = text; *s;) {
        size_t n = strcspn(s, ", ");
        size_t name = strcspn(s, ":, ");
        const struct queue_column *c = n ? queue_column_find(s, name, e) : NULL;

        if (n && !c)
            return -1;
        if (c && f->n == QUEUE_COLUMNS_MAX)
            return err_set(e, ERR_USAGE, "more than %d columns", QUEUE_COLUMNS_MAX);
        if (c && name < n && read_cut(s + name + 1, n - name - 1, &f->cut[f->n], e) < 0)
            return -1;
        if (c) {
            f->column[f->n] = c;
            f->shape[f->n++] = c->shape;
            f->needs |= FIELD_BIT(c->key) | c->more;
        }
        s += n + (s[n] != '\0');
    }
    if (f->n == 0)
        return err_set(e, ERR_USAGE,
                       "--format needs at least one column; for example: --format "
                       "id,user,state,reason:40");
    return 0;
}

static int
read_sort(const char *text, struct queue_format *f, struct err *e)
{
    for (const char *s = text; *s;) {
        size_t n = strcspn(s, ", ");
        bool down = *s == '-';
        const struct queue_column *c = n ? queue_column_find(s + down, n - down, e) : NULL;

        if (n && !c)
            return -1;
        if (c && f->n_sort == QUEUE_SORT_MAX)
            return err_set(e, ERR_USAGE, "--sort takes %d columns at most", QUEUE_SORT_MAX);
        if (c) {
            f->sort[f->n_sort].by = c->key;
            f->sort[f->n_sort++].down = down;
            f->needs |= FIELD_BIT(c->key);
        }
        s += n + (s[n] != '\0');
    }
    return 0;
}

int
queue_format_read(struct queue_format *f, const char *columns, const char *sort, uint64_t also,
                  struct err *e)
{
    *f = (struct queue_format){.needs = also};
    if (read_columns(columns, f, e) < 0 || (sort && read_sort(sort, f, e) < 0))
        return -1;
    for (int i = 0, n = 0; i < FIELDS; i++)
        f->at[i] = f->needs & FIELD_BIT(i) ? n++ : -1;
    return 0;
}

json_t *
queue_format_fields(const struct queue_format *f)
{
    json_t *list = json_array();

    for (int i = 0; i < FIELDS; i++) {
        if (f->at[i] >= 0)
            json_array_append_new(list, json_string(queue_field_names[i]));
    }
    return list;
}

/* Reads the fields, which come in the order of the request. */
static bool
read_row(const struct queue_format *f, struct scan *rows, struct row *row)
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
read_key(struct sort_key *k, const struct scan_value *v)
{
    int64_t at_us = queue_time_us(v);

    k->is_number = v->type == SCAN_NUMBER || at_us != 0;
    k->number = at_us ? (double)at_us : v->type == SCAN_NUMBER ? strtod(v->text, NULL) : 0;
    k->known = k->is_number || v->type == SCAN_STRING;
    k->text = v->text;
    k->len = v->len;
}

static bool
is_own_name(const struct scan_value *user)
{
    auto_account struct account account;

    return account_by_uid(geteuid(), &account) && scan_is(user, account.name);
}

static bool
is_same(const struct scan_value *a, const struct scan_value *b)
{
    return a->text && a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

/* Unknown values come last, in either direction. */
static int
compare_key(const struct sort_key *a, const struct sort_key *b, bool down)
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
    return down ? -order : order;
}

static int
compare_places(const void *x, const void *y, void *arg)
{
    const struct queue_place *a = x, *b = y;
    const struct queue_format *f = arg;

    for (int i = 0; i < f->n_sort; i++) {
        int order = compare_key(&a->key[i], &b->key[i], f->sort[i].down);

        if (order != 0)
            return order;
    }
    return (a->n > b->n) - (a->n < b->n);
}

void
queue_rows_find(struct queue_format *f, const char *text, size_t len, struct queue_rows *out)
{
    struct scan at = {text, text + len};
    struct scan_value first = {0};
    struct row row;

    *out = (struct queue_rows){.own = true, .end = text + len};
    if (!scan_open(&at) || !scan_find(&at, "rows") || !scan_open(&at))
        return;
    for (const char *begin = at.at; read_row(f, &at, &row); begin = at.at) {
        out->v = xgrow(out->v, out->n, &out->cap, sizeof *out->v);
        out->v[out->n] = (struct queue_place){.at = begin, .n = out->n};
        for (int i = 0; i < f->n_sort; i++)
            read_key(&out->v[out->n].key[i], &row.v[f->sort[i].by]);
        out->n++;
        if (!first.text)
            first = row.v[F_USER];
        out->own = out->own && is_same(&row.v[F_USER], &first);
    }
    out->own = out->own && (!first.text || is_own_name(&first));
    if (f->n_sort > 0 && out->n > 1)
        qsort_r(out->v, out->n, sizeof *out->v, compare_places, f);
}

bool
queue_rows_read(const struct queue_format *f, const struct queue_rows *rows, size_t i,
                struct row *row)
{
    struct scan at = {rows->v[i].at, rows->end};

    return read_row(f, &at, row);
}

void
queue_rows_free(struct queue_rows *rows)
{
    free(rows->v);
    *rows = (struct queue_rows){0};
}
