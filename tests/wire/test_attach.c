/* Frames of attached clients: whole and split anywhere, too long, malformed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/attach_frames.h"

static void
add_some(struct buf *out)
{
    attach_add(out, ATTACH_HELLO, "{}", 2);
    attach_add(out, ATTACH_INPUT, "a\0b\r\n", 5);
    attach_add(out, ATTACH_EOF, NULL, 0);
    attach_add_winsize(out, 50, 300);
    char *room = attach_begin_output(out, UINT64_C(0x123456789a));
    room[0] = (char)0xff;
    room[1] = (char)0xfe;
    attach_end_output(out, 2);
    (void)attach_begin_output(out, 7);
    attach_end_output(out, 0); /* no output: no frame */
    attach_add(out, ATTACH_ENDED, "x", 1);
}

/* The same frames come out, whatever pieces they arrive in. */
static void
test_frames_survive_every_cut(void **state)
{
    (void)state;
    auto_buf struct buf all = BUF_INIT;
    add_some(&all);
    for (size_t cut = 0; cut <= all.len; cut++) {
        auto_buf struct buf in = BUF_INIT;
        auto_buf struct buf types = BUF_INIT;
        struct attach_frame f;
        size_t at = 0;
        int rc;
        buf_add(&in, all.data, cut);
        while ((rc = attach_next(&in, &at, &f)) == 1)
            buf_addc(&types, f.type);
        assert_int_equal(rc, 0);
        buf_add(&in, all.data + cut, all.len - cut);
        while ((rc = attach_next(&in, &at, &f)) == 1)
            buf_addc(&types, f.type);
        assert_int_equal(rc, 0);
        assert_int_equal(at, all.len);
        assert_string_equal(buf_str(&types), "hiewox");
    }
}

static void
next_of(const struct buf *in, size_t *at, char type, struct attach_frame *f)
{
    do
        assert_int_equal(attach_next(in, at, f), 1);
    while (f->type != type);
}

static void
test_contents(void **state)
{
    (void)state;
    auto_buf struct buf all = BUF_INIT;
    struct attach_frame f;
    uint16_t rows, columns;
    uint64_t offset;
    const char *bytes;
    size_t n, at = 0;
    add_some(&all);
    next_of(&all, &at, ATTACH_INPUT, &f);
    assert_int_equal(f.n, 5);
    assert_memory_equal(f.bytes, "a\0b\r\n", 5);
    next_of(&all, &at, ATTACH_WINSIZE, &f);
    assert_int_equal(attach_get_winsize(&f, &rows, &columns), 0);
    assert_int_equal(rows, 50);
    assert_int_equal(columns, 300);
    next_of(&all, &at, ATTACH_OUTPUT, &f);
    assert_int_equal(attach_get_output(&f, &offset, &bytes, &n), 0);
    assert_int_equal(offset, UINT64_C(0x123456789a));
    assert_int_equal(n, 2);
    assert_memory_equal(bytes, "\xff\xfe", 2);
}

static void
test_what_makes_no_sense(void **state)
{
    (void)state;
    auto_buf struct buf in = BUF_INIT;
    struct attach_frame f, tiny = {.type = ATTACH_OUTPUT, .bytes = "1234", .n = 4};
    uint16_t rows, columns;
    uint64_t offset;
    const char *bytes;
    size_t at = 0, n;
    static const char too_long[] = {ATTACH_INPUT, 0, 1, 0, 1};
    static const char huge[] = {ATTACH_INPUT, '\xff', '\xff', '\xff', '\xff'};
    static const char full[] = {ATTACH_INPUT, 0, 1, 0, 0};
    buf_add(&in, too_long, sizeof too_long);
    assert_int_equal(attach_next(&in, &at, &f), -1);
    buf_clear(&in);
    buf_add(&in, huge, sizeof huge);
    assert_int_equal(attach_next(&in, &at, &f), -1);
    buf_clear(&in);
    buf_add(&in, full, sizeof full); /* the longest allowed: only the rest is missing */
    assert_int_equal(attach_next(&in, &at, &f), 0);
    assert_int_equal(at, 0);
    assert_int_equal(attach_get_output(&tiny, &offset, &bytes, &n), -1);
    tiny.n = 3;
    assert_int_equal(attach_get_winsize(&tiny, &rows, &columns), -1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_survive_every_cut),
        cmocka_unit_test(test_contents),
        cmocka_unit_test(test_what_makes_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
