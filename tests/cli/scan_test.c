/* Walking through JSON text: compared with jansson's tree of the same text, and on text
 * truncated at any byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "cli/ask/json_scan.h"

static const char text[] =
    "{ \"a\" : [1,2,{\"rows\":[9]}], \"b\":\"x\\\"]}\", "
    "\"rows\":[[1,\"one\",null,[{\"index\":3}]],"
    "[-22,\"tw\\u00f6\\n\",true,[]] , [3,\"]}\\\\\",false,{\"0\":null}]],\"z\":0}";

static struct scan
whole(const char *s)
{
    return (struct scan){s, s + strlen(s)};
}

static void
test_rows_are_found_and_read(void **state)
{
    struct scan s = whole(text);
    struct scan_value v;
    auto_buf struct buf out = BUF_INIT;

    (void)state;
    assert_true(scan_open(&s));
    assert_true(scan_find(&s, "rows"));
    assert_true(scan_open(&s));
    while (scan_open(&s)) {
        while (scan_next(&s, &v)) {
            buf_addf(&out, "%d:", (int)v.type);
            if (v.type == SCAN_ARRAY || v.type == SCAN_OBJECT)
                buf_add(&out, v.text, v.len);
            else
                scan_add(&out, &v);
            buf_addc(&out, ' ');
        }
        scan_close(&s);
        buf_addc(&out, '/');
    }
    assert_string_equal(buf_str(&out),
                        "3:1 4:one 1: 5:[{\"index\":3}] /3:-22 4:tw\xc3\xb6\n 2: 5:[] /"
                        "3:3 4:]}\\ 2: 6:{\"0\":null} /");
}

static void
test_missing_key(void **state)
{
    struct scan s = whole(text);

    (void)state;
    assert_true(scan_open(&s));
    assert_false(scan_find(&s, "x"));
}

static void
test_numbers(void **state)
{
    static const struct {
        const char *text;
        int64_t expect;
    } cases[] = {
        {"0", 0},
        {"-5", -5},
        {"12.75", 12},
        {"null", 77},
        {"\"5\"", 77},
        {"", 77},
        {"99999999999999999999", 77},
        {"1e3", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scan s = whole(cases[i].text);
        struct scan_value v;

        scan_next(&s, &v);
        assert_int_equal(scan_int(&v, 77), cases[i].expect);
    }
}

/* Copies exactly these bytes, so that a sanitizer detects an overread. */
static void
test_text_that_ends_anywhere(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof text; n++) {
        char *cut = malloc(n ? n : 1); /* exact size, so that an overread is detected */
        struct scan s = {cut, cut + n};
        struct scan_value v;
        int steps = 0;

        assert_non_null(cut);
        memcpy(cut, text, n);
        while (s.at < s.end && steps++ < 1000) {
            if (!scan_open(&s) && !scan_next(&s, &v))
                scan_close(&s);
        }
        assert_true(s.at == s.end);
        free(cut);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_found_and_read),
        cmocka_unit_test(test_missing_key),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_text_that_ends_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
