/* A supervisor's part in caps: what it reads from the spec, the kernel's controller against a
 * folder that looks like a group. */
#include <fcntl.h>
#include <jansson.h>
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
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "shepherd/common/vram_cap.h"
#include "wire/client.h"

static char dir[64];

static int
setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/berth-cap-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int
teardown(void **state)
{
    (void)state;
    auto_free char *path = xasprintf("%s/dmem.max", dir);
    unlink(path);
    return rmdir(dir);
}

static json_t *
spec(const char *rest)
{
    auto_free char *text = xasprintf(
        "{\"cap\":{\"mib\":8800,\"group\":\"%s\",\"keys\":[\"drm/a/vram\"]%s}}", dir, rest);
    json_t *o = json_loads(text, 0, NULL);
    assert_non_null(o);
    return o;
}

static void
expect_max(const char *want)
{
    auto_buf struct buf text = BUF_INIT;
    auto_free char *path = xasprintf("%s/dmem.max", dir);
    assert_int_equal(file_read(path, 1000, &text, NULL), 0);
    assert_string_equal(buf_str(&text), want);
}

static void
make_max(void)
{
    auto_free char *path = xasprintf("%s/dmem.max", dir);
    close(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
}

static void
test_none_is_asked_for(void **state)
{
    static const char *const specs[] = {
        "{}", "{\"cap\":{\"mib\":0,\"group\":\"g\"}}", "{\"cap\":{\"mib\":5}}",
        "{\"cap\":{\"mib\":5,\"group\":\"g\",\"by\":\"nvml\"}}"};
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        struct cap_wish wish;
        auto_json json_t *o = json_loads(specs[i], 0, NULL);
        vram_cap_read(o, &wish);
        assert_int_equal(wish.mib, 0);
    }
}

static void
test_by_the_kernel(void **state)
{
    struct cap_wish wish;
    struct err e = {0};
    (void)state;
    auto_json json_t *o = spec("");
    auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    vram_cap_read(o, &wish);
    assert_int_equal(wish.mib, 8800);
    assert_int_equal(vram_cap_set(&wish, -1, &e), -1);
    assert_string_equal(e.text, "its cgroup could not be made");
    assert_int_equal(vram_cap_set(&wish, fd, &e), -1);
    assert_non_null(strstr(e.text, "the kernel does not limit drm/a/vram"));
    make_max();
    assert_int_equal(vram_cap_set(&wish, fd, &e), 0);
    expect_max("drm/a/vram 9227468800\n");
    make_max();
    vram_cap_clear(&wish);
    expect_max("drm/a/vram max\n");
}

/* The probe is not beside this test's program: that is said, and the job does not start. */
static void
test_without_a_probe(void **state)
{
    struct cap_wish wish;
    struct err e = {0};
    (void)state;
    make_max();
    auto_json json_t *o = spec(",\"by\":\"nvml\",\"gpus\":\"GPU-a\"");
    auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    vram_cap_read(o, &wish);
    assert_int_equal(vram_cap_set(&wish, fd, &e), -1);
    assert_non_null(strstr(e.text, "berth-probe"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_none_is_asked_for, setup, teardown),
        cmocka_unit_test_setup_teardown(test_by_the_kernel, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_a_probe, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
