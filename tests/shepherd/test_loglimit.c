/* A log that is cut: what remains of it, and the notice in it. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "shepherd/begin/loglimit.h"

#define MIB (1 << 20)

static int
open_log(char *path)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)fcntl(fd, F_SETFL, O_APPEND);
    return fd;
}

static void
add(int fd, char c, size_t n)
{
    char *bytes = malloc(n);
    assert_non_null(bytes);
    memset(bytes, c, n);
    assert_int_equal(write(fd, bytes, n), n);
    free(bytes);
}

static off_t
size_of(int fd)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    return st.st_size;
}

static void
keeps_head_and_end(void **state)
{
    char path[] = "/tmp/loglimit.XXXXXX", text[300] = "";
    int fd = open_log(path);
    struct loglimit l;

    (void)state;
    add(fd, 'o', 1000); /* from an earlier run */
    loglimit_begin(&l, fd, 1000, fd, 2, 0);
    add(fd, 'a', 2 * MIB);
    l.next_us = 1;
    loglimit_look(&l);
    assert_int_equal(size_of(fd), 1000 + 2 * MIB); /* its maximum size */
    add(fd, 'b', MIB);
    l.next_us = 1;
    loglimit_look(&l);
    assert_int_equal(l.cut_bytes, 2 * MIB - MIB / 4);
    /* For readers that are at its end. */
    assert_int_equal(l.moved_at, 1000 + MIB);
    assert_int_equal(l.moved_bytes, 1000 + 3 * MIB - size_of(fd));
    loglimit_look(&l);
    assert_int_equal(l.moved_bytes, 0);
    assert_true(pread(fd, text, sizeof text - 1, 1000 + MIB) > 0);
    assert_non_null(strstr(text, "berth: 2 MiB of output were cut out of this log here"));
    add(fd, 'c', 10);
    assert_int_equal(pread(fd, text, 10, size_of(fd) - 10), 10);
    assert_memory_equal(text, "cccccccccc", 10);
    assert_int_equal(pread(fd, text, 2, 999), 2);
    assert_memory_equal(text, "oa", 2);
    close(fd);
    unlink(path);
}

/* On a busy machine the command writes before its supervisor gets there. */
static void
counts_what_was_written_before_it_begins(void **state)
{
    char path[] = "/tmp/loglimit.XXXXXX";
    int fd = open_log(path);
    struct loglimit l;

    (void)state;
    add(fd, 'o', 1000);
    add(fd, 'a', 5 * MIB);
    loglimit_begin(&l, fd, 1000, fd, 2, 0);
    assert_true(size_of(fd) < 1000 + 2 * MIB);
    assert_true(l.cut_bytes > 3 * MIB);
    close(fd);
    unlink(path);
}

static void
leaves_room_on_the_disk_of_the_queue(void **state)
{
    char path[] = "/tmp/loglimit.XXXXXX", text[300] = "";
    int fd = open_log(path);
    struct loglimit l;

    (void)state;
    /* No disk has this much room. */
    loglimit_begin(&l, fd, 0, fd, 0, INT64_C(1) << 40);
    add(fd, 'a', MIB / 2);
    l.next_us = 1;
    loglimit_look(&l);
    assert_int_equal(size_of(fd), MIB / 2);
    add(fd, 'a', MIB);
    l.next_us = 1;
    loglimit_look(&l);
    assert_true(size_of(fd) < MIB);
    assert_true(pread(fd, text, sizeof text - 1, MIB / 2) > 0);
    assert_non_null(strstr(text, "nearly full (log_reserve_mib)"));
    close(fd);
    unlink(path);
}

/* Makes the disk's required reserve zero, or larger than the disk. */
static void
fill_disk(struct loglimit *l, bool full)
{
    l->reserve = full ? INT64_C(1) << 60 : 1;
    l->next_us = 1;
    loglimit_look(l);
}

/* It is unknown who filled the disk: it may be another user. */
static void
keeps_what_was_there_before_the_disk_was_full(void **state)
{
    char path[] = "/tmp/loglimit.XXXXXX", text[300] = "";
    int fd = open_log(path);
    struct loglimit l;

    (void)state;
    loglimit_begin(&l, fd, 0, fd, 0, 1);
    add(fd, 'a', 5 * MIB);
    fill_disk(&l, false);
    fill_disk(&l, true);
    assert_int_equal(size_of(fd), 5 * MIB);
    add(fd, 'b', 3 * MIB);
    fill_disk(&l, true);
    assert_true(size_of(fd) > 5 * MIB && size_of(fd) < 6 * MIB);
    assert_true(pread(fd, text, sizeof text - 1, 5 * MIB - 1) > 0);
    assert_non_null(strstr(text, "a\nberth: 3 MiB of output were cut out of this log here"));
    assert_int_equal(l.cut_bytes, 3 * MIB - MIB / 4);
    close(fd);
    unlink(path);
}

/* The job filled it: no more remains than of a job that starts on a full disk. */
static void
cuts_one_that_fills_the_disk(void **state)
{
    char path[] = "/tmp/loglimit.XXXXXX";
    int fd = open_log(path);
    struct loglimit l;

    (void)state;
    loglimit_begin(&l, fd, 0, fd, 0, 1);
    add(fd, 'a', 5 * MIB);
    fill_disk(&l, false);
    fill_disk(&l, true);
    l.low_grown = l.reserve / 8; /* over many looks */
    add(fd, 'b', MIB);
    fill_disk(&l, true);
    assert_true(size_of(fd) < MIB);
    close(fd);
    unlink(path);
}

/* The job wrote faster than its supervisor looked, and has ended. */
static void
keeps_last_words(void **state)
{
    static char bytes[2 * MIB];
    char path[] = "/tmp/loglimit.XXXXXX";
    int fd = open_log(path);
    struct loglimit l;

    (void)state;
    loglimit_begin(&l, fd, 0, fd, 1, 0);
    add(fd, 'a', 5 * MIB);
    assert_int_equal(write(fd, "\nline\nlast words\n", 17), 17);
    assert_int_equal(loglimit_end(&l), 5 * MIB + 17 - MIB / 2 - 16);
    assert_true(size_of(fd) < MIB);
    assert_int_equal(pread(fd, bytes, sizeof bytes, 0), size_of(fd));
    assert_non_null(strstr(bytes, "\nberth: 5 MiB of output were cut out of this log here: "
                                  "it has reached its largest size"));
    assert_non_null(strstr(bytes, ")\nline\nlast words\n"));
    /* A log without line breaks keeps what fits. */
    assert_int_equal(ftruncate(fd, 0), 0);
    loglimit_begin(&l, fd, 0, fd, 1, 0);
    add(fd, 'b', 5 * MIB);
    assert_int_equal(loglimit_end(&l), 5 * MIB - MIB / 2 - MIB / 4);
    /* A log short enough is left alone. */
    assert_int_equal(ftruncate(fd, 0), 0);
    loglimit_begin(&l, fd, 0, fd, 1, 0);
    add(fd, 'c', MIB);
    assert_int_equal(loglimit_end(&l), 0);
    assert_int_equal(size_of(fd), MIB);
    close(fd);
    unlink(path);
}

static void
leaves_others_alone(void **state)
{
    char path[] = "/tmp/loglimit.XXXXXX";
    int fd = open_log(path), null = open("/dev/null", O_WRONLY);
    struct loglimit l;

    (void)state;
    loglimit_begin(&l, null, 0, fd, 1, 1);
    assert_int_equal(l.next_us, 0);
    loglimit_begin(&l, fd, 0, fd, 0, 0);
    assert_int_equal(l.next_us, 0);
    close(fd);
    close(null);
    unlink(path);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_head_and_end),
        cmocka_unit_test(counts_what_was_written_before_it_begins),
        cmocka_unit_test(leaves_room_on_the_disk_of_the_queue),
        cmocka_unit_test(keeps_what_was_there_before_the_disk_was_full),
        cmocka_unit_test(cuts_one_that_fills_the_disk),
        cmocka_unit_test(keeps_last_words),
        cmocka_unit_test(leaves_others_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
