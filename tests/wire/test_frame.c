/* Lines from a byte stream, however it is split. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "wire/frame.h"

static void
feed(struct frame *f, const char *bytes, size_t n)
{
    char *room = frame_room(f, n);
    assert_non_null(room);
    memcpy(room, bytes, n);
    frame_filled(f, n);
}

/* Appends all whole lines to out, joined by '|'. */
static void
drain(struct frame *f, char *out, size_t size)
{
    size_t at = 0, len;
    const char *line;
    while ((line = frame_next(f, &at, &len))) {
        assert_int_equal(strlen(line), len);
        snprintf(out + strlen(out), size - strlen(out), "%s|", line);
    }
    frame_done(f, at);
}

static void
test_every_cut(void **state)
{
    static const char text[] = "one\n\ntwo words\nthree\n";
    (void)state;
    for (size_t piece = 1; piece < sizeof text; piece++) {
        struct frame f;
        char out[64] = "";
        frame_init(&f, 1024);
        for (size_t at = 0; at < sizeof text - 1; at += piece) {
            size_t left = sizeof text - 1 - at;
            feed(&f, text + at, left < piece ? left : piece);
            drain(&f, out, sizeof out);
        }
        assert_string_equal(out, "one||two words|three|");
        frame_free(&f);
    }
}

static void
test_a_rest_is_kept(void **state)
{
    struct frame f;
    char out[64] = "";
    (void)state;
    frame_init(&f, 1024);
    feed(&f, "whole\nhal", 9);
    drain(&f, out, sizeof out);
    assert_string_equal(out, "whole|");
    feed(&f, "f\n", 2);
    drain(&f, out, sizeof out);
    assert_string_equal(out, "whole|half|");
    frame_free(&f);
}

static void
test_too_long_a_line_is_refused(void **state)
{
    struct frame f;
    char junk[64];
    (void)state;
    memset(junk, 'x', sizeof junk);
    frame_init(&f, 100);
    feed(&f, junk, sizeof junk);
    feed(&f, junk, sizeof junk);
    assert_null(frame_room(&f, 1));
    frame_free(&f);
}

static void
test_a_long_line_in_small_pieces_costs_linear_time(void **state)
{
    enum { N = 8 << 20, PIECE = 1024 };
    static char piece[PIECE];
    struct frame f;
    size_t at = 0, len = 0;
    (void)state;
    memset(piece, 'y', sizeof piece);
    frame_init(&f, (size_t)2 * N);
    for (int i = 0; i < N / PIECE; i++) {
        feed(&f, piece, PIECE);
        at = 0;
        assert_null(frame_next(&f, &at, &len));
        frame_done(&f, at);
        /* Bytes already searched are not searched again: that makes it linear. */
        assert_int_equal(f.scanned, f.bytes.len);
    }
    feed(&f, "\n", 1);
    at = 0;
    assert_non_null(frame_next(&f, &at, &len));
    assert_int_equal(len, N);
    frame_done(&f, at);
    assert_int_equal(f.bytes.cap, 0); /* one huge line does not keep its memory */
    frame_free(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_a_rest_is_kept),
        cmocka_unit_test(test_too_long_a_line_is_refused),
        cmocka_unit_test(test_a_long_line_in_small_pieces_costs_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
