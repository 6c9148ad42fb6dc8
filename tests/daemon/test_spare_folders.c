/* Reuse of attempts' folders: nothing that one attempt left reaches the next, and a folder
 * with anything unusual is not used. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "daemon/attempt/spare_folders.h"

struct world {
    char dir[64];
    int fd; /* the folder that contains the attempts' folders */
    struct spare_folders *spare;
};

static int
set_up(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    strcpy(w->dir, "/tmp/berth-spare.XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    w->fd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(w->fd >= 0);
    w->spare = spare_new();
    *state = w;
    return 0;
}

static int
tear_down(void **state)
{
    struct world *w = *state;
    auto_free char *command = xasprintf("rm -rf '%s'", w->dir);
    int rc = system(command);
    close(w->fd);
    free(w->spare);
    free(w);
    return rc;
}

static int
open_in(const struct world *w, const char *folder, const char *file, int flags)
{
    auto_free char *path = xasprintf("%s/%s", folder, file);
    return openat(w->fd, path, flags | O_CLOEXEC, 0600);
}

static void
put(const struct world *w, const char *folder, const char *file, const char *text)
{
    auto_close int fd = open_in(w, folder, file, O_WRONLY | O_CREAT | O_TRUNC);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, text, strlen(text)), 0);
}

/* Leaves it as an attempt does: with the marks and the record in its lock. */
static void
make_ended(const struct world *w, const char *folder)
{
    assert_int_equal(mkdirat(w->fd, folder, 0700), 0);
    put(w, folder, "lock", "started 12\nboot_us 1\nboot_id x\nended {}\n");
}

static bool
has(const struct world *w, const char *name)
{
    return faccessat(w->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static off_t
size_of_lock(const struct world *w, const char *folder)
{
    struct stat st;
    auto_close int fd = open_in(w, folder, "lock", O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    return st.st_size;
}

static void
test_is_used_again_and_is_empty(void **state)
{
    struct world *w = *state;
    make_ended(w, "1.1");
    assert_false(spare_take(w->spare, w->fd, "2.1"));
    assert_true(spare_keep(w->spare, w->fd, "1.1"));
    assert_false(has(w, "1.1"));
    assert_true(has(w, ".spare.0"));
    assert_int_equal(size_of_lock(w, ".spare.0"), 0);
    assert_true(spare_take(w->spare, w->fd, "2.1"));
    assert_false(has(w, ".spare.0"));
    assert_int_equal(size_of_lock(w, "2.1"), 0);
    auto_close int lock = open_in(w, "2.1", "lock", O_RDWR);
    assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0); /* the daemon's, for a launch */
    assert_false(spare_take(w->spare, w->fd, "3.1"));
}

/* The oldest first: its supervisor has had the longest time to exit. */
static void
test_are_taken_in_the_order_in_which_they_were_kept(void **state)
{
    struct world *w = *state;
    struct stat first, taken;
    make_ended(w, "1.1");
    make_ended(w, "2.1");
    assert_int_equal(fstatat(w->fd, "1.1", &first, 0), 0);
    assert_true(spare_keep(w->spare, w->fd, "1.1"));
    assert_true(spare_keep(w->spare, w->fd, "2.1"));
    assert_true(spare_take(w->spare, w->fd, "3.1"));
    assert_int_equal(fstatat(w->fd, "3.1", &taken, 0), 0);
    assert_int_equal(first.st_ino, taken.st_ino);
}

static void
test_loses_what_its_supervisor_left(void **state)
{
    struct world *w = *state;
    make_ended(w, "1.1");
    put(w, "1.1", "ctl.sock", "");
    put(w, "1.1", "exit", "{}\n");
    assert_true(spare_keep(w->spare, w->fd, "1.1"));
    assert_true(spare_take(w->spare, w->fd, "2.1"));
    assert_false(has(w, "2.1/ctl.sock"));
    assert_false(has(w, "2.1/exit"));
}

/* Its supervisor is still there and could write into it. It does not block other folders
 * either. */
static void
test_is_not_taken_while_its_lock_is_held(void **state)
{
    struct world *w = *state;
    struct stat held_one, taken;
    make_ended(w, "1.1");
    make_ended(w, "2.1");
    auto_close int held = open_in(w, "1.1", "lock", O_RDWR);
    assert_int_equal(flock(held, LOCK_EX), 0);
    assert_int_equal(fstatat(w->fd, "1.1", &held_one, 0), 0);
    assert_true(spare_keep(w->spare, w->fd, "1.1"));
    assert_true(spare_keep(w->spare, w->fd, "2.1"));
    assert_true(spare_take(w->spare, w->fd, "3.1"));
    assert_int_equal(fstatat(w->fd, "3.1", &taken, 0), 0);
    assert_int_not_equal(held_one.st_ino, taken.st_ino);
    assert_false(spare_take(w->spare, w->fd, "4.1"));
    assert_false(has(w, "4.1"));
    assert_int_equal(flock(held, LOCK_UN), 0);
    assert_true(spare_take(w->spare, w->fd, "4.1"));
    assert_int_equal(fstatat(w->fd, "4.1", &taken, 0), 0);
    assert_int_equal(held_one.st_ino, taken.st_ino);
}

/* A folder written to after it was kept is emptied, or not used. */
static void
test_brings_nothing_that_was_written_late(void **state)
{
    struct world *w = *state;
    make_ended(w, "1.1");
    make_ended(w, "2.1");
    assert_true(spare_keep(w->spare, w->fd, "1.1"));
    put(w, ".spare.0", "lock", "started 12\n");
    put(w, ".spare.0", "exit", "{}\n");
    assert_true(spare_keep(w->spare, w->fd, "2.1"));
    put(w, ".spare.1", "foreign", "");
    assert_true(spare_take(w->spare, w->fd, "3.1"));
    assert_int_equal(size_of_lock(w, "3.1"), 0);
    assert_false(has(w, "3.1/exit"));
    assert_false(spare_take(w->spare, w->fd, "4.1"));
    assert_false(has(w, "4.1"));
}

static void
test_is_not_kept_with_anything_else_in_it(void **state)
{
    struct world *w = *state;
    make_ended(w, "1.1");
    put(w, "1.1", "foreign", "");
    assert_false(spare_keep(w->spare, w->fd, "1.1"));
    assert_true(has(w, "1.1/foreign"));
    assert_true(size_of_lock(w, "1.1") > 0);
}

static void
test_is_not_kept_without_a_lock_of_its_own(void **state)
{
    struct world *w = *state;
    assert_false(spare_keep(w->spare, w->fd, "1.1"));
    assert_int_equal(mkdirat(w->fd, "2.1", 0700), 0);
    assert_false(spare_keep(w->spare, w->fd, "2.1"));
    make_ended(w, "3.1");
    assert_int_equal(mkdirat(w->fd, "elsewhere", 0700), 0);
    assert_int_equal(linkat(w->fd, "3.1/lock", w->fd, "elsewhere/lock", 0), 0);
    assert_false(spare_keep(w->spare, w->fd, "3.1"));
    assert_int_equal(unlinkat(w->fd, "3.1/lock", 0), 0);
    assert_int_equal(symlinkat("../elsewhere/lock", w->fd, "3.1/lock"), 0);
    assert_false(spare_keep(w->spare, w->fd, "3.1"));
    assert_int_equal(symlinkat("elsewhere", w->fd, "4.1"), 0);
    assert_false(spare_keep(w->spare, w->fd, "4.1"));
    assert_true(size_of_lock(w, "elsewhere") > 0);
}

static void
test_does_not_replace_what_is_there(void **state)
{
    struct world *w = *state;
    make_ended(w, "1.1");
    make_ended(w, "2.1");
    assert_true(spare_keep(w->spare, w->fd, "1.1"));
    assert_false(spare_take(w->spare, w->fd, "2.1"));
    assert_true(size_of_lock(w, "2.1") > 0);
}

/* It cannot be removed, and does not block other folders. */
static void
test_a_folder_of_an_earlier_daemon_takes_no_name(void **state)
{
    struct world *w = *state;
    make_ended(w, ".spare.0");
    make_ended(w, "1.1");
    make_ended(w, "2.1");
    assert_true(spare_is_left(w->spare, ".spare.0"));
    assert_false(spare_keep(w->spare, w->fd, "1.1"));
    assert_true(spare_keep(w->spare, w->fd, "2.1"));
    assert_true(spare_is_left(w->spare, ".spare.0"));
    assert_false(spare_is_left(w->spare, ".spare.1"));
    assert_true(spare_take(w->spare, w->fd, "3.1"));
    assert_true(size_of_lock(w, ".spare.0") > 0);
}

static void
test_other_names_are_not_spare_folders(void **state)
{
    struct world *w = *state;
    assert_false(spare_is_left(w->spare, "1.1"));
    assert_false(spare_is_left(w->spare, ".spare."));
    assert_false(spare_is_left(w->spare, ".spare.1x"));
    assert_false(spare_is_left(w->spare, ".trial.d"));
}

static void
test_only_so_many_are_kept(void **state)
{
    struct world *w = *state;
    int kept = 0;
    for (int i = 0; i < 40; i++) {
        auto_free char *name = xasprintf("%d.1", i);
        make_ended(w, name);
        kept += spare_keep(w->spare, w->fd, name);
    }
    assert_int_equal(kept, 32);
    assert_true(has(w, "39.1"));
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_is_used_again_and_is_empty),
        TEST(test_are_taken_in_the_order_in_which_they_were_kept),
        TEST(test_loses_what_its_supervisor_left),
        TEST(test_is_not_taken_while_its_lock_is_held),
        TEST(test_brings_nothing_that_was_written_late),
        TEST(test_is_not_kept_with_anything_else_in_it),
        TEST(test_is_not_kept_without_a_lock_of_its_own),
        TEST(test_does_not_replace_what_is_there),
        TEST(test_a_folder_of_an_earlier_daemon_takes_no_name),
        TEST(test_other_names_are_not_spare_folders),
        TEST(test_only_so_many_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
