/* What a long request that changes jobs has done so far, a row for each piece of it. A daemon
 * that comes after one that died in between reads them when the request is asked again; they go
 * with the request. Each row is written in the transaction of its piece. */
#include "base/err.h"
#include "store/store_priv.h"

int
store_progress_add(struct store *s, uint32_t uid, const char *token,
                   const struct store_piece *piece, struct err *e)
{
    sqlite3_stmt *st = store_write_stmt(s, STMT_PROGRESS_ADD, e);

    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, uid);
    sqlite3_bind_text(st, 2, token, -1, SQLITE_STATIC);
    sqlite3_bind_int(st, 3, piece->number);
    sqlite3_bind_int64(st, 4, piece->at_us);
    sqlite3_bind_text(st, 5, piece->text, -1, SQLITE_STATIC);
    return store_write(s, st, e);
}

char *
store_progress_get(struct store *s, uint32_t uid, const char *token, int number)
{
    sqlite3_stmt *st = store_stmt(s, STMT_PROGRESS_GET, NULL);
    char *text = NULL;

    if (!st)
        return NULL;
    sqlite3_bind_int64(st, 1, uid);
    sqlite3_bind_text(st, 2, token, -1, SQLITE_STATIC);
    sqlite3_bind_int(st, 3, number);
    if (sqlite3_step(st) == SQLITE_ROW)
        text = xstrdup((const char *)sqlite3_column_text(st, 0));
    sqlite3_reset(st);
    return text;
}

int
store_progress_drop(struct store *s, uint32_t uid, const char *token, struct err *e)
{
    sqlite3_stmt *st = store_write_stmt(s, STMT_PROGRESS_DROP, e);

    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, uid);
    sqlite3_bind_text(st, 2, token, -1, SQLITE_STATIC);
    return store_write(s, st, e);
}

int
store_progress_trim(struct store *s, int64_t before_us, struct err *e)
{
    return store_write_number(s, STMT_PROGRESS_TRIM, before_us, e);
}
