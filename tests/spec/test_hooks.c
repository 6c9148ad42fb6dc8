/* Notifications: valid addresses, URLs and types, on the command line and in requests from the
 * wire. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/request.h"
#include "spec/attr.h"
#include "spec/attr_hooks.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void
takes_what_is_an_address(void **state)
{
    static const struct {
        const char *name, *value;
        int good;
    } cases[] = {
        {"mail-user", "alice", 1},
        {"mail-user", "alice@example.org", 1},
        {"mail-user", "a.b+c_d%e=f~g'h/i@x,bob", 1},
        {"mail-user", "-oQ/tmp", 0},
        {"mail-user", "a,-v", 0},
        {"mail-user", "a,,b", 0},
        {"mail-user", "a b", 0},
        {"mail-user", "a\nBcc: b", 0},
        {"mail-user", "a@b@c", 0},
        {"mail-user", "a@", 0},
        {"mail-user", "@a", 0},
        {"mail-user", "<a@b>", 0},
        {"mail-user", "\"a\"@b", 0},
        {"mail-user", "|/bin/sh", 0},
        {"mail-user", "a\xc3\xa4@b", 0},
        {"webhook", "http://x", 1},
        {"webhook", "HTTPS://x:8080/a/b?c=d&e=%20f#g", 1},
        {"webhook", "http://[::1]:80/", 1},
        {"webhook", "http://", 0},
        {"webhook", "http:///path", 0},
        {"webhook", "ftp://x", 0},
        {"webhook", "file:///etc/passwd", 0},
        {"webhook", "x", 0},
        {"webhook", "http://x/a b", 0},
        {"webhook", "http://x/\"", 0},
        {"webhook", "http://x/\\", 0},
        {"webhook", "http://x/\n", 0},
        {"webhook", "http://x/{1,2}", 0},
        {"webhook", "http://x/\xc3\xa4", 0},
        {"on-end", "echo 'a b' | mail -s x y", 1},
        {"on-end", "two\nlines", 1},
        {"on-end", "\xff", 0},
        {"mail-type", "end,FAIL", 1},
        {"mail-type", "NONE", 1},
        {"mail-type", "NONE,END", 0},
        {"mail-type", "", 0},
        {"mail-type", "END,", 0},
        {"mail-type", "EVER", 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct request r;
        struct err e = {0};
        request_begin(&r);
        r.command = xstrdup("true");
        int rc = attr_assign(&r, cases[i].name, cases[i].value, ATTR_COMMAND_LINE, &e);
        if ((rc == 0) != cases[i].good)
            fail_msg("%s=%s: %s", cases[i].name, cases[i].value, rc ? e.text : "taken");
        if (rc)
            assert_int_equal(strncmp(e.text, cases[i].name, strlen(cases[i].name)), 0);
        else
            assert_int_equal(request_validate(&r, &e), 0);
        request_free(&r);
    }
}

/* A client's request need not have passed the setters. */
static void
looks_again_at_what_came_over_the_wire(void **state)
{
    static const struct hooks bad[] = {
        {.webhook = (char *)"gopher://x"},
        {.mail_user = (char *)"-bs"},
        {.on_start = (char *)"\xc3"},
    };
    static const char *const names[] = {"webhook: ", "mail-user: ", "on-start: "};

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct err e = {0};
        struct hooks hooks = bad[i];
        struct request r;
        request_begin(&r);
        r.command = (char *)"true";
        r.hooks = &hooks;
        assert_int_equal(request_validate(&r, &e), -1);
        assert_int_equal(strncmp(e.text, names[i], strlen(names[i])), 0);
    }
}

static void
says_when_mail_goes(void **state)
{
    static const struct {
        const char *user, *types, *means;
    } cases[] = {
        {"a", NULL, "END"},
        {"a", "begin", "BEGIN"},
        {"a", "none", ""},
        {NULL, NULL, ""},
        {NULL, "all", "BEGIN,END,FAIL,REQUEUE"},
        {NULL, "fail,array_tasks,time_limit", "FAIL,TIME_LIMIT,ARRAY_TASKS"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf text = BUF_INIT;
        struct hooks h = {.mail_user = (char *)cases[i].user};
        struct err e;
        if (cases[i].types)
            assert_int_equal(hooks_parse_types(cases[i].types, &h.mail_types, &e), 0);
        hooks_add_types(hooks_mail_types(&h), &text);
        assert_string_equal(buf_str(&text), cases[i].means);
    }
}

static void
an_empty_value_takes_back(void **state)
{
    struct request r, copy;
    struct err e;

    (void)state;
    request_begin(&r);
    r.command = xstrdup("true");
    assert_int_equal(attr_assign(&r, "on-end", "echo", ATTR_COMMAND_LINE, &e), 0);
    assert_int_equal(attr_assign(&r, "webhook", "http://x", ATTR_COMMAND_LINE, &e), 0);
    request_copy(&copy, &r);
    assert_string_equal(copy.hooks->on_end, "echo");
    assert_string_equal(copy.hooks->webhook, "http://x");
    assert_int_equal(attr_assign(&r, "on-end", "", ATTR_COMMAND_LINE, &e), 0);
    assert_null(r.hooks->on_end);
    request_free(&r);
    request_free(&copy);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_is_an_address),
        cmocka_unit_test(looks_again_at_what_came_over_the_wire),
        cmocka_unit_test(says_when_mail_goes),
        cmocka_unit_test(an_empty_value_takes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
