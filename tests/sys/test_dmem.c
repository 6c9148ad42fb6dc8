/* The dmem controller, with files like those of cgroupfs. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "dmem_dir.h"
#include "sys/dmem.h"

static void
test_regions(void **state)
{
    char key[64] = "none";
    int64_t bytes;
    (void)state;
    assert_int_equal(dmem_find_region(dmem_dir, "0000:03:00.0", key, sizeof key, &bytes), 0);
    dmem_dir_put("dmem.capacity", "drm/0000:03:00.0/vram0 17095983104\n"
                                  "drm/0000:03:00.0/stolen 67108864\n"
                                  "drm/0000:08:00.0/vram 25753026560\n"
                                  "nvidia/0000:09:00.0/vidmem 25753026560\n"
                                  "drm/0000:0a:00.0/vram0 100\ndrm/0000:0a:00.0/vram1 100\n"
                                  "drm/0000:0b:00.0\n");
    assert_int_equal(dmem_find_region(dmem_dir, "0000:03:00.0", key, sizeof key, &bytes), 1);
    assert_string_equal(key, "drm/0000:03:00.0/vram0");
    assert_int_equal(bytes, 17095983104);
    assert_int_equal(dmem_find_region(dmem_dir, "0000:08:00.0", key, sizeof key, &bytes), 1);
    assert_string_equal(key, "drm/0000:08:00.0/vram");
    assert_int_equal(dmem_find_region(dmem_dir, "0000:09:00.0", key, sizeof key, &bytes), 0);
    assert_int_equal(dmem_find_region(dmem_dir, "0000:0a:00.0", key, sizeof key, &bytes), 2);
    assert_int_equal(bytes, 200);
    assert_int_equal(dmem_find_region(dmem_dir, "0000:0b:00.0", key, sizeof key, &bytes), 0);
    assert_int_equal(dmem_find_region(dmem_dir, "0000:08:00.0", key, 5, &bytes), 0);
}

static void
test_limit(void **state)
{
    (void)state;
    auto_close int fd = open(dmem_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(dmem_set_max(fd, "drm/0000:08:00.0/vram", 100), -1);
    assert_int_equal(errno, ENOENT); /* the group lacks this controller */
    dmem_dir_put("dmem.max", "");
    assert_int_equal(dmem_set_max(fd, "drm/0000:08:00.0/vram", 9227468800), 0);
    dmem_dir_expect_max("drm/0000:08:00.0/vram 9227468800\n");
    dmem_dir_put("dmem.max", "");
    assert_int_equal(dmem_set_max(fd, "drm/0000:08:00.0/vram", -1), 0);
    dmem_dir_expect_max("drm/0000:08:00.0/vram max\n");
}

static void
test_use(void **state)
{
    (void)state;
    assert_int_equal(dmem_read_bytes(dmem_dir, "dmem.current", "drm/a/vram"), -1);
    dmem_dir_put("dmem.current",
                 "drm/a/vram0 5\ndrm/a/vram 9227468800\ndrm/b/vram x\ndrm/c/vram max\n");
    assert_int_equal(dmem_read_bytes(dmem_dir, "dmem.current", "drm/a/vram"), 9227468800);
    assert_int_equal(dmem_read_bytes(dmem_dir, "dmem.current", "drm/b/vram"), -1);
    assert_int_equal(dmem_read_bytes(dmem_dir, "dmem.current", "drm/c/vram"), -1);
    assert_int_equal(dmem_read_bytes(dmem_dir, "dmem.current", "drm/d/vram"), -1);
    assert_int_equal(dmem_read_bytes(dmem_dir, "dmem.peak", "drm/a/vram"), -1);
    dmem_dir_put("dmem.peak", "drm/a/vram 0\n");
    assert_int_equal(dmem_read_bytes(dmem_dir, "dmem.peak", "drm/a/vram"), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_regions, dmem_dir_make, dmem_dir_remove),
        cmocka_unit_test_setup_teardown(test_limit, dmem_dir_make, dmem_dir_remove),
        cmocka_unit_test_setup_teardown(test_use, dmem_dir_make, dmem_dir_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
