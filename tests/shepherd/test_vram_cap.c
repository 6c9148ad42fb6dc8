/* A supervisor's part in VRAM caps: its reading of the spec, and the kernel's controller in a
 * folder that imitates a cgroup. */
#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../sys/dmem_dir.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "shepherd/common/vram_cap.h"
#include "wire/client.h"

static json_t *
spec(const char *rest)
{
    auto_free char *text =
        xasprintf("{\"cap\":{\"mib\":8800,\"group\":\"%s\",\"keys\":[\"drm/a/vram\"]%s}}",
                  dmem_dir, rest);
    json_t *o = json_loads(text, 0, NULL);
    assert_non_null(o);
    return o;
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
    auto_close int fd = open(dmem_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    vram_cap_read(o, &wish);
    assert_int_equal(wish.mib, 8800);
    assert_int_equal(vram_cap_set(&wish, -1, &e), -1);
    assert_string_equal(e.text, "its cgroup could not be made");
    assert_int_equal(vram_cap_set(&wish, fd, &e), -1);
    assert_non_null(strstr(e.text, "the kernel does not limit drm/a/vram"));
    dmem_dir_put("dmem.max", "");
    assert_int_equal(vram_cap_set(&wish, fd, &e), 0);
    dmem_dir_expect_max("drm/a/vram 9227468800\n");
    dmem_dir_put("dmem.max", "");
    vram_cap_clear(&wish);
    dmem_dir_expect_max("drm/a/vram max\n");
}

/* The probe is not beside this test's program: that is reported, and the job does not
 * start. */
static void
test_without_a_probe(void **state)
{
    struct cap_wish wish;
    struct err e = {0};
    (void)state;
    dmem_dir_put("dmem.max", "");
    auto_json json_t *o = spec(",\"by\":\"nvml\",\"gpus\":\"GPU-a\"");
    auto_close int fd = open(dmem_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    vram_cap_read(o, &wish);
    assert_int_equal(vram_cap_set(&wish, fd, &e), -1);
    assert_non_null(strstr(e.text, "berth-probe"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_none_is_asked_for, dmem_dir_make, dmem_dir_remove),
        cmocka_unit_test_setup_teardown(test_by_the_kernel, dmem_dir_make, dmem_dir_remove),
        cmocka_unit_test_setup_teardown(test_without_a_probe, dmem_dir_make, dmem_dir_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
