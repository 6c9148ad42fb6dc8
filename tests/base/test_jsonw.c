/* The JSON writer, checked with jansson's reader: any input yields valid JSON with the same
 * content. */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/jsonw.h"
#include "base/text.h"

static void
writes_every_kind(void **state)
{
    auto_buf struct buf b = BUF_INIT;
    struct jsonw w;

    (void)state;
    jsonw_init(&w, &b);
    jsonw_object(&w);
    jsonw_kstr(&w, "s", "x");
    jsonw_kstr(&w, "none", NULL);
    jsonw_kint(&w, "low", INT64_MIN);
    jsonw_kint(&w, "high", INT64_MAX);
    jsonw_kbool(&w, "yes", true);
    jsonw_kbool(&w, "no", false);
    jsonw_knull(&w, "null");
    jsonw_key(&w, "list");
    jsonw_array(&w);
    jsonw_array(&w);
    jsonw_end_array(&w);
    jsonw_int(&w, 0);
    jsonw_num(&w, 0.1);
    jsonw_num(&w, NAN);
    jsonw_num(&w, -INFINITY);
    jsonw_raw(&w, "{\"a\":1}", 7);
    jsonw_object(&w);
    jsonw_end_object(&w);
    jsonw_end_array(&w);
    jsonw_ktime(&w, "never", 0);
    jsonw_ktime(&w, "then", 1772373730123456);
    jsonw_end_object(&w);
    assert_string_equal(b.data,
                        "{\"s\":\"x\",\"none\":null,\"low\":-9223372036854775808,"
                        "\"high\":9223372036854775807,\"yes\":true,\"no\":false,\"null\":null,"
                        "\"list\":[[],0,0.1,null,null,{\"a\":1},{}],\"never\":null,"
                        "\"then\":{\"unix\":1772373730.123456,"
                        "\"rfc3339\":\"2026-03-01T14:02:10Z\"}}");
}

/* jansson reads back the string that was written, with each byte that is not UTF-8 replaced by
 * U+FFFD. */
static void
check_string(const char *s, size_t n)
{
    auto_buf struct buf b = BUF_INIT, want = BUF_INIT;
    struct jsonw w;
    json_error_t error;

    for (size_t at = 0; at < n;) {
        size_t len = text_utf8_len(s + at, n - at);
        buf_add(&want, len ? s + at : "\xef\xbf\xbd", len ? len : 3);
        at += len ? len : 1;
    }
    jsonw_init(&w, &b);
    jsonw_array(&w);
    jsonw_strn(&w, s, n);
    jsonw_end_array(&w);
    for (size_t i = 0; i < b.len; i++)
        assert_true((unsigned char)b.data[i] >= 0x20 && b.data[i] != 0x7f);
    json_t *root = json_loadb(b.data, b.len, JSON_ALLOW_NUL, &error);
    assert_non_null(root);
    json_t *item = json_array_get(root, 0);
    assert_int_equal(json_string_length(item), want.len);
    assert_memory_equal(json_string_value(item), buf_str(&want), want.len);
    json_decref(root);
}

static void
survives_every_byte(void **state)
{
    char s[3] = "a?b";

    (void)state;
    check_string("", 0);
    for (int c = 0; c < 256; c++) {
        s[1] = (char)c;
        check_string(s, 3);
        check_string(s + 1, 1);
        for (int d = 0; d < 256; d++) {
            char pair[2] = {(char)c, (char)d};
            check_string(pair, 2);
        }
    }
}

static void
survives_random_bytes(void **state)
{
    uint64_t seed = 88172645463325252U;
    char s[64];

    (void)state;
    for (int round = 0; round < 20000; round++) {
        for (size_t i = 0; i < sizeof s; i++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            s[i] = (char)(seed >> (seed & 0x1f));
        }
        check_string(s, seed % (sizeof s + 1));
    }
}

static void
numbers_read_back_the_same(void **state)
{
    static const double numbers[] = {
        0, 1, -1, 0.1, 1.0 / 3, 1e300, 5e-324, 1e15, 123456789.123456789, -2.5, 93.7};

    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        auto_buf struct buf b = BUF_INIT;
        struct jsonw w;
        jsonw_init(&w, &b);
        jsonw_num(&w, numbers[i]);
        json_t *value = json_loadb(b.data, b.len, JSON_DECODE_ANY, NULL);
        assert_non_null(value);
        double back = json_number_value(value);
        assert_memory_equal(&back, &numbers[i], sizeof back);
        json_decref(value);
    }
}

static void
holds_no_more_than_its_bound(void **state)
{
    auto_buf struct buf b = BUF_INIT;
    struct jsonw w;

    (void)state;
    jsonw_init(&w, &b);
    jsonw_bound(&w, 1000);
    jsonw_array(&w);
    for (int i = 0; i < 90; i++)
        jsonw_str(&w, "12345678");
    jsonw_end_array(&w);
    assert_false(w.full);
    assert_int_equal(b.len, 90 * 11 + 1);
    for (int i = 0; i < 100000; i++)
        jsonw_str(&w, "12345678");
    assert_true(w.full);
    assert_true(b.cap < 4096);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_every_kind),
        cmocka_unit_test(survives_every_byte),
        cmocka_unit_test(survives_random_bytes),
        cmocka_unit_test(numbers_read_back_the_same),
        cmocka_unit_test(holds_no_more_than_its_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
