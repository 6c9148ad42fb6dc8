/* The last two completed runs of every command, one row per user and fingerprint: the basis
 * for estimates of run time. The newest RUNS_KEPT rows are kept. */
#include "store/store_priv.h"

#define RUNS_KEPT 100000

int
store_runs_put(struct store *s, const struct store_runs *r, struct err *e)
{
    return store_put(s, STMT_RUNS_PUT,
                     BINDS(bind_number(r->uid), bind_text(r->fingerprint),
                           bind_number(r->last_ms), bind_number(r->before_ms),
                           bind_number(r->ended_us)),
                     e);
}

int
store_runs_load(struct store *s, store_runs_cb cb, void *arg, struct err *e)
{
    sqlite3_stmt *st = store_bound(s, STMT_RUNS, BINDS(bind_number(RUNS_KEPT)), e);
    int rc;

    if (!st)
        return -1;
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
    return store_put(s, STMT_RUNS_TRIM, BINDS(bind_number(RUNS_KEPT)), e);
}
