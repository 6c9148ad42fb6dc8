/* The log as store_gather.c writes it: few calls, the bytes SQLite wrote, and errors that fail
 * the commit. */
#include <errno.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "store/store_gather.h"
#include "support.h"

static struct {
    int n;
    size_t largest;
    bool is_full;
} writes;

static ssize_t
count_write(int fd, const void *data, size_t n, off_t at)
{
    writes.n++;
    writes.largest = n > writes.largest ? n : writes.largest;
    if (!writes.is_full)
        return pwrite(fd, data, n, at);
    errno = ENOSPC;
    return -1;
}

static int
count_writes(void **state)
{
    (void)state;
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    vfs->xSetSystemCall(vfs, "pwrite", (sqlite3_syscall_ptr)count_write);
    vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)count_write);
    return 0;
}

static int
run(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static sqlite3 *
open_as_store(const char *path)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                     gather_vfs_name()),
                     SQLITE_OK);
    assert_int_equal(run(db, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;"
                             "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;"
                             "CREATE TABLE IF NOT EXISTS t (a INTEGER PRIMARY KEY, b BLOB);"),
                     SQLITE_OK);
    return db;
}

static int64_t
number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int64_t v = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return v;
}

/* The state left by a process killed after its last commit, as another process reads it. */
static void
assert_left(const struct dir *d, const char *path, int64_t rows)
{
    auto_free char *wal = xasprintf("%s-wal", path);
    auto_free char *copy = dir_file(d, "copy.db");
    auto_free char *copy_wal = xasprintf("%s-wal", copy);
    auto_free char *command =
        xasprintf("cp '%s' '%s' && cp '%s' '%s'", path, copy, wal, copy_wal);
    sqlite3 *db;
    assert_int_equal(system(command), 0);
    assert_int_equal(sqlite3_open(copy, &db), SQLITE_OK);
    assert_int_equal(number(db, "SELECT count(*) FROM t"), rows);
    assert_int_equal(number(db, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"),
                     1);
    sqlite3_close(db);
}

#define MANY                                                                                   \
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 2000) "          \
    "INSERT INTO t (b) SELECT randomblob(600) FROM c;"

static void
test_a_commit_is_one_write(void **state)
{
    (void)state;
    struct dir *d = dir_new();
    auto_free char *path = dir_file(d, "a.db");
    sqlite3 *db = open_as_store(path);
    assert_int_equal(run(db, MANY), SQLITE_OK);
    writes.n = 0;
    assert_int_equal(run(db, "UPDATE t SET b = zeroblob(600) WHERE a % 200 = 1"), SQLITE_OK);
    assert_int_equal(writes.n, 1); /* ten pages at least */
    assert_true(writes.largest >= 10 * 4120);
    assert_left(d, path, 2000);
    sqlite3_close(db);
    dir_free(d);
}

/* More than is written at once, and than SQLite keeps in memory. */
static void
test_a_large_commit_is_whole(void **state)
{
    (void)state;
    struct dir *d = dir_new();
    auto_free char *path = dir_file(d, "a.db");
    sqlite3 *db = open_as_store(path);
    assert_int_equal(run(db, "PRAGMA cache_size = 20"), SQLITE_OK);
    assert_int_equal(run(db, "BEGIN;" MANY MANY MANY "UPDATE t SET b = randomblob(601);"),
                     SQLITE_OK);
    assert_int_equal(number(db, "SELECT sum(length(b) = 601) FROM t"), 6000);
    assert_int_equal(run(db, "COMMIT"), SQLITE_OK);
    assert_left(d, path, 6000);
    assert_int_equal(run(db, "PRAGMA wal_checkpoint(TRUNCATE);" MANY), SQLITE_OK);
    assert_left(d, path, 8000);
    assert_int_equal(run(db, "BEGIN;" MANY "ROLLBACK;"), SQLITE_OK);
    assert_left(d, path, 8000);
    sqlite3_close(db);
    db = open_as_store(path);
    assert_int_equal(number(db, "SELECT count(*) FROM t"), 8000);
    sqlite3_close(db);
    dir_free(d);
}

/* A commit that cannot be written did not happen, and does not block later ones. */
static void
test_a_full_disk_fails_the_commit(void **state)
{
    (void)state;
    struct dir *d = dir_new();
    auto_free char *path = dir_file(d, "a.db");
    sqlite3 *db = open_as_store(path);
    assert_int_equal(run(db, MANY), SQLITE_OK);
    writes.is_full = true;
    assert_int_equal(run(db, "INSERT INTO t (b) VALUES (1)"), SQLITE_FULL);
    writes.is_full = false;
    assert_int_equal(number(db, "SELECT count(*) FROM t"), 2000);
    assert_left(d, path, 2000);
    assert_int_equal(run(db, "INSERT INTO t (b) VALUES (1)"), SQLITE_OK);
    assert_left(d, path, 2001);
    sqlite3_close(db);
    dir_free(d);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_commit_is_one_write),
        cmocka_unit_test(test_a_large_commit_is_whole),
        cmocka_unit_test(test_a_full_disk_fails_the_commit),
    };
    return cmocka_run_group_tests(tests, count_writes, NULL);
}
