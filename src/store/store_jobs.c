/* Jobs in the database: inserted, updated, loaded one by one or walked. A walk holds one row
 * at a time, so a history of any length costs the daemon no memory. */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "store/store_priv.h"

int
store_job_insert(struct store *s, const struct job *job, struct err *e)
{
    sqlite3_stmt *st = store_write_stmt(s, STMT_JOB_INSERT, e);

    if (!st)
        return -1;
    counter_reach(&s->job_id, job->id);
    counter_reach(&s->order, job->order);
    row_bind_new_job(st, job, s->inserted);
    return store_write(s, st, e);
}

/* A row that an update did not find is a caller's mistake; it fails the turn. */
static int
jobs_expect_one(struct store *s, uint32_t id, struct err *e)
{
    if (sqlite3_changes(s->db) == 1)
        return 0;
    return store_failed(s, ERR_NO_JOB, e, "job %" PRIu32 " is not in the database", id);
}

int
store_job_update(struct store *s, const struct job *job, struct err *e)
{
    sqlite3_stmt *st = store_write_stmt(s, STMT_JOB_UPDATE, e);

    if (!st)
        return -1;
    counter_reach(&s->order, job->order);
    row_bind_job(st, job);
    if (store_write(s, st, e) < 0)
        return -1;
    return jobs_expect_one(s, job->id, e);
}

/* The row's job with its last attempt, whose UUIDs go to *last (to be cleared). */
static struct job *
jobs_read(sqlite3_stmt *st, struct store_attempt *last, struct err *e)
{
    struct job *job = job_new();
    int first = row_job_count();
    bool ok = row_read_job(st, job, e) == 0;
    bool has_run = ok && sqlite3_column_type(st, first) != SQLITE_NULL;

    if (!ok || (has_run && row_read_attempt(st, first, last, e) < 0)) {
        job_free(job);
        return NULL;
    }
    if (has_run) {
        job->run = xmalloc(sizeof *job->run);
        *job->run = last->attempt;
    }
    return job;
}

/* Hands the row to cb. Its result, or -1 with e filled and *bad set. */
static int
jobs_visit(sqlite3_stmt *st, bool keep, store_job_cb cb, void *arg, bool *bad, struct err *e)
{
    struct store_attempt last;
    struct job *job;
    int rc;

    memset(last.uuids, 0, sizeof last.uuids);
    job = jobs_read(st, &last, e);
    if (!job) {
        *bad = true;
        return -1;
    }
    rc = cb(job, job->run ? (const char *const *)last.uuids : NULL, arg);
    row_attempt_clear(&last);
    if (!keep)
        job_free(job);
    return rc;
}

/* Steps a bound statement over its jobs, at most *left of them (-1: all). *stop is set when
 * cb ended the walk. */
static int
jobs_walk(struct store *s, sqlite3_stmt *st, bool keep, int64_t *left, bool *stop,
          store_job_cb cb, void *arg, struct err *e)
{
    bool bad = false;
    int rc = SQLITE_DONE;

    while (*left != 0 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        if (*left > 0)
            --*left;
        if (jobs_visit(st, keep, cb, arg, &bad, e) != 0) {
            *stop = true;
            break;
        }
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        store_read_failed(s, e);
        bad = true;
    }
    sqlite3_reset(st);
    return bad ? -1 : 0;
}

int
store_jobs_load_live(struct store *s, store_job_cb cb, void *arg, struct err *e)
{
    sqlite3_stmt *st = store_stmt(s, STMT_JOBS_LIVE, e);
    int64_t left = -1;
    bool stop = false;

    if (!st)
        return -1;
    sqlite3_bind_int(st, 1, JOB_COMPLETED);
    return jobs_walk(s, st, true, &left, &stop, cb, arg, e);
}

struct job *
store_job_load(struct store *s, uint32_t id, struct err *e)
{
    sqlite3_stmt *st = store_stmt(s, STMT_JOB_LOAD, e);
    struct store_attempt last;
    struct job *job = NULL;
    int rc;

    if (!st)
        return NULL;
    memset(last.uuids, 0, sizeof last.uuids);
    sqlite3_bind_int64(st, 1, id);
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        job = jobs_read(st, &last, e);
    else if (rc == SQLITE_DONE)
        err_set(e, ERR_NO_JOB, "no job %" PRIu32, id);
    else
        store_read_failed(s, e);
    row_attempt_clear(&last);
    sqlite3_reset(st);
    return job;
}

/* --- walking with a filter --- */

static void
jobs_bind_filter(sqlite3_stmt *st, const struct store_filter *f, struct store_range ids)
{
    sqlite3_bind_int64(st, 1, ids.first);
    sqlite3_bind_int64(st, 2, ids.last);
    sqlite3_bind_int64(st, 3, f->states);
    sqlite3_bind_int64(st, 4, f->has_uid ? (int64_t)f->uid : -1);
    sqlite3_bind_int64(st, 5, f->file);
    sqlite3_bind_int64(st, 6, f->since_us);
    sqlite3_bind_int64(st, 7, f->until_us);
    sqlite3_bind_text(st, 8, f->search, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 9, f->has_search_uid ? (int64_t)f->search_uid : -1);
}

static int
range_compare(const void *a, const void *b)
{
    const struct store_range *x = a, *y = b;

    return (x->first > y->first) - (x->first < y->first);
}

/* The filter's ranges in ascending order, none touching another, so that no job comes twice.
 * The caller frees *out; returns how many. */
static int
ranges_merge(const struct store_filter *f, struct store_range **out)
{
    static const struct store_range all = {0, UINT32_MAX};
    int given = f->n_ranges ? f->n_ranges : 1, n = 0;
    struct store_range *r = xcalloc((unsigned long)given, sizeof *r);

    memcpy(r, f->n_ranges ? f->ranges : &all, (size_t)given * sizeof *r);
    qsort(r, (size_t)given, sizeof *r, range_compare);
    for (int i = 0; i < given; i++) {
        if (r[i].first > r[i].last)
            continue;
        if (n > 0 && r[i].first <= r[n - 1].last) {
            if (r[i].last > r[n - 1].last)
                r[n - 1].last = r[i].last;
        } else {
            r[n++] = r[i];
        }
    }
    *out = r;
    return n;
}

/* Walks downwards over ids alone until limit are counted; *lowest becomes the id there. */
static int
jobs_find_lowest(struct store *s, const struct store_filter *f,
                 const struct store_range *ranges, int n, uint32_t *lowest, struct err *e)
{
    sqlite3_stmt *st = store_stmt(s, STMT_JOBS_IDS, e);
    int64_t left = f->limit;
    int rc = SQLITE_DONE;

    if (!st)
        return -1;
    *lowest = 0;
    for (int i = n; i-- > 0 && left > 0 && rc == SQLITE_DONE;) {
        jobs_bind_filter(st, f, ranges[i]);
        while (left > 0 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
            *lowest = (uint32_t)sqlite3_column_int64(st, 0);
            left--;
        }
        if (rc != SQLITE_ROW && rc != SQLITE_DONE)
            store_read_failed(s, e);
        sqlite3_reset(st);
    }
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : -1;
}

int
store_jobs_lowest(struct store *s, const struct store_filter *f, uint32_t *out, struct err *e)
{
    auto_free struct store_range *ranges = NULL;
    int n = ranges_merge(f, &ranges);

    return jobs_find_lowest(s, f, ranges, n, out, e);
}

int
store_jobs_select(struct store *s, const struct store_filter *f, store_job_cb cb, void *arg,
                  struct err *e)
{
    auto_free struct store_range *ranges = NULL;
    int n = ranges_merge(f, &ranges);
    bool down = f->newest_first, stop = false;
    int64_t left = down && f->limit > 0 ? f->limit : -1;
    sqlite3_stmt *st = store_stmt(s, down ? STMT_JOBS_DOWN : STMT_JOBS_UP, e);
    uint32_t lowest = 0;

    if (!st)
        return -1;
    if (!down && f->limit > 0 && jobs_find_lowest(s, f, ranges, n, &lowest, e) < 0)
        return -1;
    for (int i = 0; i < n && !stop && left != 0; i++) {
        struct store_range ids = ranges[down ? n - 1 - i : i];
        if (ids.first < lowest)
            ids.first = lowest;
        jobs_bind_filter(st, f, ids);
        if (jobs_walk(s, st, false, &left, &stop, cb, arg, e) < 0)
            return -1;
    }
    return 0;
}
