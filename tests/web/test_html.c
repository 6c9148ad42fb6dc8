/* Untrusted text in pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "web/pages/html.h"

static void
test_text(void **state)
{
    static const char *const cases[][2] = {
        {"plain", "plain"},
        {"<script>alert('1')</script>", "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;"},
        {"a & \"b\"", "a &amp; &quot;b&quot;"},
        {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x9a\xa2",
         "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x9a\xa2"},
        {"\033[31m\a", "\xef\xbf\xbd[31m\xef\xbf\xbd"},
        {"a\tb\nc", "a\tb\nc"},
        {"\x7f", "\xef\xbf\xbd"},
        {"\xc2\x9b", "[U+009B]"},
        {"\xff\xc3(", "\xef\xbf\xbd\xef\xbf\xbd("},
        {"a\xe2\x80\xae"
         "b",
         "a[U+202E]b"},
        {"\xe2\x81\xa6\xd8\x9c", "[U+2066][U+061C]"},
        {"a\xe2\x80\xa8", "a[U+2028]"},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buf out = BUF_INIT;
        html_add(&out, cases[i][0]);
        assert_string_equal(buf_str(&out), cases[i][1]);
        buf_free(&out);
    }
}

static void
test_json_in_a_script(void **state)
{
    static const char json[] = "{\"a\":\"</script><!-- & -->\"}";
    struct buf out = BUF_INIT;
    (void)state;
    html_add_json(&out, json, strlen(json));
    assert_string_equal(buf_str(&out),
                        "{\"a\":\"\\u003c/script\\u003e\\u003c!-- \\u0026 --\\u003e\"}");
    buf_free(&out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_json_in_a_script),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
