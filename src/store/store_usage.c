/* Each user's usage as of some moment: written with the end that is charged, read once at
 * start. core/plan/fair.h defines its meaning. */
#include "base/err.h"
#include "store/store_priv.h"

int
store_usage_set(struct store *s, uint32_t uid, double gpu_seconds, int64_t at_us, struct err *e)
{
    return store_put(s, STMT_USAGE_SET,
                     BINDS(bind_number(uid), bind_real(gpu_seconds), bind_number(at_us)), e);
}

int
store_usage_load(struct store *s, store_usage_cb cb, void *arg, struct err *e)
{
    sqlite3_stmt *st = store_stmt(s, STMT_USAGE, e);
    int rc;

    if (!st)
        return -1;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW)
        cb((uint32_t)sqlite3_column_int64(st, 0), sqlite3_column_double(st, 1),
           sqlite3_column_int64(st, 2), arg);
    return store_read_end(s, st, rc, e);
}
