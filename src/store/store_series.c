/* What cards and attempts used over time, as the daemon encoded it (core/learn/series.h,
 * core/learn/trace.h), and each user's GPU time in all. Bytes that only the daemon understands
 * lie in tables of their own, so that no list of jobs reads past them. An attempt's go with its
 * job. */
#include "base/err.h"
#include "store/store_priv.h"

static int
series_put(struct store *s, sqlite3_stmt *st, int last, const void *bytes, size_t n,
           struct err *e)
{
    sqlite3_bind_blob64(st, last, n ? bytes : "", n, SQLITE_STATIC);
    return store_write(s, st, e);
}

static int
series_get(struct store *s, sqlite3_stmt *st, struct buf *out, struct err *e)
{
    int rc = sqlite3_step(st);

    buf_clear(out);
    if (rc == SQLITE_ROW)
        buf_add(out, sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0));
    return store_read_end(s, st, rc, e) < 0 ? -1 : rc == SQLITE_ROW;
}

int
store_trace_put(struct store *s, uint32_t job, int32_t attempt, const void *bytes, size_t n,
                struct err *e)
{
    sqlite3_stmt *st = store_write_stmt(s, STMT_TRACE_PUT, e);

    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, job);
    sqlite3_bind_int(st, 2, attempt);
    return series_put(s, st, 3, bytes, n, e);
}

int
store_trace_get(struct store *s, uint32_t job, int32_t attempt, struct buf *out, struct err *e)
{
    sqlite3_stmt *st = store_stmt(s, STMT_TRACE_GET, e);

    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, job);
    sqlite3_bind_int(st, 2, attempt);
    return series_get(s, st, out, e);
}

int
store_series_put(struct store *s, const char *uuid, const void *bytes, size_t n, struct err *e)
{
    sqlite3_stmt *st = store_write_stmt(s, STMT_SERIES_PUT, e);

    if (!st)
        return -1;
    sqlite3_bind_text(st, 1, uuid, -1, SQLITE_STATIC);
    return series_put(s, st, 2, bytes, n, e);
}

int
store_series_get(struct store *s, const char *uuid, struct buf *out, struct err *e)
{
    sqlite3_stmt *st = store_stmt(s, STMT_SERIES_GET, e);

    if (!st)
        return -1;
    sqlite3_bind_text(st, 1, uuid, -1, SQLITE_STATIC);
    return series_get(s, st, out, e);
}

int
store_total_put(struct store *s, uint32_t uid, int64_t gpu_ms, struct err *e)
{
    sqlite3_stmt *st = store_write_stmt(s, STMT_TOTAL_PUT, e);

    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, uid);
    sqlite3_bind_int64(st, 2, gpu_ms);
    return store_write(s, st, e);
}

int
store_totals_load(struct store *s, store_total_cb cb, void *arg, struct err *e)
{
    sqlite3_stmt *st = store_stmt(s, STMT_TOTALS, e);
    int rc;

    if (!st)
        return -1;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW)
        cb((uint32_t)sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1), arg);
    return store_read_end(s, st, rc, e);
}
