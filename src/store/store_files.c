/* Jobs files and the outcomes of their lines. A file is a user and a path; the daemon never
 * opens it. The `detached` column says which jobs no longer count for their lines: --fresh
 * sets it, so old results stay in the history but are not reused for the new run.
 *
 * The outcomes of pruned jobs stay in `lines` for good. The table `kept` counts what they take
 * per user, so that the daemon can refuse more. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "store/store_priv.h"

int
store_file_find(struct store *s, uint32_t uid, const char *path, uint32_t *id, struct err *e)
{
    int64_t found = 0;
    int rc = store_get_number(s, STMT_FILE_FIND, BINDS(bind_number(uid), bind_text(path)),
                              &found, e);

    *id = (uint32_t)found;
    return rc < 0 ? -1 : 0;
}

int
store_file_id(struct store *s, uint32_t uid, const char *path, uint32_t *id, struct err *e)
{
    if (store_file_find(s, uid, path, id, e) < 0)
        return -1;
    if (*id != 0)
        return 0;
    if (store_put(s, STMT_FILE_ADD, BINDS(bind_number(uid), bind_text(path)), e) < 0)
        return -1;
    *id = (uint32_t)sqlite3_last_insert_rowid(s->db);
    return 0;
}

char *
store_file_path(struct store *s, uint32_t file, struct err *e)
{
    char *path;

    if (store_get_text(s, STMT_FILE_PATH, BINDS(bind_number(file)), &path, e) == 0)
        err_set(e, ERR_FAILED, "jobs file %" PRIu32 " is not in the database", file);
    return path;
}

/* An enumerator from a column; 0 if out of range. */
static int
file_enum(sqlite3_stmt *st, int col, int bound)
{
    int v = sqlite3_column_int(st, col);

    return v >= 0 && v < bound ? v : 0;
}

/* Steps a bound statement over its keys. Returns 1 if cb ended the walk. */
static int
file_walk(struct store *s, sqlite3_stmt *st, struct store_keys_at *at, store_key_cb cb,
          void *arg, struct err *e)
{
    struct store_key key;
    int rc;

    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        key.key = (const char *)sqlite3_column_text(st, 0);
        key.job = (uint32_t)sqlite3_column_int64(st, 1);
        if (at->in_jobs)
            at->job = key.job;
        if (!key.key)
            continue;
        if (!at->in_jobs)
            snprintf(at->key, sizeof at->key, "%s", key.key);
        key.line = sqlite3_column_int(st, 2);
        key.state = (enum job_state)file_enum(st, 3, JOB_STATES);
        key.outcome = (enum outcome)file_enum(st, 4, OUTCOMES);
        key.code = sqlite3_column_int(st, 5);
        key.signal = sqlite3_column_int(st, 6);
        if (cb(&key, arg) != 0)
            break;
    }
    return store_read_end(s, st, rc, e) < 0 ? -1 : rc == SQLITE_ROW;
}

/* Pruned jobs come first: a job that reused the key since then has a higher id. */
int
store_file_keys(struct store *s, uint32_t file, struct store_keys_at *at, store_key_cb cb,
                void *arg, struct err *e)
{
    sqlite3_stmt *st;

    if (!at->in_jobs) {
        int rc;

        st = store_bound(s, STMT_LINES, BINDS(bind_number(file), bind_text(at->key)), e);
        if (!st)
            return -1;
        if ((rc = file_walk(s, st, at, cb, arg, e)) != 0)
            return rc;
        at->in_jobs = true;
    }
    st = store_bound(s, STMT_FILE_KEYS, BINDS(bind_number(file), bind_number(at->job)), e);
    return st ? file_walk(s, st, at, cb, arg, e) : -1;
}

/* The number in a statement's only row; `none` if there is no row, -1 with e. */
static int64_t
one_number(struct store *s, enum stmt_id id, const struct bind *binds, int64_t none,
           struct err *e)
{
    return store_get_number(s, id, binds, &none, e) < 0 ? -1 : none;
}

int64_t
store_kept_bytes(struct store *s, uint32_t uid, struct err *e)
{
    return one_number(s, STMT_KEPT, BINDS(bind_number(uid)), 0, e);
}

int64_t
store_kept_bytes_of_all(struct store *s, struct err *e)
{
    return one_number(s, STMT_KEPT_ALL, BINDS_NONE, 0, e);
}

int64_t
store_kept_above(struct store *s, int64_t bytes, struct err *e)
{
    return one_number(s, STMT_KEPT_ABOVE, BINDS(bind_number(bytes)), STORE_NOBODY, e);
}

int
store_prune_files(struct store *s, uint32_t uid, uint32_t *at, int most, struct err *e)
{
    int64_t to =
        one_number(s, STMT_FILES_AHEAD, BINDS(bind_number(*at), bind_number(most)), 0, e);

    if (to < 0)
        return -1;
    if (to == 0) {
        *at = 0;
        return 0;
    }
    if (store_put(s, STMT_FILES_PRUNE,
                  BINDS(bind_number(*at), bind_number(to), bind_number(uid)), e) < 0)
        return -1;
    *at = (uint32_t)to;
    return sqlite3_changes(s->db);
}

/* The last of the file's next `most` jobs after `at`; 0: there are none. -1 with e. */
static int64_t
file_ahead(struct store *s, uint32_t file, uint32_t at, int most, struct err *e)
{
    return one_number(s, STMT_FILE_AHEAD,
                      BINDS(bind_number(file), bind_number(at), bind_number(most)), 0, e);
}

int
store_file_forget(struct store *s, uint32_t file, uint32_t *at, int most, struct err *e)
{
    int64_t to = file_ahead(s, file, *at, most, e);

    if (to < 0)
        return -1;
    if (to > 0) {
        if (store_put(s, STMT_FILE_FORGET,
                      BINDS(bind_number(file), bind_number(*at), bind_number(to),
                            bind_number(JOB_COMPLETED)),
                      e) < 0)
            return -1;
        *at = (uint32_t)to;
        return 1;
    }
    if (store_put(s, STMT_LINES_FORGET, BINDS(bind_number(file), bind_number(most)), e) < 0)
        return -1;
    return sqlite3_changes(s->db) >= most; /* else there are no more */
}

int
store_job_detach(struct store *s, uint32_t id, struct err *e)
{
    return store_put(s, STMT_JOB_DETACH, BINDS(bind_number(id)), e);
}
