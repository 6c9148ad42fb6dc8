/* The last two completed runs of every command, by user and fingerprint: what the expectation
 * of the next run is made from. One row each, the newest RUNS_KEPT of them. */
#include "store/store_priv.h"

#define RUNS_KEPT 100000

int
store_runs_put(struct store *s, const struct store_runs *r, struct err *e)
{
    sqlite3_stmt *st = store_write_stmt(s, STMT_RUNS_PUT, e);

    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, r->uid);
    sqlite3_bind_text(st, 2, r->fingerprint, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 3, r->last_ms);
    sqlite3_bind_int64(st, 4, r->before_ms);
    sqlite3_bind_int64(st, 5, r->ended_us);
    return store_write(s, st, e);
}

int
store_runs_load(struct store *s, store_runs_cb cb, void *arg, struct err *e)
{
    sqlite3_stmt *st = store_stmt(s, STMT_RUNS, e);
    int rc;

    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, RUNS_KEPT);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct store_runs r = {.uid = (uint32_t)sqlite3_column_int64(st, 0),
                               .fingerprint = (const char *)sqlite3_column_text(st, 1),
                               .last_ms = sqlite3_column_int64(st, 2),
                               .before_ms = sqlite3_column_int64(st, 3),
                               .ended_us = sqlite3_column_int64(st, 4)};
        if (r.fingerprint)
            cb(&r, arg);
    }
    return store_read_end(s, st, rc, e);
}

int
store_runs_trim(struct store *s, struct err *e)
{
    return store_write_number(s, STMT_RUNS_TRIM, RUNS_KEPT, e);
}
