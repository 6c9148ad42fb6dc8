/* A folder that stands for a cgroup with the dmem controller, made for each test. Include this
 * after cmocka.h; dmem_dir is the folder. */
#ifndef TESTS_SYS_DMEM_DIR_H
#define TESTS_SYS_DMEM_DIR_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

static char dmem_dir[64];

static int
dmem_dir_make(void **state)
{
    (void)state;
    snprintf(dmem_dir, sizeof dmem_dir, "/tmp/berth-dmem-XXXXXX");
    return mkdtemp(dmem_dir) ? 0 : -1;
}

static int
dmem_dir_remove(void **state)
{
    static const char *const names[] = {"dmem.capacity", "dmem.max", "dmem.current",
                                        "dmem.peak"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        auto_free char *path = xasprintf("%s/%s", dmem_dir, names[i]);
        unlink(path);
    }
    return rmdir(dmem_dir);
}

static void
dmem_dir_put(const char *name, const char *text)
{
    auto_free char *path = xasprintf("%s/%s", dmem_dir, name);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void
dmem_dir_expect_max(const char *want)
{
    auto_buf struct buf text = BUF_INIT;
    auto_free char *path = xasprintf("%s/dmem.max", dmem_dir);
    assert_int_equal(file_read(path, 1000, &text, NULL), 0);
    assert_string_equal(buf_str(&text), want);
}

#endif
