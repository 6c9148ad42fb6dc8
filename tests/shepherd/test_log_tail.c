/* The end of a log, from its open descriptor and reopened by name. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "shepherd/attempt/log_tail.h"

#define NOBODY 65534

static char path[32];

static void
make_log(const char *words)
{
    strcpy(path, "/tmp/berth-tail.XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, words, strlen(words)), (ssize_t)strlen(words));
    close(fd);
}

static void
test_a_log_that_is_open_for_writing_alone_is_opened_again(void **state)
{
    static char out[LOG_TAIL_BYTES];
    (void)state;
    make_log("before: after");
    int fd = open(path, O_WRONLY | O_APPEND);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(log_tail_read(fd, 8, out), 5);
    assert_memory_equal(out, "after", 5);
    assert_int_equal(log_tail_read(fd, 100, out), 13); /* truncated since */
    close(fd);
}

/* As for root on a file server that maps root to nobody. */
static void
test_a_log_that_is_open_for_reading_needs_no_right_to_open_it(void **state)
{
    static char out[LOG_TAIL_BYTES];
    (void)state;
    make_log("CUDA out of memory");
    int fd = open(path, O_RDWR | O_APPEND);
    assert_int_equal(chmod(path, 0), 0);
    uid_t before = geteuid();
    if (before == 0)
        assert_int_equal(seteuid(NOBODY), 0);
    size_t n = log_tail_read(fd, 0, out);
    assert_int_equal(seteuid(before), 0);
    assert_int_equal(n, 18);
    assert_memory_equal(out, "CUDA out of memory", 18);
    assert_int_equal(unlink(path), 0);
    close(fd);
}

static void
test_what_is_no_file_has_no_end(void **state)
{
    static char out[LOG_TAIL_BYTES];
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(log_tail_read(ends[0], 0, out), 0);
    assert_int_equal(log_tail_read(-1, 0, out), 0);
    close(ends[0]);
    close(ends[1]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_log_that_is_open_for_writing_alone_is_opened_again),
        cmocka_unit_test(test_a_log_that_is_open_for_reading_needs_no_right_to_open_it),
        cmocka_unit_test(test_what_is_no_file_has_no_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
