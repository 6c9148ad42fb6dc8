/* Usage over time of GPUs and attempts, as encoded by the daemon (core/learn/series.h,
 * core/learn/trace.h), and each user's total GPU time. These blobs have their own tables, so
 * that listing jobs does not read past them. An attempt's trace is removed with its job. */
#include "base/err.h"
#include "store/store_priv.h"

int
store_trace_put(struct store *s, uint32_t job, int32_t attempt, const void *bytes, size_t n,
                struct err *e)
{
    return store_put(s, STMT_TRACE_PUT,
                     BINDS(bind_number(job), bind_number(attempt), bind_bytes(bytes, n)), e);
}

int
store_trace_get(struct store *s, uint32_t job, int32_t attempt, struct buf *out, struct err *e)
{
    return store_get_bytes(s, STMT_TRACE_GET, BINDS(bind_number(job), bind_number(attempt)),
                           out, e);
}

int
store_series_put(struct store *s, const char *uuid, const void *bytes, size_t n, struct err *e)
{
    return store_put(s, STMT_SERIES_PUT, BINDS(bind_text(uuid), bind_bytes(bytes, n)), e);
}

int
store_series_get(struct store *s, const char *uuid, struct buf *out, struct err *e)
{
    return store_get_bytes(s, STMT_SERIES_GET, BINDS(bind_text(uuid)), out, e);
}

int
store_total_put(struct store *s, uint32_t uid, int64_t gpu_ms, struct err *e)
{
    return store_put(s, STMT_TOTAL_PUT, BINDS(bind_number(uid), bind_number(gpu_ms)), e);
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
