/* A database of an older Berth is brought up to date with everything that is in it. */
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "support.h"

/* A folder with a database as version 1 made it (v1.sql). */
static struct dir *
dir_of_v1(void)
{
    struct dir *d = dir_new();
    auto_free char *path = dir_file(d, "berth.db");
    auto_buf struct buf sql = BUF_INIT;
    sqlite3 *db = NULL;
    struct err e = {0};

    if (file_read(V1_SQL, 1 << 20, &sql, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, buf_str(&sql), NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return d;
}

static void
test_jobs_of_version_1(void **state)
{
    struct dir *d = dir_of_v1();
    struct store *s = must_open(d);
    struct job *old = store_job_load(s, 1, NULL), *waiting = store_job_load(s, 2, NULL);

    (void)state;
    assert_non_null(old);
    assert_non_null(waiting);
    assert_string_equal(store_token(s), "0123456789abcdef");
    assert_int_equal(old->state, JOB_COMPLETED);
    assert_string_equal(old->req.name, "old");
    assert_int_equal(old->req.demand.vram_mib, 8000);
    assert_int_equal(old->run->peak_mib[0], 7000);
    assert_int_equal(waiting->req.demand.gpus, 2);
    /* What version 1 did not know reads as what a plain request has. */
    struct request plain;
    request_init(&plain);
    plain.demand.gpus = 2;
    assert_memory_equal(&waiting->req.demand, &plain.demand, sizeof plain.demand);
    assert_int_equal(waiting->req.max_requeues, REQUEUES_DEFAULT);
    assert_int_equal(waiting->task, -1);
    assert_null(waiting->tasks);
    assert_null(waiting->req.tags);
    assert_int_equal(waiting->req.n_deps, 0);
    assert_int_equal(store_next_job_id(s), 3);
    job_free(old);
    job_free(waiting);
    store_close(s);
    dir_free(d);
}

static int
on_key(const struct store_key *key, void *arg)
{
    *(uint32_t *)arg = key->job;
    assert_string_equal(key->key, "abc#1");
    return 0;
}

static void
test_it_goes_on_from_there(void **state)
{
    struct rng r = {7};
    struct dir *d = dir_of_v1();
    struct store *s = must_open(d);
    struct job *job = random_job(&r, store_next_job_id(s)), *back;
    uint32_t line = 0;

    (void)state;
    assert_int_equal(store_job_insert(s, job, NULL), 0);
    must_commit(s);
    store_close(s);
    s = must_open(d); /* and is not brought up twice */
    back = store_job_load(s, job->id, NULL);
    assert_non_null(back);
    assert_same_job(job, back);
    assert_int_equal(store_file_keys(s, 4, on_key, &line, NULL), 0);
    assert_int_equal(line, 1);
    job_free(back);
    job_free(job);
    store_close(s);
    dir_free(d);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs_of_version_1),
        cmocka_unit_test(test_it_goes_on_from_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
