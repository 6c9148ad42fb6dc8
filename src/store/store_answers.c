/* Answers that are kept for a while: a client whose connection is lost before it has read one
 * asks again with the same token, and gets it instead of doing the same a second time. They
 * are written in the transaction that does what they report. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "store/store_priv.h"

/* A user's newest answers stay: a program asks for one thing at a time, and again within a
 * minute. Of those that name jobs by the thousand fewer do. */
#define KEPT        256
#define KEPT_LARGE  4
#define LARGE_BYTES 4096

char *
store_answer_get(struct store *s, uint32_t uid, const char *token)
{
    sqlite3_stmt *st = store_stmt(s, STMT_ANSWER_GET, NULL);
    char *text = NULL;

    if (!st)
        return NULL;
    sqlite3_bind_int64(st, 1, uid);
    sqlite3_bind_text(st, 2, token, -1, SQLITE_STATIC);
    if (sqlite3_step(st) == SQLITE_ROW)
        text = xstrdup((const char *)sqlite3_column_text(st, 0));
    sqlite3_reset(st);
    return text;
}

/* Keeps the user's newest n of those that have more bytes than that. */
static int
trim(struct store *s, uint32_t uid, int bytes, int n, struct err *e)
{
    sqlite3_stmt *st = store_write_stmt(s, STMT_ANSWERS_TRIM, e);

    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, uid);
    sqlite3_bind_int(st, 2, n);
    sqlite3_bind_int(st, 3, bytes);
    return store_write(s, st, e);
}

int
store_answer_put(struct store *s, uint32_t uid, const char *token, const char *json,
                 struct err *e)
{
    sqlite3_stmt *st = store_write_stmt(s, STMT_ANSWER_PUT, e);

    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, uid);
    sqlite3_bind_text(st, 2, token, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 3, json, -1, SQLITE_STATIC);
    if (store_write(s, st, e) < 0)
        return -1;
    if (strlen(json) > LARGE_BYTES && trim(s, uid, LARGE_BYTES, KEPT_LARGE, e) < 0)
        return -1;
    return trim(s, uid, 0, KEPT, e);
}
