/* Jobs files and what became of their lines. A file is a user and a path; the daemon never
 * opens it. Which jobs count for its lines is the `detached` mark: --fresh sets it, so old
 * results stay in the history and are no longer taken for this run's.
 *
 * What has been pruned of a file stays in `lines` for good, and the table `kept` counts what
 * that takes of each user, so that the daemon can refuse more of it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "store/store_priv.h"

int
store_file_find(struct store *s, uint32_t uid, const char *path, uint32_t *id, struct err *e)
{
    sqlite3_stmt *st = store_stmt(s, STMT_FILE_FIND, e);
    int rc;

    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, uid);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    rc = sqlite3_step(st);
    *id = rc == SQLITE_ROW ? (uint32_t)sqlite3_column_int64(st, 0) : 0;
    return store_read_end(s, st, rc, e);
}

int
store_file_id(struct store *s, uint32_t uid, const char *path, uint32_t *id, struct err *e)
{
    sqlite3_stmt *st;

    if (store_file_find(s, uid, path, id, e) < 0)
        return -1;
    if (*id != 0)
        return 0;
    st = store_write_stmt(s, STMT_FILE_ADD, e);
    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, uid);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    if (store_write(s, st, e) < 0)
        return -1;
    *id = (uint32_t)sqlite3_last_insert_rowid(s->db);
    return 0;
}

char *
store_file_path(struct store *s, uint32_t file, struct err *e)
{
    sqlite3_stmt *st = store_stmt(s, STMT_FILE_PATH, e);
    char *path = NULL;
    int rc;

    if (!st)
        return NULL;
    sqlite3_bind_int64(st, 1, file);
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        path = xstrdup((const char *)sqlite3_column_text(st, 0));
    else if (rc == SQLITE_DONE)
        err_set(e, ERR_FAILED, "jobs file %" PRIu32 " is not in the database", file);
    else
        store_read_failed(s, e);
    sqlite3_reset(st);
    return path;
}

/* An enumerator from the file, 0 when it cannot be one. */
static int
file_enum(sqlite3_stmt *st, int col, int bound)
{
    int v = sqlite3_column_int(st, col);

    return v >= 0 && v < bound ? v : 0;
}

/* Steps a bound statement over its keys. 1 when cb has ended the walk. */
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

/* Those that were pruned first: a job that took up the key since has a higher id. */
int
store_file_keys(struct store *s, uint32_t file, struct store_keys_at *at, store_key_cb cb,
                void *arg, struct err *e)
{
    sqlite3_stmt *st;

    if (!at->in_jobs) {
        int rc;

        if (!(st = store_stmt(s, STMT_LINES, e)))
            return -1;
        sqlite3_bind_int64(st, 1, file);
        sqlite3_bind_text(st, 2, at->key, -1, SQLITE_STATIC);
        if ((rc = file_walk(s, st, at, cb, arg, e)) != 0)
            return rc;
        at->in_jobs = true;
    }
    if (!(st = store_stmt(s, STMT_FILE_KEYS, e)))
        return -1;
    sqlite3_bind_int64(st, 1, file);
    sqlite3_bind_int64(st, 2, at->job);
    return file_walk(s, st, at, cb, arg, e);
}

/* The one number of a bound statement's only row; `none` where there is no row, -1 with e. */
static int64_t
one_number(struct store *s, sqlite3_stmt *st, int64_t none, struct err *e)
{
    int rc = sqlite3_step(st);
    int64_t n = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : none;

    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        store_read_failed(s, e);
        n = -1;
    }
    sqlite3_reset(st);
    return n;
}

int64_t
store_kept_bytes(struct store *s, uint32_t uid, struct err *e)
{
    sqlite3_stmt *st = store_stmt(s, STMT_KEPT, e);

    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, uid);
    return one_number(s, st, 0, e);
}

int64_t
store_kept_bytes_of_all(struct store *s, struct err *e)
{
    sqlite3_stmt *st = store_stmt(s, STMT_KEPT_ALL, e);

    return st ? one_number(s, st, 0, e) : -1;
}

int64_t
store_kept_above(struct store *s, int64_t bytes, struct err *e)
{
    sqlite3_stmt *st = store_stmt(s, STMT_KEPT_ABOVE, e);

    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, bytes);
    return one_number(s, st, STORE_NOBODY, e);
}

int
store_prune_files(struct store *s, uint32_t uid, uint32_t *at, int most, struct err *e)
{
    sqlite3_stmt *st = store_stmt(s, STMT_FILES_AHEAD, e);
    int64_t to;

    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, *at);
    sqlite3_bind_int(st, 2, most);
    if ((to = one_number(s, st, 0, e)) < 0)
        return -1;
    if (to == 0) {
        *at = 0;
        return 0;
    }
    if (!(st = store_write_stmt(s, STMT_FILES_PRUNE, e)))
        return -1;
    sqlite3_bind_int64(st, 1, *at);
    sqlite3_bind_int64(st, 2, to);
    sqlite3_bind_int64(st, 3, uid);
    if (store_write(s, st, e) < 0)
        return -1;
    *at = (uint32_t)to;
    return sqlite3_changes(s->db);
}

/* Of a bound statement with a maximum: whether it found them all. */
static int
took_most(struct store *s, sqlite3_stmt *st, int most, struct err *e)
{
    if (store_write(s, st, e) < 0)
        return -1;
    return sqlite3_changes(s->db) >= most;
}

/* The last of the file's next so many jobs behind that one; 0: there are none. -1 with e. */
static int64_t
file_ahead(struct store *s, uint32_t file, uint32_t at, int most, struct err *e)
{
    sqlite3_stmt *st = store_stmt(s, STMT_FILE_AHEAD, e);
    int64_t id;
    int rc;

    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, file);
    sqlite3_bind_int64(st, 2, at);
    sqlite3_bind_int(st, 3, most);
    rc = sqlite3_step(st);
    id = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : -1;
    if (rc != SQLITE_ROW)
        store_read_failed(s, e);
    sqlite3_reset(st);
    return id;
}

int
store_file_forget(struct store *s, uint32_t file, uint32_t *at, int most, struct err *e)
{
    int64_t to = file_ahead(s, file, *at, most, e);
    sqlite3_stmt *st;

    if (to < 0)
        return -1;
    if (to > 0) {
        if (!(st = store_write_stmt(s, STMT_FILE_FORGET, e)))
            return -1;
        sqlite3_bind_int64(st, 1, file);
        sqlite3_bind_int64(st, 2, *at);
        sqlite3_bind_int64(st, 3, to);
        sqlite3_bind_int(st, 4, JOB_COMPLETED);
        if (store_write(s, st, e) < 0)
            return -1;
        *at = (uint32_t)to;
        return 1;
    }
    if (!(st = store_write_stmt(s, STMT_LINES_FORGET, e)))
        return -1;
    sqlite3_bind_int64(st, 1, file);
    sqlite3_bind_int(st, 2, most);
    return took_most(s, st, most, e);
}

int
store_job_detach(struct store *s, uint32_t id, struct err *e)
{
    return store_write_number(s, STMT_JOB_DETACH, id, e);
}
