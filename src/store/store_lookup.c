/* Looks up one job by its fingerprint, its name, or its array and task. The daemon calls this
 * at submission and for dependencies; each look-up has an index. */
#include <inttypes.h>

#include "base/err.h"
#include "store/store_priv.h"
#include "store/store_row_fields.h"

/* Fills *out from the statement's row, if there is one. */
static int
lookup_one(struct store *s, enum stmt_id id, const struct bind *binds, struct found_job *out,
           struct err *e)
{
    sqlite3_stmt *st = store_bound(s, id, binds, e);
    int rc, state;

    *out = (struct found_job){0};
    if (!st)
        return -1;
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        state = sqlite3_column_int(st, 1);
        out->id = (uint32_t)sqlite3_column_int64(st, 0);
        out->state = state >= 0 && state < JOB_STATES ? (enum job_state)state : JOB_LOST;
    }
    return store_read_end(s, st, rc, e);
}

int
store_find_same(struct store *s, uint32_t uid, const char *fingerprint, struct found_job *out,
                struct err *e)
{
    return lookup_one(
        s, STMT_FIND_SAME,
        BINDS(bind_text(fingerprint), bind_number(uid), bind_number(JOB_COMPLETED)), out, e);
}

int
store_find_named(struct store *s, uint32_t uid, const char *name, struct found_job *out,
                 struct err *e)
{
    return lookup_one(s, STMT_FIND_NAMED, BINDS(bind_text(name), bind_number(uid)), out, e);
}

int
store_find_newest(struct store *s, uint32_t uid, struct found_job *out, struct err *e)
{
    return lookup_one(s, STMT_FIND_NEWEST, BINDS(bind_number(uid)), out, e);
}

int
store_find_task(struct store *s, uint32_t array, int32_t task, struct found_job *out,
                struct err *e)
{
    return lookup_one(s, STMT_FIND_TASK, BINDS(bind_number(array), bind_number(task)), out, e);
}

int
store_find_job(struct store *s, uint32_t id, struct found_job *out, struct err *e)
{
    return lookup_one(s, STMT_FIND_JOB, BINDS(bind_number(id)), out, e);
}

int
store_array_tasks(struct store *s, uint32_t id, struct task_set *out, struct err *e)
{
    sqlite3_stmt *st = store_bound(s, STMT_ARRAY_TASKS, BINDS(bind_number(id)), e);
    int rc, bad = 0;

    if (!st)
        return -1;
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW && row_read_set(st, 0, out) < 0)
        bad = err_set(e, ERR_FAILED, "the database is damaged: tasks of job %" PRIu32, id);
    else if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        bad = store_read_failed(s, e);
    sqlite3_reset(st);
    return bad ? -1 : 0;
}

int
store_tasks_walk(struct store *s, uint32_t array, int32_t first, int32_t last, store_task_cb cb,
                 void *arg, struct err *e)
{
    sqlite3_stmt *st = store_bound(
        s, STMT_TASKS, BINDS(bind_number(array), bind_number(first), bind_number(last)), e);
    int rc;

    if (!st)
        return -1;
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        int state = sqlite3_column_int(st, 2);
        if (state < 0 || state >= JOB_STATES)
            continue;
        if (cb((uint32_t)sqlite3_column_int64(st, 0), sqlite3_column_int(st, 1),
               (enum job_state)state, arg) != 0)
            break;
    }
    return store_read_end(s, st, rc, e);
}
