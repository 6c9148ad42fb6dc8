/* Databases that are opened, created or refused; a refused one is left unchanged. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "support.h"

#define FILE_MAX (64 << 20)

static void
read_all(const char *path, struct buf *out)
{
    struct err e = {0};

    if (file_read(path, FILE_MAX, out, &e) < 0)
        fail_msg("%s", e.text);
}

/* Refused with this error, and not a byte of the file differs. */
static void
assert_refused(const struct dir *d, enum err_code code, const char *words)
{
    auto_free char *path = dir_file(d, "berth.db");
    auto_buf struct buf before = BUF_INIT, after = BUF_INIT;
    struct store *s = NULL;
    struct err e = {0};

    read_all(path, &before);
    assert_int_equal(store_open(d->path, &s, &e), -1);
    assert_null(s);
    assert_int_equal(e.code, code);
    if (!strstr(e.text, words))
        fail_msg("'%s' does not say '%s'", e.text, words);
    assert_non_null(strstr(e.text, path));
    read_all(path, &after);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(buf_str(&before), buf_str(&after), before.len);
}

static void
write_file(const char *path, const void *bytes, size_t n)
{
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, bytes, n), 0);
}

/* A database with some jobs, closed cleanly. */
static struct dir *
dir_with_jobs(int count)
{
    struct dir *d = dir_new();
    struct store *s = must_open(d);

    for (int i = 1; i <= count; i++)
        add_plain_job(s, (uint32_t)i);
    must_commit(s);
    store_close(s);
    return d;
}

static void
sql_in(const struct dir *d, const char *sql)
{
    auto_free char *path = dir_file(d, "berth.db");
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void
test_first_open_makes_it(void **state)
{
    struct dir *d = dir_new();
    auto_free char *path = dir_file(d, "berth.db");
    struct store *s = must_open(d);
    char token[17];
    struct stat st;

    (void)state;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(strlen(store_token(s)), 16);
    assert_int_equal(strspn(store_token(s), "0123456789abcdef"), 16);
    memcpy(token, store_token(s), sizeof token);
    assert_int_equal(store_boot_id_set(s, "a-boot", NULL), 0);
    must_commit(s);
    store_close(s);
    s = must_open(d);
    assert_string_equal(store_token(s), token);
    assert_string_equal(store_boot_id(s), "a-boot");
    store_close(s);
    dir_free(d);
}

static void
test_two_instances_have_two_tokens(void **state)
{
    struct dir *d1 = dir_new(), *d2 = dir_new();
    struct store *a = must_open(d1), *b = must_open(d2);

    (void)state;
    assert_string_not_equal(store_token(a), store_token(b));
    store_close(a);
    store_close(b);
    dir_free(d1);
    dir_free(d2);
}

static void
test_creation_that_was_cut_short_starts_over(void **state)
{
    struct dir *d = dir_new();
    auto_free char *fresh = dir_file(d, "berth.db.new");
    auto_free char *journal = dir_file(d, "berth.db.new-journal");
    struct store *s;

    (void)state;
    write_file(fresh, "half", 4);
    write_file(journal, "a journal", 9);
    s = must_open(d);
    assert_int_equal(access(fresh, F_OK), -1);
    store_close(s);
    dir_free(d);
}

static void
test_garbage_is_refused(void **state)
{
    struct dir *d = dir_new();
    auto_free char *path = dir_file(d, "berth.db");
    char garbage[20000];

    (void)state;
    memset(garbage, 'g', sizeof garbage);
    write_file(path, garbage, sizeof garbage);
    assert_refused(d, ERR_FAILED, "not a Berth database");
    write_file(path, "", 0);
    assert_refused(d, ERR_FAILED, "not a Berth database");
    write_file(path, "SQLite format 3", 16);
    assert_refused(d, ERR_FAILED, "not a Berth database");
    dir_free(d);
}

static void
test_another_programs_database_is_refused(void **state)
{
    struct dir *d = dir_new();

    (void)state;
    sql_in(d, "CREATE TABLE songs(name)");
    assert_refused(d, ERR_FAILED, "not a Berth database");
    dir_free(d);
}

static void
test_newer_schema_is_refused(void **state)
{
    struct dir *d = dir_with_jobs(3);

    (void)state;
    sql_in(d, "PRAGMA user_version = 99");
    assert_refused(d, ERR_FAILED, "newer Berth");
    dir_free(d);
}

static void
test_log_without_its_database_is_refused(void **state)
{
    struct dir *d = dir_new();
    auto_free char *wal = dir_file(d, "berth.db-wal");
    auto_free char *path = dir_file(d, "berth.db");
    struct store *s = NULL;
    struct err e = {0};

    (void)state;
    write_file(wal, "log", 3);
    assert_int_equal(store_open(d->path, &s, &e), -1);
    assert_non_null(strstr(e.text, "is gone"));
    assert_int_equal(access(path, F_OK), -1);
    dir_free(d);
}

/* Overwrites whole pages from the second on, as a bad disk would. */
static void
damage(const struct dir *d)
{
    auto_free char *path = dir_file(d, "berth.db");
    auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);
    char block[4096];

    assert_true(fd >= 0);
    memset(block, 0xa5, sizeof block);
    for (int page = 1; page < 40; page++)
        assert_int_equal(pwrite(fd, block, sizeof block, page * 4096), sizeof block);
}

static void
test_damage_is_refused(void **state)
{
    struct dir *d = dir_with_jobs(2000);

    (void)state;
    damage(d);
    assert_refused(d, ERR_FAILED, "damaged");
    dir_free(d);
}

/* After an unclean shutdown the whole file is checked, so that damage which opening alone
 * would miss is found, too. */
static void
test_damage_is_found_after_an_unclean_end(void **state)
{
    struct dir *d = dir_with_jobs(2000);
    auto_free char *path = dir_file(d, "berth.db");
    char block[4096];
    struct stat st;

    (void)state;
    assert_int_equal(stat(path, &st), 0);
    sql_in(d, "UPDATE meta SET value = '0' WHERE key = 'clean'");
    auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);
    memset(block, 0xa5, sizeof block);
    /* In the middle: a leaf of jobs that no lookup at the start touches. */
    assert_int_equal(pwrite(fd, block, sizeof block, st.st_size / 4096 / 2 * 4096),
                     sizeof block);
    assert_refused(d, ERR_FAILED, "damaged");
    dir_free(d);
}

/* Also in a file closed cleanly, when it has grown as large as after some years. */
static void
test_damage_is_found_in_a_large_file(void **state)
{
    struct dir *d = dir_with_jobs(10);
    auto_free char *path = dir_file(d, "berth.db");
    struct store *s = NULL;
    struct err e = {0};
    char block[4096];
    struct stat st;

    (void)state;
    sql_in(d, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 72)"
              " INSERT INTO envs SELECT i, i, zeroblob(1000000) FROM n");
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size > 64 << 20);
    auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);
    memset(block, 0xa5, sizeof block);
    assert_int_equal(pwrite(fd, block, sizeof block, st.st_size / 4096 / 2 * 4096),
                     sizeof block);
    assert_int_equal(store_open(d->path, &s, &e), -1);
    assert_non_null(strstr(e.text, "damaged"));
    dir_free(d);
}

/* The file's flag for the last shutdown: '1' clean, '0' unclean. */
static void
assert_clean(const struct dir *d, const char *value)
{
    auto_free char *path = dir_file(d, "berth.db");
    sqlite3_stmt *st = NULL;
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key = 'clean'", -1, &st, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(st, 0), value);
    sqlite3_finalize(st);
    sqlite3_close(db);
}

static void
test_the_file_knows_how_its_user_ended(void **state)
{
    struct dir *d = dir_with_jobs(1);
    struct store *s;
    int status;
    pid_t pid;

    (void)state;
    assert_clean(d, "1");
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (store_open(d->path, &s, NULL) < 0)
            _exit(1);
        add_plain_job(s, 2);
        store_commit(s, NULL);
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_clean(d, "0");
    s = must_open(d);
    store_close(s);
    assert_clean(d, "1");
    dir_free(d);
}

static void
test_nonsense_in_a_row_is_told(void **state)
{
    struct dir *d = dir_with_jobs(1);
    struct store *s;
    struct err e = {0};

    (void)state;
    sql_in(d, "UPDATE jobs SET state = 77");
    s = must_open(d);
    assert_null(store_job_load(s, 1, &e));
    assert_non_null(strstr(e.text, "job 1, state"));
    store_close(s);
    sql_in(d, "UPDATE jobs SET state = 1, argv = '[1'");
    s = must_open(d);
    assert_null(store_job_load(s, 1, &e));
    assert_non_null(strstr(e.text, "job 1, argv"));
    store_close(s);
    dir_free(d);
}

static void
test_second_program_is_refused(void **state)
{
    struct dir *d = dir_with_jobs(1);
    struct store *s = must_open(d);
    int status;
    pid_t pid;

    (void)state;
    add_plain_job(s, 2);
    must_commit(s);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct store *other = NULL;
        struct err e = {0};
        if (store_open(d->path, &other, &e) == 0)
            _exit(1);
        _exit(strstr(e.text, "another program") ? 0 : 2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    store_close(s);
    dir_free(d);
}

/* Runs open as an unprivileged user; returns its error code and whether it named the file. */
static void
assert_refused_to_others(const struct dir *d, const char *words)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct store *s = NULL;
        struct err e = {0};
        if (geteuid() == 0 && setuid(65534) < 0)
            _exit(3);
        if (store_open(d->path, &s, &e) == 0)
            _exit(1);
        _exit(e.code == ERR_PERMISSION && strstr(e.text, words) ? 0 : 2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void
test_folder_without_rights(void **state)
{
    struct dir *d = dir_new();
    auto_free char *path = dir_file(d, "berth.db");

    (void)state;
    chmod(d->path, 0555);
    assert_refused_to_others(d, "cannot make");
    assert_int_equal(access(path, F_OK), -1);
    chmod(d->path, 0755);
    dir_free(d);
}

static void
test_file_without_rights(void **state)
{
    struct dir *d = dir_with_jobs(1);
    auto_free char *path = dir_file(d, "berth.db");

    (void)state;
    chmod(d->path, 0755);
    chmod(path, 0000);
    assert_refused_to_others(d, "cannot read");
    chmod(path, 0444);
    assert_refused_to_others(d, "cannot be written");
    dir_free(d);
}

/* The file is writable but the folder is not, so the log cannot be created. */
static void
test_folder_without_rights_for_the_log(void **state)
{
    struct dir *d = dir_with_jobs(1);
    auto_free char *path = dir_file(d, "berth.db");

    (void)state;
    chmod(path, 0666);
    chmod(d->path, 0555);
    assert_refused_to_others(d, "berth.db");
    chmod(d->path, 0755);
    dir_free(d);
}

static void
test_folder_is_missing(void **state)
{
    struct store *s = NULL;
    struct err e = {0};

    (void)state;
    assert_int_equal(store_open("/nonexistent/berth/state", &s, &e), -1);
    assert_non_null(strstr(e.text, "/nonexistent/berth/state"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_open_makes_it),
        cmocka_unit_test(test_two_instances_have_two_tokens),
        cmocka_unit_test(test_creation_that_was_cut_short_starts_over),
        cmocka_unit_test(test_garbage_is_refused),
        cmocka_unit_test(test_another_programs_database_is_refused),
        cmocka_unit_test(test_newer_schema_is_refused),
        cmocka_unit_test(test_log_without_its_database_is_refused),
        cmocka_unit_test(test_damage_is_refused),
        cmocka_unit_test(test_damage_is_found_in_a_large_file),
        cmocka_unit_test(test_damage_is_found_after_an_unclean_end),
        cmocka_unit_test(test_the_file_knows_how_its_user_ended),
        cmocka_unit_test(test_nonsense_in_a_row_is_told),
        cmocka_unit_test(test_second_program_is_refused),
        cmocka_unit_test(test_folder_without_rights),
        cmocka_unit_test(test_file_without_rights),
        cmocka_unit_test(test_folder_without_rights_for_the_log),
        cmocka_unit_test(test_folder_is_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
