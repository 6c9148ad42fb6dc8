/* The dmem controller, against files like those of cgroupfs. */
#include <errno.h>
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
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "sys/dmem.h"

static char dir[64];

static int
setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/berth-dmem-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int
teardown(void **state)
{
    static const char *const names[] = {"dmem.capacity", "dmem.max", "dmem.current",
                                        "dmem.peak"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        auto_free char *path = xasprintf("%s/%s", dir, names[i]);
        unlink(path);
    }
    return rmdir(dir);
}

static void
put(const char *name, const char *text)
{
    auto_free char *path = xasprintf("%s/%s", dir, name);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void
test_regions(void **state)
{
    char key[64] = "none";
    (void)state;
    assert_int_equal(dmem_find_region(dir, "0000:03:00.0", key, sizeof key), 0);
    put("dmem.capacity", "drm/0000:03:00.0/vram0 17095983104\n"
                         "drm/0000:03:00.0/stolen 67108864\n"
                         "drm/0000:08:00.0/vram 25753026560\n"
                         "nvidia/0000:09:00.0/vidmem 25753026560\n"
                         "drm/0000:0a:00.0/vram0 100\ndrm/0000:0a:00.0/vram1 100\n"
                         "drm/0000:0b:00.0\n");
    assert_int_equal(dmem_find_region(dir, "0000:03:00.0", key, sizeof key), 1);
    assert_string_equal(key, "drm/0000:03:00.0/vram0");
    assert_int_equal(dmem_find_region(dir, "0000:08:00.0", key, sizeof key), 1);
    assert_string_equal(key, "drm/0000:08:00.0/vram");
    assert_int_equal(dmem_find_region(dir, "0000:09:00.0", key, sizeof key), 0);
    assert_int_equal(dmem_find_region(dir, "0000:0a:00.0", key, sizeof key), 2);
    assert_int_equal(dmem_find_region(dir, "0000:0b:00.0", key, sizeof key), 0);
    assert_int_equal(dmem_find_region(dir, "0000:08:00.0", key, 5), 0);
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
test_limit(void **state)
{
    (void)state;
    auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(dmem_set_max(fd, "drm/0000:08:00.0/vram", 100), -1);
    assert_int_equal(errno, ENOENT); /* the group has no such controller */
    put("dmem.max", "");
    assert_int_equal(dmem_set_max(fd, "drm/0000:08:00.0/vram", 9227468800), 0);
    expect_max("drm/0000:08:00.0/vram 9227468800\n");
    put("dmem.max", "");
    assert_int_equal(dmem_set_max(fd, "drm/0000:08:00.0/vram", -1), 0);
    expect_max("drm/0000:08:00.0/vram max\n");
}

static void
test_use(void **state)
{
    (void)state;
    assert_int_equal(dmem_read_bytes(dir, "dmem.current", "drm/a/vram"), -1);
    put("dmem.current", "drm/a/vram0 5\ndrm/a/vram 9227468800\ndrm/b/vram x\ndrm/c/vram max\n");
    assert_int_equal(dmem_read_bytes(dir, "dmem.current", "drm/a/vram"), 9227468800);
    assert_int_equal(dmem_read_bytes(dir, "dmem.current", "drm/b/vram"), -1);
    assert_int_equal(dmem_read_bytes(dir, "dmem.current", "drm/c/vram"), -1);
    assert_int_equal(dmem_read_bytes(dir, "dmem.current", "drm/d/vram"), -1);
    assert_int_equal(dmem_read_bytes(dir, "dmem.peak", "drm/a/vram"), -1);
    put("dmem.peak", "drm/a/vram 0\n");
    assert_int_equal(dmem_read_bytes(dir, "dmem.peak", "drm/a/vram"), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_regions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_use, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
