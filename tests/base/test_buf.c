/* The growing byte string: its content, the terminating NUL, and what growth preserves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"

static void
empty_is_a_string(void **state)
{
    auto_buf struct buf b = BUF_INIT;

    (void)state;
    assert_string_equal(buf_str(&b), "");
    buf_clear(&b);
    buf_add(&b, NULL, 0);
    assert_int_equal(b.len, 0);
    assert_string_equal(b.data, "");
    buf_drop(&b, 0);
    auto_free char *taken = buf_take(&b);
    assert_string_equal(taken, "");
    assert_null(b.data);
}

static void
keeps_what_was_added(void **state)
{
    auto_buf struct buf b = BUF_INIT;

    (void)state;
    buf_adds(&b, "ab");
    buf_add(&b, "\0c", 2);
    buf_addc(&b, 'd');
    assert_int_equal(b.len, 5);
    assert_memory_equal(b.data, "ab\0cd", 6);
    buf_drop(&b, 3);
    assert_string_equal(b.data, "cd");
    buf_drop(&b, 2);
    assert_string_equal(b.data, "");
}

static void
grows_through_many_sizes(void **state)
{
    auto_buf struct buf b = BUF_INIT;

    (void)state;
    for (int i = 0; i < 100000; i++)
        buf_addc(&b, (char)('a' + i % 26));
    assert_int_equal(b.len, 100000);
    for (int i = 0; i < 100000; i++)
        assert_int_equal(b.data[i], 'a' + i % 26);
    assert_int_equal(b.data[b.len], '\0');
}

static void
formats_longer_than_its_room(void **state)
{
    auto_buf struct buf b = BUF_INIT;

    (void)state;
    for (int width = 1; width < 400; width++) {
        buf_clear(&b);
        buf_adds(&b, "x");
        buf_addf(&b, "%0*d|%s", width, 7, "end");
        assert_int_equal(b.len, (size_t)width + 5);
        assert_int_equal(b.data[width], '7');
        assert_string_equal(b.data + width + 1, "|end");
    }
}

static void
adds_texts_with_their_nul(void **state)
{
    auto_buf struct buf b = BUF_INIT;

    (void)state;
    buf_addz(&b, "one");
    buf_addzf(&b, "%d", 22);
    buf_addz(&b, "");
    assert_int_equal(b.len, 8);
    assert_memory_equal(b.data,
                        "one\0"
                        "22\0",
                        8);
}

static void
taking_empties(void **state)
{
    auto_buf struct buf b = BUF_INIT;

    (void)state;
    buf_adds(&b, "mine");
    auto_free char *taken = buf_take(&b);
    assert_string_equal(taken, "mine");
    assert_null(b.data);
    buf_adds(&b, "next");
    assert_string_equal(buf_str(&b), "next");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_is_a_string),
        cmocka_unit_test(keeps_what_was_added),
        cmocka_unit_test(grows_through_many_sizes),
        cmocka_unit_test(formats_longer_than_its_room),
        cmocka_unit_test(adds_texts_with_their_nul),
        cmocka_unit_test(taking_empties),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
