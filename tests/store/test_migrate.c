/* A database of an older version is migrated with everything in it. */
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
#include "core/queue/array.h"
#include "support.h"

/* A folder with a database made by an older version: "v1.sql". */
static struct dir *
dir_of(const char *name)
{
    struct dir *d = dir_new();
    auto_free char *from = xasprintf(OLD_SQL "/%s", name);
    auto_free char *path = dir_file(d, "berth.db");
    auto_buf struct buf sql = BUF_INIT;
    sqlite3 *db = NULL;
    struct err e = {0};

    if (file_read(from, 1 << 20, &sql, &e) < 0)
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
    struct dir *d = dir_of("v1.sql");
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
    /* Fields unknown to version 1 read as in a plain request. */
    struct request plain;
    request_init(&plain);
    plain.demand.gpus = 2;
    assert_memory_equal(&waiting->req.demand, &plain.demand, sizeof plain.demand);
    assert_int_equal(waiting->req.max_requeues, REQUEUES_DEFAULT);
    assert_int_equal(waiting->task, -1);
    assert_int_equal(waiting->stop_grace_ms, -1);
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
count_job(struct job *job, const char *const *uuids, void *arg)
{
    (void)job;
    (void)uuids;
    (*(int *)arg)++;
    return 0;
}

static void
test_jobs_of_version_2(void **state)
{
    static const struct store_filter all = {0};
    struct dir *d = dir_of("v2.sql");
    struct store *s = must_open(d);
    struct job *array = store_job_load(s, 5, NULL), *task = store_job_load(s, 6, NULL);
    struct job *later = store_job_load(s, 15, NULL);
    struct request plain;
    int n = 0;

    (void)state;
    request_init(&plain);
    assert_int_equal(store_jobs_select(s, &all, count_job, &n, NULL), 0);
    assert_int_equal(n, 9);
    assert_non_null(array);
    assert_non_null(task);
    assert_non_null(later);
    assert_int_equal(array_next(array), 2);
    assert_int_equal(task->array, 5);
    assert_int_equal(task->state, JOB_STARTING);
    assert_string_equal(later->req.name, "b");
    assert_int_equal(later->req.n_deps, 1);
    assert_string_equal(later->user, "ann");
    /* Fields unknown to version 2 read as in a plain request. */
    assert_memory_equal(&later->req.demand, &plain.demand, sizeof plain.demand);
    assert_false(later->req.screen);
    assert_false(later->req.vram_auto);
    assert_null(later->req.hooks);
    assert_null(later->req.env_setup);
    job_free(array);
    job_free(task);
    job_free(later);
    store_close(s);
    dir_free(d);
}

/* It represents all its tasks that did not complete: which of them ended with it is
 * unknown. */
static void
test_an_array_whose_highest_exit_status_alone_was_kept(void **state)
{
    struct dir *d = dir_of("v2.sql");
    auto_free char *path = dir_file(d, "berth.db");
    sqlite3 *db = NULL;

    (void)state;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "UPDATE jobs SET array_book = '5-99;6:1,7:2;5' WHERE id = 5",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    struct store *s = must_open(d);
    struct job *array = store_job_load(s, 5, NULL);
    assert_non_null(array);
    assert_int_equal(array_exit_status(array->tasks), 5);
    array_count_status(array->tasks, 1, -1);
    assert_int_equal(array_exit_status(array->tasks), 5);
    array_count_status(array->tasks, 5, -1);
    assert_int_equal(array_exit_status(array->tasks), 0);
    job_free(array);
    store_close(s);
    dir_free(d);
}

/* Every table with its columns, every index with its text. */
static void
describe_tables(const struct dir *d, struct buf *out)
{
    static const char sql[] =
        "SELECT m.name || ' ' || coalesce(group_concat(c.name || ' ' || c.type || ' '"
        " || c.\"notnull\" || ' ' || coalesce(c.dflt_value, '') || ' ' || c.pk), m.sql, '')"
        " FROM sqlite_master m LEFT JOIN pragma_table_info(m.name) c"
        " WHERE m.type = 'table' OR m.sql IS NOT NULL GROUP BY m.name ORDER BY m.name";
    auto_free char *path = dir_file(d, "berth.db");
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    while (sqlite3_step(st) == SQLITE_ROW)
        buf_addf(out, "%s\n", (const char *)sqlite3_column_text(st, 0));
    sqlite3_finalize(st);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void
test_all_end_with_the_same_tables(void **state)
{
    static const char *const old[] = {"v1.sql", "v2.sql"};
    struct dir *fresh = dir_new();
    auto_buf struct buf want = BUF_INIT;

    (void)state;
    store_close(must_open(fresh));
    describe_tables(fresh, &want);
    assert_non_null(strstr(buf_str(&want), "jobs_ended CREATE INDEX"));
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
        struct dir *d = dir_of(old[i]);
        auto_buf struct buf got = BUF_INIT;
        store_close(must_open(d));
        describe_tables(d, &got);
        assert_string_equal(buf_str(&got), buf_str(&want));
        dir_free(d);
    }
    dir_free(fresh);
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
    struct dir *d = dir_of("v1.sql");
    struct store *s = must_open(d);
    struct job *job = random_job(&r, store_next_job_id(s)), *back;
    uint32_t line = 0;

    (void)state;
    assert_int_equal(store_job_insert(s, job, NULL), 0);
    must_commit(s);
    store_close(s);
    s = must_open(d); /* and is not migrated twice */
    back = store_job_load(s, job->id, NULL);
    assert_non_null(back);
    assert_same_job(job, back);
    assert_int_equal(
        store_file_keys(s, 4, &(struct store_keys_at){.job = 0}, on_key, &line, NULL), 0);
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
        cmocka_unit_test(test_jobs_of_version_2),
        cmocka_unit_test(test_an_array_whose_highest_exit_status_alone_was_kept),
        cmocka_unit_test(test_all_end_with_the_same_tables),
        cmocka_unit_test(test_it_goes_on_from_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
