/* Members of JSON objects: values that fill the fields, and the errors for refused ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "wire/members.h"

struct all {
    uint16_t small;
    int32_t middle;
    int64_t large;
    const char *text;
    char chars[6];
    char **list;
    bool flag;
};

static const struct member members[] = {
    {MEMBER(NUMBER, all, small), .max = UINT16_MAX},
    {MEMBER_AS("mid", NUMBER, all, middle), .min = -5, .max = 5},
    {MEMBER(NUMBER, all, large), .min = 1, .max = INT64_MAX},
    {MEMBER(TEXT, all, text), .needed = true},
    {MEMBER(CHARS, all, chars)},
    {MEMBER(LIST, all, list)},
    {MEMBER(FLAG, all, flag)},
    {0},
};

static json_t *
object_of(const char *text)
{
    json_t *object = json_loads(text, 0, NULL);

    assert_non_null(object);
    return object;
}

static void
test_all_kinds(void **state)
{
    (void)state;
    struct all a = {.large = 7};
    struct err e;
    json_t *o =
        object_of("{\"small\":65535,\"mid\":-5,\"large\":9223372036854775807,\"text\":\"t\","
                  "\"chars\":\"abcd\\u00e9\",\"list\":[\"x\",\"\"],\"flag\":true}");

    assert_int_equal(members_read(o, members, &a, &e), 0);
    assert_int_equal(a.small, 65535);
    assert_int_equal(a.middle, -5);
    assert_true(a.large == INT64_MAX);
    assert_string_equal(a.text, "t");
    assert_string_equal(a.chars, "abcd"); /* and not half of the next letter */
    assert_string_equal(a.list[0], "x");
    assert_string_equal(a.list[1], "");
    assert_null(a.list[2]);
    assert_true(a.flag);
    free(a.list);
    json_decref(o);
}

static void
test_what_is_missing_stays(void **state)
{
    (void)state;
    struct all a = {.small = 3, .middle = 4, .large = 5, .chars = "six", .flag = true};
    struct err e;
    json_t *o = object_of("{\"text\":\"t\",\"small\":null,\"chars\":null,\"flag\":null}");

    assert_int_equal(members_read(o, members, &a, &e), 0);
    assert_int_equal(a.small, 3);
    assert_int_equal(a.middle, 4);
    assert_int_equal(a.large, 5);
    assert_string_equal(a.chars, "six");
    assert_true(a.flag);
    assert_null(a.list[0]);
    free(a.list);
    json_decref(o);
}

static void
test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *object, *words;
    } cases[] = {
        {"{\"text\":\"t\",\"small\":65536}",
         "\"small\" must be a whole number from 0 to 65535"},
        {"{\"text\":\"t\",\"small\":-1}", "\"small\" must be a whole number from 0 to 65535"},
        {"{\"text\":\"t\",\"small\":1.0}", "\"small\" must be a whole number from 0 to 65535"},
        {"{\"text\":\"t\",\"mid\":\"1\"}", "\"mid\" must be a whole number from -5 to 5"},
        {"{\"text\":\"t\",\"large\":0}", "\"large\" must be a whole number of 1 or more"},
        {"{}", "\"text\" must be a string"},
        {"{\"text\":null}", "\"text\" must be a string"},
        {"[]", "\"text\" must be a string"},
        {"{\"text\":\"t\",\"chars\":1}", "\"chars\" must be a string"},
        {"{\"text\":\"t\",\"list\":\"x\"}", "\"list\" must be a list of strings"},
        {"{\"text\":\"t\",\"list\":[1]}", "\"list\" must be a list of strings"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct all a = {0};
        struct err e;
        json_t *o = object_of(cases[i].object);

        assert_int_equal(members_read(o, members, &a, &e), -1);
        assert_int_equal(e.code, ERR_USAGE);
        assert_string_equal(e.text, cases[i].words);
        free(a.list);
        json_decref(o);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_kinds),
        cmocka_unit_test(test_what_is_missing_stays),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
