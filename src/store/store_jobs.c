/* Jobs in the database: inserted, updated, loaded singly or walked. A walk holds one row at a
 * time, so the daemon's memory does not grow with the history. */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
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

/* An update that matched no row is a caller's bug; it fails the turn. */
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

/* The row's job with its last attempt, whose UUIDs go to *last (the caller clears it). */
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

/* The job with this id and its last attempt, as jobs_read. NULL with ERR_NO_JOB if there is
 * none. */
static struct job *
jobs_load(struct store *s, uint32_t id, struct store_attempt *last, struct err *e)
{
    sqlite3_stmt *st = store_bound(s, STMT_JOB_LOAD, BINDS(bind_number(id)), e);
    struct job *job = NULL;
    int rc;

    if (!st)
        return NULL;
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        job = jobs_read(st, last, e);
    else if (rc == SQLITE_DONE)
        err_set(e, ERR_NO_JOB, "no job %" PRIu32, id);
    else
        store_read_failed(s, e);
    sqlite3_reset(st);
    return job;
}

struct job *
store_job_load(struct store *s, uint32_t id, struct err *e)
{
    struct store_attempt last;
    struct job *job;

    memset(last.uuids, 0, sizeof last.uuids);
    job = jobs_load(s, id, &last, e);
    row_attempt_clear(&last);
    return job;
}

/* --- walking --- */

struct jobs_walk {
    struct store *s;
    store_job_cb cb;
    void *arg;
    bool keep;    /* the callback takes ownership of each job */
    bool is_ids;  /* rows are of STMT_JOBS_SEARCH: an id, and whether the text was found */
    int64_t left; /* jobs still to deliver; -1: no limit */
    struct store_pass pass;
};

/* Passes the current row's job to cb. Returns cb's result, or -1 with e filled and *bad
 * set. */
static int
jobs_visit(const struct jobs_walk *w, sqlite3_stmt *st, bool *bad, struct err *e)
{
    struct store_attempt last;
    struct job *job;
    int rc;

    memset(last.uuids, 0, sizeof last.uuids);
    job = w->is_ids ? jobs_load(w->s, w->pass.last, &last, e) : jobs_read(st, &last, e);
    if (!job) {
        row_attempt_clear(&last);
        *bad = true;
        return -1;
    }
    rc = w->cb(job, job->run ? (const char *const *)last.uuids : NULL, w->arg);
    row_attempt_clear(&last);
    if (!w->keep)
        job_free(job);
    return rc;
}

/* Steps a bound statement over its rows until the end, cb or w->pass stops it. */
static int
jobs_walk(struct jobs_walk *w, sqlite3_stmt *st, struct err *e)
{
    bool bad = false;
    int rc = SQLITE_DONE;

    while (w->left != 0 && !w->pass.stopped && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        w->pass.last = (uint32_t)sqlite3_column_int64(st, 0);
        if (!w->is_ids || sqlite3_column_int(st, 1)) {
            w->pass.stopped = jobs_visit(w, st, &bad, e) != 0;
            w->left -= w->left > 0;
        }
        w->pass.stopped |= clock_boot_us() >= w->pass.stop_us;
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        store_read_failed(w->s, e);
        bad = true;
    }
    sqlite3_reset(st);
    return bad ? -1 : 0;
}

int
store_jobs_load_live(struct store *s, store_job_cb cb, void *arg, struct err *e)
{
    sqlite3_stmt *st = store_bound(s, STMT_JOBS_LIVE, BINDS(bind_number(JOB_COMPLETED)), e);
    struct jobs_walk w = {
        .s = s, .cb = cb, .arg = arg, .keep = true, .left = -1, .pass = STORE_PASS_ALL};

    return st ? jobs_walk(&w, st, e) : -1;
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
    if (!f->search)
        return;
    sqlite3_bind_text(st, 8, f->search, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 9, f->has_search_uid ? (int64_t)f->search_uid : -1);
}

static int
range_compare(const void *a, const void *b)
{
    const struct store_range *x = a, *y = b;

    return (x->first > y->first) - (x->first < y->first);
}

/* Merges the filter's ranges: ascending and disjoint, so that no job comes twice. The caller
 * frees *out. Returns the count. */
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

int
store_jobs_pass(struct store *s, const struct store_filter *f, struct store_pass *pass,
                store_job_cb cb, void *arg, struct err *e)
{
    auto_free struct store_range *ranges = NULL;
    int n = ranges_merge(f, &ranges), rc = 0;
    bool down = f->newest_first || f->search;
    sqlite3_stmt *st = store_stmt(s,
                                  f->search ? STMT_JOBS_SEARCH
                                  : down    ? STMT_JOBS_DOWN
                                            : STMT_JOBS_UP,
                                  e);
    struct jobs_walk w = {.s = s,
                          .cb = cb,
                          .arg = arg,
                          .is_ids = f->search != NULL,
                          .left = down && f->limit > 0 ? f->limit : -1,
                          .pass = *pass};

    if (!st)
        return -1;
    for (int i = 0; i < n && !w.pass.stopped && w.left != 0 && rc == 0; i++) {
        jobs_bind_filter(st, f, ranges[down ? n - 1 - i : i]);
        rc = jobs_walk(&w, st, e);
    }
    *pass = w.pass;
    return rc;
}

int
store_jobs_select(struct store *s, const struct store_filter *f, store_job_cb cb, void *arg,
                  struct err *e)
{
    struct store_pass pass = STORE_PASS_ALL;

    return store_jobs_pass(s, f, &pass, cb, arg, e);
}
