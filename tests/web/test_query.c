/* Requests to the daemon, and the use of its answers. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "web/http/query.h"
#include "web/http/reply.h"

static void
test_arguments(void **state)
{
    static const struct {
        const char *name, *value;
        int rc;
    } cases[] = {
        {"limit", "10", 0},           {"limit", "", 0},        {"limit", "-1", -1},
        {"limit", "10001", -1},       {"limit", "x", -1},      {"before_id", "4294967296", -1},
        {"since_us", "99", 0},        {"user", "alice", 0},    {"user", "\xff", -1},
        {"nothing", "of meaning", 0}, {"bytes", "1048576", 0}, {"bytes", "1048577", -1},
    };
    struct query q = {.kind = QUERY_HISTORY};
    struct err e;
    char many[200];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (query_set(&q, cases[i].name, cases[i].value, &e) != cases[i].rc)
            fail_msg("%s=%s", cases[i].name, cases[i].value);
    memset(many, 'a', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    assert_int_equal(query_set(&q, "search", many, &e), -1);
    assert_int_equal(q.limit, 10);
    assert_string_equal(q.user, "alice");
}

static char *
key_of(const struct query *q)
{
    struct buf out = BUF_INIT;
    query_key(q, &out);
    return buf_take(&out);
}

static void
test_keys(void **state)
{
    struct query a = {.kind = QUERY_HISTORY}, b = a;
    struct err e;
    char *x, *y;
    (void)state;
    assert_int_equal(query_set(&a, "user", "x 1:y", &e), 0);
    assert_int_equal(query_set(&b, "user", "x", &e), 0);
    assert_int_equal(query_set(&b, "state", "y", &e), 0);
    x = key_of(&a);
    y = key_of(&b);
    assert_string_not_equal(x, y);
    free(y);
    y = key_of(&a);
    assert_string_equal(x, y);
    free(x);
    free(y);
}

/* A row as the daemon sends it for the requested fields. */
static json_t *
rows_for(const json_t *params, const char *command)
{
    json_t *row = json_array(), *name;
    size_t i;
    json_array_foreach(json_object_get(params, "fields"), i, name)
    {
        if (strcmp(json_string_value(name), "id") == 0)
            json_array_append_new(row, json_integer(7));
        else if (strcmp(json_string_value(name), "command") == 0)
            json_array_append_new(row, command ? json_string(command) : json_null());
        else
            json_array_append_new(row, json_null());
    }
    return json_pack("{s:[o],s:i}", "rows", row, "before_id", 7);
}

static void
check_command(const char *command, size_t most)
{
    const struct query q = {.kind = QUERY_HISTORY};
    struct query_part parts[QUERY_PARTS_MAX];
    json_t *result, *job;
    struct reply *r;
    assert_int_equal(query_parts(&q, parts), 1);
    assert_string_equal(parts[0].method, "jobs");
    result = rows_for(parts[0].params, command);
    r = query_reply(&q, &result);
    job = json_array_get(json_object_get(r->tree, "jobs"), 0);
    assert_int_equal(json_integer_value(json_object_get(job, "id")), 7);
    assert_int_equal(json_integer_value(json_object_get(r->tree, "before_id")), 7);
    if (command)
        assert_true(json_string_length(json_object_get(job, "command")) <= most);
    else
        assert_true(json_is_null(json_object_get(job, "command")));
    reply_unref(r);
    json_decref(result);
    json_decref(parts[0].params);
}

static void
test_rows(void **state)
{
    char many[2000];
    (void)state;
    check_command(NULL, 0);
    check_command("short", 5);
    for (size_t i = 0; i + 3 < sizeof many; i += 3)
        memcpy(many + i, "\xe2\x82\xac",
               3); /* cut between characters, or it would be no text */
    many[sizeof many / 3 * 3 - 3] = '\0';
    check_command(many, 320);
}

static void
test_errors(void **state)
{
    static const struct {
        enum err_code code;
        int status;
    } cases[] = {
        {ERR_USAGE, 400},       {ERR_PERMISSION, 403}, {ERR_NO_JOB, 404},
        {ERR_UNREACHABLE, 503}, {ERR_TIMED_OUT, 504},  {ERR_FAILED, 502},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err e;
        struct reply *r;
        err_set(&e, cases[i].code, "%s", i % 2 ? "words" : "not UTF-8: \xff");
        r = reply_error(&e);
        assert_int_equal(r->status, cases[i].status);
        assert_non_null(
            json_string_value(json_object_get(json_object_get(r->tree, "error"), "message")));
        reply_unref(r);
    }
}

static void
test_packing(void **state)
{
    struct buf body = BUF_INIT;
    struct reply *r;
    (void)state;
    buf_adds(&body, "short");
    r = reply_new(200, REPLY_TEXT, &body);
    assert_null(reply_packed(r));
    reply_unref(r);
    for (int i = 0; i < 1000; i++)
        buf_adds(&body, "the same again ");
    r = reply_new(200, REPLY_TEXT, &body);
    assert_non_null(reply_packed(r));
    assert_true(reply_packed(r)->len < 500);
    assert_memory_equal(reply_packed(r)->data, "\x1f\x8b", 2);
    reply_unref(r);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments), cmocka_unit_test(test_keys),
        cmocka_unit_test(test_rows),      cmocka_unit_test(test_errors),
        cmocka_unit_test(test_packing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
