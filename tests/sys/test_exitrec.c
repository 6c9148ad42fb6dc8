/* The exit record: an encoded record decodes to the same, and an invalid one is refused. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "sys/exitrec.h"

static struct exitrec
sample(void)
{
    struct exitrec r;
    memset(&r, 0, sizeof r); /* compared as bytes below */
    r.job = 4294967295U;
    r.attempt = 7;
    r.started_us = 1772372530000000;
    snprintf(r.boot_id, sizeof r.boot_id, "3f2c0c5e-1111-2222-3333-444455556666");
    snprintf(r.by, sizeof r.by, "alice \"the\" \\ user");
    r.ending.outcome = OUTCOME_EXITED;
    r.ending.code = 255;
    r.ending.ended_us = 1772372531000000;
    r.ending.run_ms = 1000;
    r.ending.cpu_ms = 900;
    r.ending.max_rss_kib = 123456;
    r.ending.log_cut_bytes = 7654321;
    r.ending.oom = OOM_CUDA;
    snprintf(r.ending.text, sizeof r.ending.text, "CUDA out of memory. \xc3\xa4");
    return r;
}

static void
expect_round_trip(const struct exitrec *r)
{
    static const char *const FORMS[] = {NULL, "ended"};
    for (int i = 0; i < 2; i++) {
        auto_buf struct buf text = BUF_INIT;
        struct exitrec back;
        struct err e = {0};
        exitrec_encode(r, FORMS[i], &text);
        if (exitrec_decode(text.data, text.len, &back, &e) < 0)
            fail_msg("%s: %s", buf_str(&text), e.text);
        assert_memory_equal(&back, r, sizeof back);
        assert_null(strchr(buf_str(&text), '\n'));
    }
}

static void
test_round_trip(void **state)
{
    (void)state;
    struct exitrec r = sample();
    expect_round_trip(&r);
    r.ending.outcome = OUTCOME_SIGNALED;
    r.ending.code = -1;
    r.ending.signal = 64;
    r.ending.oom = OOM_HOST;
    expect_round_trip(&r);
    r.ending.outcome = OUTCOME_TIMEOUT; /* a process that could not be killed has neither */
    r.ending.signal = 0;
    expect_round_trip(&r);
    r.ending.outcome = OUTCOME_CANCELLED;
    r.ending.code = 0;
    expect_round_trip(&r);
    r.ending.outcome = OUTCOME_PREEMPTED;
    r.warned_us = 1772372530500000;
    expect_round_trip(&r);
    r.ending.outcome = OUTCOME_REQUEUED;
    r.warned_us = 0;
    expect_round_trip(&r);
    r.ending.outcome = OUTCOME_SETUP_FAILED;
    expect_round_trip(&r);
    r.ending.outcome = OUTCOME_NOT_STARTED;
    r.ending.code = -1;
    r.ending.errno_value = 2;
    r.ending.cpu_ms = r.ending.max_rss_kib = -1;
    r.started_us = 0;
    r.ending.oom = OOM_NONE;
    expect_round_trip(&r);
}

#define GOOD                                                                                   \
    "\"version\":1,\"job\":1,\"attempt\":1,\"outcome\":\"exited\",\"code\":0,\"ended_us\":5,"  \
    "\"run_ms\":1"

static void
test_what_is_wrong_is_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "{\"version\":1,\"job\":1,\"attempt\":1,\"outcome\":\"setup_failed\",\"ended_us\":5,"
        "\"run_ms\":1}",
        "",
        "{}",
        "[]",
        "7",
        "{" GOOD "} x",
        "{" GOOD ",\"code\":1}",
        "{" GOOD ",\"signal\":65}",
        "{" GOOD ",\"signal\":0}",
        "{" GOOD ",\"signal\":\"9\"}",
        "{" GOOD ",\"oom\":\"disk\"}",
        "{" GOOD ",\"oom\":1}",
        "{" GOOD ",\"text\":1}",
        "{" GOOD ",\"errno\":-1}",
        "{" GOOD ",\"cpu_ms\":-5}",
        "{" GOOD ",\"log_cut_bytes\":-5}",
        "{" GOOD ",\"cpu_ms\":1.5}",
        "{\"version\":2,\"job\":1,\"attempt\":1,\"outcome\":\"exited\",\"code\":0,\"ended_us\":"
        "5,"
        "\"run_ms\":1}",
        "{\"version\":1,\"attempt\":1,\"outcome\":\"exited\",\"code\":0,\"ended_us\":5,"
        "\"run_ms\":1}",
        "{\"version\":1,\"job\":1,\"attempt\":1,\"outcome\":\"exited\",\"code\":256,\"ended_"
        "us\":5,"
        "\"run_ms\":1}",
        "{\"version\":1,\"job\":1,\"attempt\":1,\"outcome\":\"exited\",\"code\":null,"
        "\"ended_us\":5,\"run_ms\":1}",
        "{\"version\":1,\"job\":1,\"attempt\":1,\"outcome\":\"signaled\",\"code\":1,"
        "\"ended_us\":5,\"run_ms\":1}",
        "{\"version\":1,\"job\":1,\"attempt\":1,\"outcome\":\"never_ran\",\"code\":1,\"ended_"
        "us\":5,"
        "\"run_ms\":1}",
        "{\"version\":1,\"job\":1,\"attempt\":1,\"outcome\":\"exited\",\"code\":1,\"run_ms\":"
        "1}",
        "{\"version\":1,\"job\":4294967296,\"attempt\":1,\"outcome\":\"exited\",\"code\":1,"
        "\"ended_us\":5,\"run_ms\":1}",
    };
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct exitrec r;
        struct err e = {0};
        if (exitrec_decode(BAD[i], strlen(BAD[i]), &r, &e) == 0)
            fail_msg("taken for a record: %s", BAD[i]);
        assert_true(strncmp(e.text, "exit record: ", 13) == 0);
    }
}

static void
test_unknown_fields_and_long_texts(void **state)
{
    (void)state;
    struct exitrec r;
    struct err e;
    auto_buf struct buf text = BUF_INIT;
    buf_adds(&text, "{" GOOD ",\"colour\":[1,2],\"text\":\"");
    for (int i = 0; i < 100; i++)
        buf_adds(&text, "\xe2\x82\xac"); /* three bytes each: 159 is 53 of them */
    buf_adds(&text, "\"}");
    assert_int_equal(exitrec_decode(text.data, text.len, &r, &e), 0);
    assert_int_equal(strlen(r.ending.text), 159);
    assert_int_equal(r.ending.cpu_ms, -1);
    assert_int_equal(r.ending.oom, OOM_NONE);
    while (text.len <= EXITREC_MAX_BYTES)
        buf_addc(&text, ' ');
    assert_int_equal(exitrec_decode(text.data, text.len, &r, &e), -1);
}

/* A scratch folder with one file in it. */
static int
folder_with(const char *name, const char *text, char *path)
{
    snprintf(path, 64, "/tmp/berth-exitrec-XXXXXX");
    assert_non_null(mkdtemp(path));
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir >= 0);
    auto_close int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    return dir;
}

static void
remove_folder(int dir, const char *path, const char *name)
{
    unlinkat(dir, name, 0);
    close(dir);
    assert_int_equal(rmdir(path), 0);
}

static void
test_reading_the_file(void **state)
{
    (void)state;
    struct exitrec r;
    struct err e;
    char path[64];
    int dir = folder_with("exit", "{" GOOD "}\n", path);
    assert_int_equal(exitrec_read_at(dir, 1, 1, &r, &e), 1);
    assert_int_equal(r.ending.code, 0);
    assert_int_equal(exitrec_read_at(dir, 2, 1, &r, &e), -1);
    assert_string_equal(e.text, "the exit record is that of job 1, attempt 1");
    assert_int_equal(exitrec_read_at(dir, 1, 2, &r, &e), -1);
    unlinkat(dir, "exit", 0);
    assert_int_equal(exitrec_read_at(dir, 1, 1, &r, &e), 0);
    assert_int_equal(symlinkat("/etc/hostname", dir, "exit"), 0);
    assert_int_equal(exitrec_read_at(dir, 1, 1, &r, &e), -1);
    unlinkat(dir, "exit", 0);
    assert_int_equal(mkfifoat(dir, "exit", 0600), 0);
    assert_int_equal(exitrec_read_at(dir, 1, 1, &r, &e), -1);
    remove_folder(dir, path, "exit");
}

static int
read_mark(const char *text, int32_t *pid, int64_t *boot_us)
{
    struct err e;
    char path[64];
    int dir = folder_with("lock", text, path);
    int rc = exitrec_started_at(dir, pid, boot_us, &e);
    remove_folder(dir, path, "lock");
    return rc;
}

static void
test_started_mark(void **state)
{
    (void)state;
    char mark[160], stale[200];
    int32_t pid = 0;
    int64_t boot_us = 0;
    assert_true(exitrec_started_mark(4711, 123456789, mark, sizeof mark) > 0);
    assert_int_equal(strncmp(mark, "started 4711\n", 13), 0);
    assert_int_equal(read_mark(mark, &pid, &boot_us), 1);
    assert_int_equal(pid, 4711);
    assert_int_equal(boot_us, 123456789);
    assert_int_equal(read_mark("", &pid, &boot_us), 0);
    assert_int_equal(read_mark("started 12\n", &pid, &boot_us), 1);
    assert_int_equal(boot_us, -1);
    snprintf(stale, sizeof stale, "started 12\nboot_us 5\nboot_id another-boot\n");
    assert_int_equal(read_mark(stale, &pid, &boot_us), 1);
    assert_int_equal(boot_us, -1);
    assert_int_equal(read_mark("started", &pid, &boot_us), -1);
    assert_int_equal(read_mark("started -1\n", &pid, &boot_us), -1);
    assert_int_equal(read_mark("rubbish\n", &pid, &boot_us), -1);
    assert_int_equal(exitrec_started_mark(1, 1, mark, 10), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_what_is_wrong_is_refused),
        cmocka_unit_test(test_unknown_fields_and_long_texts),
        cmocka_unit_test(test_reading_the_file),
        cmocka_unit_test(test_started_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
