/* Pruning: removes old ended jobs with their attempts, and environments without a job. A job
 * that still counts for a line of a jobs file leaves a row in `lines`, so that running the
 * file again a year later starts nothing twice. The daemon calls this when idle, a bounded
 * number at a time. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "store/store_priv.h"

#define SAMPLE_JOBS 1000      /* compared to rank users: some milliseconds */
#define LOOK_JOBS   5000      /* of all users, examined in one call */
#define ENV_BYTES   (4 << 20) /* removed in one call: SQLite visits all their pages */

/* Lists the jobs to remove: by id, which is the order of submission, up to the first job
 * submitted too recently to have ended long ago. */
static int
prune_list(struct store *s, int64_t before_us, uint32_t below_id, uint32_t *ids, int max,
           struct err *e)
{
    sqlite3_stmt *st = store_bound(
        s, STMT_PRUNE_LIST,
        BINDS(bind_number(JOB_COMPLETED), bind_number(below_id), bind_number(before_us)), e);
    int n = 0, rc = SQLITE_DONE;

    if (!st)
        return -1;
    while (n < max && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        uint32_t id = (uint32_t)sqlite3_column_int64(st, 0);
        if (id >= below_id && sqlite3_column_int64(st, 2) >= before_us)
            break;
        if (sqlite3_column_int(st, 1) >= JOB_COMPLETED && !sqlite3_column_int(st, 4) &&
            (id < below_id || sqlite3_column_int64(st, 3) < before_us))
            ids[n++] = id;
    }
    return store_read_end(s, st, rc, e) < 0 ? -1 : n;
}

static int
remove_jobs(struct store *s, const uint32_t *ids, int n, struct err *e)
{
    static const enum stmt_id steps[] = {STMT_PRUNE_LINE, STMT_PRUNE_TRACES,
                                         STMT_PRUNE_ATTEMPTS, STMT_PRUNE_JOB};

    for (int i = 0; i < n; i++) {
        for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
            if (store_put(s, steps[k], BINDS(bind_number(ids[i])), e) < 0)
                return -1;
        }
    }
    return n;
}

int
store_prune(struct store *s, int64_t before_us, uint32_t below_id, int max, struct err *e)
{
    auto_free uint32_t *ids = xcalloc((unsigned long)max, sizeof *ids);

    return remove_jobs(s, ids, prune_list(s, before_us, below_id, ids, max, e), e);
}

int
store_largest_user(struct store *s, uint32_t *uid, struct err *e)
{
    int64_t found = 0;
    int rc = store_get_number(s, STMT_LARGEST_USER,
                              BINDS(bind_number(JOB_COMPLETED), bind_number(SAMPLE_JOBS)),
                              &found, e);

    if (rc > 0)
        *uid = (uint32_t)found;
    return rc;
}

int
store_prune_user(struct store *s, uint32_t uid, uint32_t *at, int max, struct err *e)
{
    auto_free uint32_t *ids = xcalloc((unsigned long)max, sizeof *ids);
    sqlite3_stmt *st =
        store_bound(s, STMT_PRUNE_OF, BINDS(bind_number(*at), bind_number(JOB_COMPLETED)), e);
    int n = 0, rc = SQLITE_ROW;

    if (!st)
        return -1;
    for (int i = 0; n < max && i < LOOK_JOBS && (rc = sqlite3_step(st)) == SQLITE_ROW; i++) {
        *at = (uint32_t)sqlite3_column_int64(st, 0);
        if (sqlite3_column_int64(st, 1) == uid && sqlite3_column_int(st, 2) >= JOB_COMPLETED &&
            !sqlite3_column_int(st, 3))
            ids[n++] = *at;
    }
    if (rc == SQLITE_DONE)
        *at = 0;
    return store_read_end(s, st, rc, e) < 0 ? -1 : remove_jobs(s, ids, n, e);
}

/* Lists the environments to remove after *at, as store_prune_envs. */
static int
list_envs(struct store *s, int64_t *at, int most, int64_t *ids, struct err *e)
{
    sqlite3_stmt *st = store_bound(s, STMT_PRUNE_ENVS, BINDS(bind_number(*at)), e);
    int64_t bytes = 0;
    int n = 0, rc = SQLITE_ROW;

    if (!st)
        return -1;
    for (int i = 0; i < most && bytes < ENV_BYTES && (rc = sqlite3_step(st)) == SQLITE_ROW;
         i++) {
        *at = sqlite3_column_int64(st, 0);
        if (sqlite3_column_int(st, 2))
            continue;
        ids[n++] = *at;
        bytes += sqlite3_column_int64(st, 1);
    }
    if (rc == SQLITE_DONE)
        *at = 0;
    return store_read_end(s, st, rc, e) < 0 ? -1 : n;
}

int
store_prune_envs(struct store *s, int64_t *at, int most, struct err *e)
{
    auto_free int64_t *ids = xcalloc((size_t)most, sizeof *ids);
    int n = list_envs(s, at, most, ids, e);

    s->env_id = 0; /* the remembered environment may be among them */
    for (int i = 0; i < n; i++) {
        if (store_put(s, STMT_PRUNE_ENV, BINDS(bind_number(ids[i])), e) < 0)
            return -1;
    }
    return n;
}
