/* The log: one line a fact, levels, and lines that other people's words cannot break. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"

static void
check_line(const char *line, const char *rest)
{
    /* 2026-03-01T14:02:10.123Z */
    assert_true(strlen(line) > 25);
    assert_int_equal(line[10], 'T');
    assert_int_equal(line[19], '.');
    assert_int_equal(line[23], 'Z');
    assert_memory_equal(line + 24, rest, strlen(rest));
}

static void
writes_lines_of_its_level(void **state)
{
    char path[] = "/tmp/berth-test-log-XXXXXX";
    auto_buf struct buf b = BUF_INIT;
    struct err e;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(log_open(path, &e), 0);
    log_set_program("berthd"); /* only for stderr */
    log_debug("job=%d event=unseen", 1);
    log_info("job=%d command=%s", 12, "echo 'a\nb'\x1b[2J");
    log_set_level(LOG_LEVEL_ERROR);
    log_warn("job=3 event=unseen");
    log_error("job=%d event=lost", 4);
    log_set_level(LOG_LEVEL_DEBUG);
    log_debug("job=5");
    assert_int_equal(file_read(path, 10000, &b, &e), 0);
    char *second = strchr(b.data, '\n') + 1;
    check_line(b.data, " info job=12 command=echo 'a\\nb'\\x1B[2J\n");
    check_line(second, " error job=4 event=lost\n");
    char *third = strchr(second, '\n') + 1;
    check_line(third, " debug job=5\n");
    assert_string_equal(strchr(third, '\n'), "\n");
    unlink(path);
}

static void
says_why_it_cannot_open(void **state)
{
    struct err e;

    (void)state;
    assert_int_equal(log_open("/nowhere/at/all.log", &e), -1);
    assert_non_null(strstr(e.text, "/nowhere/at/all.log"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_lines_of_its_level),
        cmocka_unit_test(says_why_it_cannot_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
