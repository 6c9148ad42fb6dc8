/* The fast JSON reader against json_loadb: the same values and refusals for any text,
 * including every text truncated or with a byte changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "wire/json_text.h"

static const char *const texts[] = {
    "{}",
    "[]",
    " {\n} ",
    "\t[ ]\r\n",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"params\":{\"jobs\":[{\"vram_mib\":8192}]}}",
    "{\"a\":1,\"b\":-1,\"c\":0,\"d\":-0,\"e\":999999999999999999,\"f\":9223372036854775807}",
    "{\"a\":-9223372036854775808,\"b\":9223372036854775808,\"c\":01,\"d\":-}",
    "{\"a\":1.5,\"b\":1e3}",
    "{\"a\":9223372036854775808}",
    "[1.5,-2e3,1E-2,0.0]",
    "[01]",
    "[-]",
    "[-0]",
    "[1,]",
    "[,1]",
    "{\"a\":1,}",
    "{\"a\" : true , \"b\" : false , \"c\" : null}",
    "{\"a\":tru}",
    "[truely]",
    "{\"a\":1,\"a\":2,\"b\":3,\"a\":{\"a\":4}}",
    "{\"\":1,\"k\\u0041\":2,\"gr\xc3\xbc\xc3\x9f\":3}",
    "{\"a-key-that-is-longer-than-any-that-is-in-use-between-the-processes-here\":1}",
    "[\"\",\"plain\",\"with \\\"quotes\\\" and \\\\ and \\/\",\"\\b\\f\\n\\r\\t\"]",
    "[\"\\u001b[1m\",\"\\u0041\\u00e9\\u20ac\",\"\\ud83d\\ude00\",\"\\ud83d\",\"\\u0000\"]",
    "[\"\\u001b[1m\",\"\\u007f\\u0020x\"]",
    "[\"\\u0000\"]",
    "[\"\\u00\"]",
    "[\"\\x\"]",
    "[\"\\",
    "[\"gr\xc3\xbc\xc3\x9f\",\"\xe2\x82\xac\\n\"]",
    "[\"\xc3\"]",
    "[\"\xff\\n\"]",
    "[\"a\nb\"]",
    "[\"open]",
    "\"text\"",
    "12",
    "null",
    "",
    " ",
    "{} {}",
    "[1] x",
    "[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]",
    "[[[[[[[[[[[[[[[[[[[[1",
    "{\"a\":[{\"b\":[{\"c\":[]}]}],\"d\":\"e\"}",
    "{\"a\" 1}",
    "{a:1}",
    "[1 2]",
};

/* Read from memory of exactly that size, so that an overread is detected. */
static void
check(const char *text, size_t n)
{
    json_error_t a = {.line = 0}, b = {.line = 0};
    memset(a.text, 'x', sizeof a.text - 1);
    char *exact = xmalloc(n + !n);
    memcpy(exact, text, n);
    json_t *quick = json_text_read(exact, n, &a);
    json_t *slow = json_loadb(exact, n, 0, &b);
    if (!slow) {
        assert_null(quick);
        assert_string_equal(a.text, b.text);
        assert_int_equal(a.position, b.position);
    } else {
        assert_string_equal(a.text, "");
        /* Their order counts too. */
        char *quick_text = json_dumps(quick, 0), *slow_text = json_dumps(slow, 0);
        assert_true(json_equal(quick, slow));
        assert_string_equal(quick_text, slow_text);
        free(quick_text);
        free(slow_text);
    }
    json_decref(quick);
    json_decref(slow);
    free(exact);
}

static void
reads_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check(texts[i], strlen(texts[i]));
    check("[\"a\0b\"]", 7);
    check("[1\0]", 4);
}

static void
reads_the_same_of_broken_ones(void **state)
{
    static const char changes[] = "\"\\{}[],:0-.u \n\x01\x7f\xc3\xbc";
    char text[256];
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t n = strlen(texts[i]);
        for (size_t at = 0; at < n; at++) {
            check(texts[i], at);
            for (const char *c = changes; *c; c++) {
                memcpy(text, texts[i], n);
                text[at] = *c;
                check(text, n);
            }
        }
    }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_same),
        cmocka_unit_test(reads_the_same_of_broken_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
