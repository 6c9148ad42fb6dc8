/* The attempts of jobs, one row each, kept as long as their job: what `show` and the reports
 * say about GPUs, peaks and endings. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "store/store_priv.h"

int
store_attempt_insert(struct store *s, uint32_t job, const struct attempt *attempt,
                     const char *const *uuids, struct err *e)
{
    static const char *const none[1] = {NULL};
    sqlite3_stmt *st;

    /* The column joins the ids with commas. */
    for (int i = 0; i < attempt->n_gpus; i++)
        if (strchr(uuids[i], ','))
            return store_failed(s, ERR_FAILED, e, "the GPU id '%s' holds a comma", uuids[i]);
    st = store_write_stmt(s, STMT_ATTEMPT_INSERT, e);
    if (!st)
        return -1;
    row_bind_attempt(st, job, attempt, attempt->n_gpus ? uuids : none);
    return store_write(s, st, e);
}

int
store_attempt_update(struct store *s, uint32_t job, const struct attempt *attempt,
                     struct err *e)
{
    sqlite3_stmt *st = store_write_stmt(s, STMT_ATTEMPT_UPDATE, e);

    if (!st)
        return -1;
    row_bind_attempt(st, job, attempt, NULL);
    if (store_write(s, st, e) < 0)
        return -1;
    if (sqlite3_changes(s->db) == 1)
        return 0;
    return store_failed(s, ERR_NO_JOB, e,
                        "attempt %" PRId32 " of job %" PRIu32 " is not in the database",
                        attempt->number, job);
}

int
store_attempts_load(struct store *s, uint32_t job, struct store_attempt **out, struct err *e)
{
    sqlite3_stmt *st = store_bound(s, STMT_ATTEMPTS, BINDS(bind_number(job)), e);
    struct store_attempt *list = NULL;
    int n = 0, rc;

    *out = NULL;
    if (!st)
        return -1;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        list = xrealloc(list, (unsigned long)(n + 1) * sizeof *list);
        if (row_read_attempt(st, 0, &list[n], e) < 0) {
            err_prefix(e, "job %" PRIu32, job);
            break;
        }
        n++;
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        store_read_failed(s, e);
    sqlite3_reset(st);
    if (rc != SQLITE_DONE) {
        store_attempts_free(list, n);
        return -1;
    }
    *out = list;
    return n;
}

void
store_attempts_free(struct store_attempt *attempts, int n)
{
    for (int i = 0; i < n; i++)
        row_attempt_clear(&attempts[i]);
    free(attempts);
}
