/* Files on a real file system: limits, atomic writes, folders, locks. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

static char dir[64];
static int dir_fd;

static int
enter(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/berth-test-file-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir_fd < 0 ? -1 : chdir(dir);
}

static int
leave(void **state)
{
    static const char *const left[] = {"f",   "f.tmp", "lock",  "fifo", "a/b/c",
                                       "a/b", "a",     "sub/g", "sub"};

    (void)state;
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++)
        remove(left[i]);
    close(dir_fd);
    return rmdir(dir);
}

/* Opening a FIFO or device could affect its writer or the device, so they are refused
 * unopened; the kernel would show an open. */
static void
opens_nothing_but_regular_files(void **state)
{
    char events[512];
    (void)state;
    assert_int_equal(mkfifo("fifo", 0600), 0);
    auto_close int notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(inotify_add_watch(notify, "fifo", IN_OPEN) >= 0);
    assert_int_equal(symlink("fifo", "f"), 0);
    assert_int_equal(file_open_regular("f"), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(file_open_regular("."), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(read(notify, events, sizeof events), -1);
    assert_int_equal(file_open_regular("missing"), -1);
    assert_int_equal(errno, ENOENT);
    unlink("f");
    assert_int_equal(file_write_atomic_at(dir_fd, "f", "x", 1, 0600, false, NULL), 0);
    auto_close int fd = file_open_regular("f");
    assert_int_equal(read(fd, events, sizeof events), 1);
}

static void
reads_back_what_was_written(void **state)
{
    auto_buf struct buf b = BUF_INIT;
    struct err e;
    struct stat st;

    (void)state;
    for (int sync = 0; sync < 2; sync++) {
        assert_int_equal(file_write_atomic_at(dir_fd, "f", "one\0two", 7, 0640, sync, &e), 0);
        assert_int_equal(file_read("f", 7, &b, &e), 0);
        assert_int_equal(b.len, 7);
        assert_memory_equal(b.data, "one\0two", 8);
    }
    assert_int_equal(stat("f", &st), 0);
    assert_int_equal(access("f.tmp", F_OK), -1);
    assert_int_equal(file_write_atomic_at(dir_fd, "f", "", 0, 0640, false, &e), 0);
    assert_int_equal(file_read_at(dir_fd, "f", 7, &b, &e), 0);
    assert_int_equal(b.len, 0);
}

static void
reading_has_a_bound(void **state)
{
    auto_buf struct buf b = BUF_INIT, big = BUF_INIT;
    struct err e;

    (void)state;
    for (int i = 0; i < 200000; i++)
        buf_addc(&big, (char)i);
    assert_int_equal(file_write_atomic_at(dir_fd, "f", big.data, big.len, 0600, false, &e), 0);
    assert_int_equal(file_read("f", big.len, &b, &e), 0);
    assert_int_equal(b.len, big.len);
    assert_memory_equal(b.data, big.data, big.len);
    assert_int_equal(file_read("f", big.len - 1, &b, &e), -1);
    assert_non_null(strstr(e.text, "199999 bytes"));
}

static void
reading_says_what_is_wrong(void **state)
{
    auto_buf struct buf b = BUF_INIT;
    struct err e;

    (void)state;
    assert_int_equal(file_read("nothing", 10, &b, &e), -1);
    assert_int_equal(e.code, ERR_FAILED);
    assert_non_null(strstr(e.text, "cannot open nothing: "));
    assert_int_equal(file_read(".", 10, &b, &e), -1);
    assert_non_null(strstr(e.text, "is a directory"));
}

static void
reads_a_pipe(void **state)
{
    auto_buf struct buf b = BUF_INIT;
    struct err e;

    (void)state;
    assert_int_equal(mkfifo("fifo", 0600), 0);
    auto_close int fd = open("fifo", O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "through", 7), 7);
    auto_close int reader = open("fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    close(TAKE_FD(fd)); /* the reader keeps the bytes; then end of file */
    auto_close int stdin_copy = dup(STDIN_FILENO);
    assert_int_equal(dup2(reader, STDIN_FILENO), STDIN_FILENO);
    int rc = file_read("-", 100, &b, &e);
    dup2(stdin_copy, STDIN_FILENO);
    assert_int_equal(rc, 0);
    assert_string_equal(b.data, "through");
}

static void
failed_write_leaves_the_old(void **state)
{
    auto_buf struct buf b = BUF_INIT;
    struct err e;

    (void)state;
    assert_int_equal(file_write_atomic_at(dir_fd, "f", "old", 3, 0600, false, &e), 0);
    assert_int_equal(mkdir("f.tmp", 0700), 0); /* blocks the temporary file's name */
    assert_int_equal(file_write_atomic_at(dir_fd, "f", "new", 3, 0600, true, &e), -1);
    assert_non_null(strstr(e.text, "cannot write f: "));
    assert_int_equal(file_read("f", 10, &b, &e), 0);
    assert_string_equal(b.data, "old");
    assert_int_equal(file_write_atomic_at(dir_fd, "nowhere/f", "new", 3, 0600, true, &e), -1);
    auto_close int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (full >= 0) {
        assert_int_equal(file_write_all(full, "x", 1), -1);
        assert_int_equal(errno, ENOSPC);
        assert_int_equal(file_write_all_at(full, "x", 1, 9), -1);
        assert_int_equal(errno, ENOSPC);
    }
}

static int awaited[2];
static volatile sig_atomic_t signals;

/* The test waits for the third one. */
static void
on_alarm(int sig)
{
    (void)sig;
    if (++signals == 3)
        assert_int_equal(write(awaited[1], "x", 1), 1);
}

static void
waits_for_bytes_through_signals(void **state)
{
    const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    const struct sigaction act = {.sa_handler = on_alarm};

    (void)state;
    assert_int_equal(pipe(awaited), 0);
    assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    assert_true(file_await(awaited[0], 60000));
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_true(signals >= 3);
    assert_false(file_await(-1, 1));
    close(awaited[0]);
    close(awaited[1]);
}

static void
makes_folders(void **state)
{
    struct err e;
    struct stat st;

    (void)state;
    assert_int_equal(file_mkdirs("a/b/c", 0700, &e), 0);
    assert_int_equal(file_mkdirs("a/b/c", 0700, &e), 0);
    assert_int_equal(file_mkdirs("a/b/c/", 0700, &e), 0);
    assert_int_equal(stat("a/b/c", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(file_mkdirs("/", 0700, &e), 0);
    assert_int_equal(file_write_atomic_at(dir_fd, "f", "", 0, 0600, false, &e), 0);
    assert_int_equal(file_mkdirs("f", 0700, &e), -1);
    assert_non_null(strstr(e.text, "is not a folder"));
    assert_int_equal(file_mkdirs("f/g", 0700, &e), -1);
}

static void
locks_exclude(void **state)
{
    struct err e;
    bool held;

    (void)state;
    assert_int_equal(file_is_locked_at(dir_fd, "lock", &e), 0); /* no such file */
    int fd = file_lock("lock", &held, &e);
    assert_true(fd >= 0);
    assert_false(held);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(file_is_locked_at(dir_fd, "lock", &e), 1);
    assert_int_equal(file_lock("lock", &held, &e), -1);
    assert_true(held);
    int copy = dup(fd);
    close(fd);
    assert_int_equal(file_is_locked_at(dir_fd, "lock", &e), 1); /* the copy holds it */
    close(copy);
    assert_int_equal(file_is_locked_at(dir_fd, "lock", &e), 0);
    auto_buf struct buf who = BUF_INIT;
    fd = file_lock("lock", &held, &e);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "me", 2), 2);
    assert_int_equal(file_read_locked_at(dir_fd, "lock", 99, &who, &e), 1);
    assert_string_equal(buf_str(&who), "me");
    close(fd);
    assert_int_equal(file_read_locked_at(dir_fd, "lock", 99, &who, &e), 0);
    assert_int_equal(who.len, 0);
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(file_is_locked_at(dir_fd, "fifo", &e), -1); /* without blocking */
    assert_int_equal(file_lock("nowhere/lock", &held, &e), -1);
    assert_false(held);
}

static void
tells_whether_somebody_writes(void **state)
{
    (void)state;
    auto_close int made = open("f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(made >= 0);
    close(TAKE_FD(made));
    auto_close int fd = open("f", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_false(file_has_writers(fd));
    int writer = open("f", O_WRONLY | O_CLOEXEC);
    assert_true(writer >= 0);
    assert_true(file_has_writers(fd));
    close(writer);
    assert_false(file_has_writers(fd));
    /* No lease remains that the next writer would have to wait for. */
    auto_close int next = open("f", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(next >= 0);
}

static void
has_a_file_in_memory_at_its_beginning(void **state)
{
    char text[8] = "";
    auto_close int fd = file_in_memory("test", "words", 5);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(read(fd, text, sizeof text), 5);
    assert_string_equal(text, "words");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(opens_nothing_but_regular_files, enter, leave),
        cmocka_unit_test_setup_teardown(reads_back_what_was_written, enter, leave),
        cmocka_unit_test_setup_teardown(reading_has_a_bound, enter, leave),
        cmocka_unit_test_setup_teardown(reading_says_what_is_wrong, enter, leave),
        cmocka_unit_test_setup_teardown(reads_a_pipe, enter, leave),
        cmocka_unit_test_setup_teardown(failed_write_leaves_the_old, enter, leave),
        cmocka_unit_test_setup_teardown(waits_for_bytes_through_signals, enter, leave),
        cmocka_unit_test_setup_teardown(makes_folders, enter, leave),
        cmocka_unit_test_setup_teardown(locks_exclude, enter, leave),
        cmocka_unit_test_setup_teardown(tells_whether_somebody_writes, enter, leave),
        cmocka_unit_test(has_a_file_in_memory_at_its_beginning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
