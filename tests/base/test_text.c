/* UTF-8, safe display, columns, globs, suggestions and digests: tables of cases. */
#include <setjmp.h>
#include <sha1.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/text.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void
knows_utf8(void **state)
{
    static const struct {
        const char *s;
        int bad_at; /* -1: it is UTF-8 */
    } cases[] = {
        {"", -1},
        {"plain", -1},
        {"\xc3\xa9", -1},
        {"\xe2\x82\xac", -1},
        {"\xf0\x9f\x98\x80", -1},
        {"\xf4\x8f\xbf\xbf", -1},
        {"a\xff", 1},
        {"a\x80", 1},
        {"\xc0\x80", 0}, /* overlong */
        {"\xc1\xbf", 0},
        {"\xe0\x9f\xbf", 0},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xed\xa0\x80", 0},     /* a surrogate */
        {"\xf4\x90\x80\x80", 0}, /* above U+10FFFF */
        {"\xf5\x80\x80\x80", 0},
        {"ab\xc3", 2}, /* cut short */
        {"ab\xe2\x82", 2},
        {"ab\xf0\x9f\x98", 2},
        {"ab\xe2\x82z", 2},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t at = 99;
        bool good = text_is_utf8(cases[i].s, strlen(cases[i].s), &at);
        assert_int_equal(good, cases[i].bad_at < 0);
        if (!good)
            assert_int_equal(at, cases[i].bad_at);
        assert_int_equal(text_is_utf8(cases[i].s, strlen(cases[i].s), NULL), good);
    }
}

static void
shows_safely(void **state)
{
    static const struct {
        const char *in;
        int columns;
        const char *out;
    } cases[] = {
        {"plain", 0, "plain"},
        {"a\nb\tc", 0, "a\\nb\\tc"},
        {"\x1b[31m", 0, "\\x1B[31m"},
        {"\x7f", 0, "\\x7F"},
        {"\xc2\x9b", 0, "\\xC2\\x9B"}, /* CSI as one C1 character */
        {"\xff", 0, "\\xFF"},
        {"\xe2\x80\xae", 0, "\\xE2\\x80\\xAE"}, /* right-to-left override */
        {"\xc3\xa9t\xc3\xa9", 0, "\xc3\xa9t\xc3\xa9"},
        {"abcdef", 6, "abcdef"},
        {"abcdefg", 6, "abc..."},
        {"abcdefg", 3, "..."},
        {"abcdefg", 2, ".."},
        {"abcdefg", 1, "."},
        {"a", 1, "a"},
        {"\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad", 6, "\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad"},
        {"\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad", 5, "\xe4\xb8\xad..."},
        {"ab\n\n", 5, "ab..."},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf b = BUF_INIT;
        buf_adds(&b, "front:");
        text_add_safe(&b, cases[i].in, strlen(cases[i].in), cases[i].columns);
        assert_string_equal(b.data + 6, cases[i].out);
        if (cases[i].columns)
            assert_true(text_columns(b.data + 6) <= cases[i].columns);
    }
}

static void
safe_text_is_safe_for_all_bytes(void **state)
{
    uint32_t seed = 1;

    (void)state;
    for (int round = 0; round < 5000; round++) {
        auto_buf struct buf b = BUF_INIT;
        char s[40];
        for (size_t i = 0; i < sizeof s; i++)
            s[i] = (char)((seed = seed * 1664525 + 1013904223) >> 24);
        text_add_safe(&b, s, sizeof s, round % 50);
        assert_true(text_is_utf8(b.data, b.len, NULL));
        for (size_t i = 0; i < b.len; i++)
            assert_true((unsigned char)b.data[i] >= 0x20 && b.data[i] != 0x7f);
        if (round % 50)
            assert_true(text_columns(b.data) <= round % 50);
    }
}

static void
cuts_between_characters(void **state)
{
    static const struct {
        const char *in;
        size_t size;
        const char *out;
    } cases[] = {
        {"", 4, ""},
        {"abc", 4, "abc"},
        {"abcd", 5, "abcd"},
        {"abcd", 4, "..."},
        {"abcdefgh", 8, "abcd..."},
        {"abc\xc3\xa9"
         "fgh",
         8, "abc..."},
        {"ab\xc3\xa9"
         "efgh",
         8, "ab\xc3\xa9..."},
        {"\xe4\xb8\xad\xe4\xb8\xad", 6, "..."},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[8];

        text_copy_cut(out, cases[i].size, cases[i].in);
        assert_string_equal(out, cases[i].out);
    }
}

static void
counts_columns(void **state)
{
    (void)state;
    assert_int_equal(text_columns(""), 0);
    assert_int_equal(text_columns("abc"), 3);
    assert_int_equal(text_columns("\xc3\xa9"), 1);
    assert_int_equal(text_columns("e\xcc\x81"), 1); /* a combining accent */
    assert_int_equal(text_columns("\xe4\xb8\xad"), 2);
    assert_int_equal(text_columns("\xf0\x9f\x98\x80"), 2);
    assert_int_equal(text_columns("\xff"), 1);
}

static void
globs_as_a_shell(void **state)
{
    static const struct {
        const char *pattern, *s;
        bool match;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "anything", true},
        {"?", "", false},
        {"?", "a", true},
        {"?", "ab", false},
        {"sweep*", "sweep", true},
        {"sweep*", "sweep-12", true},
        {"sweep*", "swee", false},
        {"*-12", "sweep-12", true},
        {"*-12", "sweep-123", false},
        {"a*b*c", "aXbXbYc", true},
        {"a*b*c", "acb", false},
        {"**a**", "bab", true},
        {"a?c", "abc", true},
        {"a?c",
         "a\xc3\xa9"
         "c",
         true},
        {"[ab]", "a", false},
        {"[ab]", "[ab]", true},
        {"A", "a", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        if (text_glob(cases[i].pattern, cases[i].s) != cases[i].match)
            fail_msg("'%s' on '%s'", cases[i].pattern, cases[i].s);
}

static void
glob_is_not_exponential(void **state)
{
    char s[2001];

    (void)state;
    memset(s, 'a', sizeof s - 1);
    s[sizeof s - 1] = '\0';
    assert_false(text_glob("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", s));
}

static void
suggests_the_nearest(void **state)
{
    static const char *const words[] = {"vram",    "gpus",   "time",  "priority",
                                        "requeue", "cancel", "queue", NULL};
    static const struct {
        const char *word, *nearest;
    } cases[] = {
        {"vrma", "vram"},
        {"vran", "vram"},
        {"vra", "vram"},
        {"GPUS", "gpus"},
        {"gpu", "gpus"},
        {"tiem", "time"},
        {"prio", "priority"},
        {"prioritty", "priority"},
        {"cancle", "cancel"},
        {"quue", "queue"},
        {"xyz", NULL},
        {"", NULL},
        {"q", NULL},
        {"a-word-that-is-much-longer-than-any-that-anybody-would-type", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *got = text_nearest(cases[i].word, words);
        if (!cases[i].nearest)
            assert_null(got);
        else if (!got)
            fail_msg("nothing for '%s'", cases[i].word);
        else
            assert_string_equal(got, cases[i].nearest);
    }
}

static void
digests_as_published(void **state)
{
    char digest[41];

    (void)state;
    text_sha1("abc", 3, digest);
    assert_string_equal(digest, "a9993e364706816aba3e25717850c26c9cd0d89d");
    text_sha1("", 0, digest);
    assert_string_equal(digest, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    text_sha1_12("abc", 3, digest);
    assert_string_equal(digest, "a9993e364706");
}

/* The padding fits into the last block or needs another. */
static void
digests_of_every_length(void **state)
{
    uint8_t bytes[200];
    char digest[41], expected[SHA1_DIGEST_STRING_LENGTH];

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7);
    for (size_t n = 0; n <= sizeof bytes; n++) {
        text_sha1(bytes, n, digest);
        assert_string_equal(digest, SHA1Data(bytes, n, expected));
    }
}

static void
json_stays_the_same_json(void **state)
{
    static const char in[] =
        "{\"a\":\"\xc2\x9b\xe2\x80\xae \xc3\xbc \xf0\x9f\x98\x80\x7f\\n\"}\n";
    auto_buf struct buf out = BUF_INIT;
    (void)state;
    text_add_json(&out, in, sizeof in - 1);
    assert_string_equal(buf_str(&out),
                        "{\"a\":\"\\u009b\\u202e \xc3\xbc \xf0\x9f\x98\x80\\u007f\\n\"}\n");
}

static void
quotes_for_a_shell(void **state)
{
    auto_buf struct buf out = BUF_INIT;

    (void)state;
    text_add_quoted(&out, "it's $HOME\n");
    assert_string_equal(buf_str(&out), "'it'\\''s $HOME\n'");
    buf_clear(&out);
    text_add_quoted(&out, "");
    assert_string_equal(buf_str(&out), "''");
}

static void
looks_at_beginnings_and_lists(void **state)
{
    static const char *const beginnings[] = {"BERTH_", "PATH=", NULL};
    char one[] = "a", two[] = "b";
    char *const list[] = {one, two, NULL};

    (void)state;
    assert_true(text_begins_with("BERTH_X=1", beginnings));
    assert_true(text_begins_with("PATH=", beginnings));
    assert_false(text_begins_with("PATH", beginnings));
    assert_false(text_begins_with("", beginnings));
    assert_int_equal(text_list_len(list), 2);
    assert_int_equal(text_list_len(list + 2), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_utf8),
        cmocka_unit_test(shows_safely),
        cmocka_unit_test(safe_text_is_safe_for_all_bytes),
        cmocka_unit_test(json_stays_the_same_json),
        cmocka_unit_test(cuts_between_characters),
        cmocka_unit_test(counts_columns),
        cmocka_unit_test(globs_as_a_shell),
        cmocka_unit_test(glob_is_not_exponential),
        cmocka_unit_test(suggests_the_nearest),
        cmocka_unit_test(quotes_for_a_shell),
        cmocka_unit_test(digests_as_published),
        cmocka_unit_test(digests_of_every_length),
        cmocka_unit_test(looks_at_beginnings_and_lists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
