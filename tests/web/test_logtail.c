/* A log as text, as a terminal would have shown it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/text.h"
#include "web/pages/logtail.h"

#define BAD "\xef\xbf\xbd"

static void
test_cases(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"one\ntwo\n", "one\ntwo\n"},
        {"\033[1;31mred\033[0m", "red"},
        {"\033]0;title\aon", "on"},
        {"\033]8;;http://x\033\\link\033]8;;\033\\", "link"},
        {"\033]no end\nnext", "\nnext"},
        {"\033(Bx", "x"},
        {"10 %\r20 %\r30 %", "30 %"},
        {"10 %\r20 %\r30 %\r", "30 %"},
        {"dos\r\nlines\r\n", "dos\nlines\n"},
        {"first\nab\rc\n", "first\nc\n"},
        {"abc\b\bd", "ad"},
        {"\b\bx", "x"},
        {"\xc3\xa4\b"
         "a",
         "a"},
        {"line\n\bx", "line\nx"},
        {"a\tb", "a\tb"},
        {"\001\377", BAD BAD},
        {"\033", ""},
        {"\033[", ""},
        {"\033[31", ""},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buf out = BUF_INIT;
        logtail_clean(cases[i].in, strlen(cases[i].in), &out);
        assert_string_equal(buf_str(&out), cases[i].out);
        buf_free(&out);
    }
}

/* Any input gives UTF-8 without control bytes, at most three times as long. */
static void
test_anything(void **state)
{
    static const char bytes[] = "\033[]\r\n\b\a;m\\a\xc3\xa4\xe2\x82\xac\xff\x80(";
    uint32_t seed = 1;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct buf out = BUF_INIT;
        char in[24];
        size_t bad, n = (seed >> 8) % sizeof in;
        for (size_t i = 0; i < n; i++) {
            seed = seed * 1664525 + 1013904223;
            in[i] = bytes[(seed >> 16) % (sizeof bytes - 1)];
        }
        seed = seed * 1664525 + 1013904223;
        logtail_clean(in, n, &out);
        assert_true(text_is_utf8(buf_str(&out), out.len, &bad));
        assert_true(out.len <= 3 * n);
        for (size_t i = 0; i < out.len; i++)
            assert_true((unsigned char)out.data[i] >= ' ' || out.data[i] == '\n' ||
                        out.data[i] == '\t');
        buf_free(&out);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
