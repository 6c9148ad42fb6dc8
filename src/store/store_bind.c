/* Binding and running a statement in one call, for most writes to small tables and most reads
 * of a single value. Rows of jobs and attempts have their own binders (store_row.c). */
#include "base/buf.h"
#include "base/err.h"
#include "store/store_priv.h"

static void
bind_all(sqlite3_stmt *st, const struct bind *b)
{
    for (int i = 1; b->kind != BIND_END; b++, i++) {
        switch (b->kind) {
        case BIND_NUMBER:
            sqlite3_bind_int64(st, i, b->number);
            break;
        case BIND_REAL:
            sqlite3_bind_double(st, i, b->real);
            break;
        case BIND_TEXT:
            sqlite3_bind_text(st, i, b->bytes, (int)b->number, SQLITE_STATIC);
            break;
        case BIND_BYTES:
            sqlite3_bind_blob64(st, i, b->bytes, (sqlite3_uint64)b->number, SQLITE_STATIC);
            break;
        case BIND_END:
            break;
        }
    }
}

sqlite3_stmt *
store_bound(struct store *s, enum stmt_id id, const struct bind *binds, struct err *e)
{
    sqlite3_stmt *st = store_stmt(s, id, e);

    if (st)
        bind_all(st, binds);
    return st;
}

int
store_put(struct store *s, enum stmt_id id, const struct bind *binds, struct err *e)
{
    sqlite3_stmt *st = store_write_stmt(s, id, e);

    if (!st)
        return -1;
    bind_all(st, binds);
    return store_write(s, st, e);
}

/* Steps to the first row, which the caller reads and then resets. 1; 0: there is no row, and
 * the statement is reset; -1. */
static int
get_row(struct store *s, enum stmt_id id, const struct bind *binds, sqlite3_stmt **st,
        struct err *e)
{
    *st = store_bound(s, id, binds, e);
    if (!*st)
        return -1;
    int rc = sqlite3_step(*st);
    return rc == SQLITE_ROW ? 1 : store_read_end(s, *st, rc, e);
}

int
store_get_number(struct store *s, enum stmt_id id, const struct bind *binds, int64_t *out,
                 struct err *e)
{
    sqlite3_stmt *st;
    int rc = get_row(s, id, binds, &st, e);

    if (rc <= 0)
        return rc;
    *out = sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    return 1;
}

int
store_get_text(struct store *s, enum stmt_id id, const struct bind *binds, char **out,
               struct err *e)
{
    sqlite3_stmt *st;
    int rc = get_row(s, id, binds, &st, e);

    *out = NULL;
    if (rc <= 0)
        return rc;
    *out = xstrdup((const char *)sqlite3_column_text(st, 0));
    sqlite3_reset(st);
    return 1;
}

int
store_get_bytes(struct store *s, enum stmt_id id, const struct bind *binds, struct buf *out,
                struct err *e)
{
    sqlite3_stmt *st;
    int rc = get_row(s, id, binds, &st, e);

    buf_clear(out);
    if (rc <= 0)
        return rc;
    buf_add(out, sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0));
    sqlite3_reset(st);
    return 1;
}
