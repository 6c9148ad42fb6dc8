/* Access control: hosts, origins, tokens, cookies, and the target of a login. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "web/http/gate.h"

#define TOKEN "0123456789abcdef"

static void
test_hosts(void **state)
{
    static const char *const names[] = {"gpu.example.org", NULL};
    const struct gate g = {.names = names, .own_name = "box"};
    static const struct {
        const char *host;
        bool ours;
    } cases[] = {
        {"127.0.0.1", true},
        {"127.0.0.1:7461", true},
        {"192.168.1.7:80", true},
        {"[::1]", true},
        {"[::1]:7461", true},
        {"[fe80::1]:1", true},
        {"localhost", true},
        {"LocalHost:7461", true},
        {"box:7461", true},
        {"gpu.example.org", true},
        {"GPU.example.org:443", true},
        {"evil.example", false},
        {"gpu.example.org.evil.example", false},
        {"localhost.evil.example", false},
        {"127.0.0.1.evil.example", false},
        {"127.0.0.1@evil.example", false},
        {"[::1", false},
        {"[::1]x", false},
        {"[evil.example]", false},
        {":7461", false},
        {"", false},
        {NULL, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (gate_host_is_ours(&g, cases[i].host) != cases[i].ours)
            fail_msg("%s", cases[i].host ? cases[i].host : "no host");
}

static void
test_origins(void **state)
{
    (void)state;
    assert_true(gate_origin_is_ours(NULL, "localhost:1"));
    assert_true(gate_origin_is_ours("http://localhost:1", "localhost:1"));
    assert_true(gate_origin_is_ours("https://gpu.example.org", "gpu.example.org"));
    assert_false(gate_origin_is_ours("http://localhost:2", "localhost:1"));
    assert_false(gate_origin_is_ours("http://evil.example", "localhost:1"));
    assert_false(gate_origin_is_ours("null", "localhost:1"));
    assert_false(gate_origin_is_ours("", "localhost:1"));
    assert_false(gate_origin_is_ours("http://localhost:1", NULL));
}

static void
test_cross_site(void **state)
{
    (void)state;
    assert_true(gate_is_cross_site("cross-site", "no-cors"));
    assert_true(gate_is_cross_site("cross-site", NULL));
    assert_false(gate_is_cross_site("cross-site", "navigate"));
    assert_false(gate_is_cross_site("same-origin", "cors"));
    assert_false(gate_is_cross_site(NULL, NULL));
}

static void
test_token_and_cookie(void **state)
{
    struct gate g = {0};
    char cookie[200];
    (void)state;
    assert_true(gate_is_open(&g, NULL, NULL)); /* no token is required */
    assert_false(gate_token_is_right(&g, ""));
    gate_set_token(&g, TOKEN);
    /* HMAC-SHA-256 of the text with this key, as other programs compute it. */
    assert_string_equal(g.session,
                        "9b2225a97fac949d54f735ab382bfd08f745f49b78062423416d6461e0c3132e");
    assert_true(gate_is_open(&g, "Bearer " TOKEN, NULL));
    assert_true(gate_is_open(&g, "bearer " TOKEN, NULL));
    assert_false(gate_is_open(&g, "Bearer " TOKEN "x", NULL));
    assert_false(gate_is_open(&g, "Bearer ", NULL));
    assert_false(gate_is_open(&g, TOKEN, NULL));
    assert_false(gate_is_open(&g, NULL, NULL));
    assert_false(gate_is_open(&g, NULL, "berth_session=" TOKEN));
    snprintf(cookie, sizeof cookie, "a=b; berth_session=%s; c", g.session);
    assert_true(gate_is_open(&g, NULL, cookie));
    snprintf(cookie, sizeof cookie, "xberth_session=%s", g.session);
    assert_false(gate_is_open(&g, NULL, cookie));
    snprintf(cookie, sizeof cookie, "berth_session=%s0", g.session);
    assert_false(gate_is_open(&g, NULL, cookie));
    gate_set_token(&g, "fedcba9876543210"); /* invalidates the sessions */
    snprintf(cookie, sizeof cookie, "berth_session=%s", g.session);
    assert_true(gate_is_open(&g, NULL, cookie));
    assert_false(gate_is_open(&g, "Bearer " TOKEN, NULL));
    gate_free(&g);
}

static void
write_token(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(path, mode), 0);
}

static void
test_token_files(void **state)
{
    char path[] = "/tmp/berth-gate.XXXXXX";
    struct gate g = {0};
    struct err e;
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    close(fd);
    write_token(path, TOKEN "\r\nmore\n", 0640);
    assert_int_equal(gate_read_token(&g, path, &e), 0);
    assert_string_equal(g.token, TOKEN);
    write_token(path, TOKEN, 0644);
    assert_int_equal(gate_read_token(&g, path, &e), -1);
    assert_non_null(strstr(e.text, "every user can read it"));
    write_token(path, "short\n" TOKEN, 0600);
    assert_int_equal(gate_read_token(&g, path, &e), -1);
    assert_non_null(strstr(e.text, "has 5 bytes"));
    write_token(path, "", 0600);
    assert_int_equal(gate_read_token(&g, path, &e), -1);
    unlink(path);
    assert_int_equal(gate_read_token(&g, path, &e), -1);
    assert_non_null(strstr(e.text, "no such file"));
    gate_free(&g);
}

static void
test_where_a_login_leads(void **state)
{
    static const char *const cases[][2] = {
        {"/history", "/history"},
        {"/jobs/12?x=1", "/jobs/12?x=1"},
        {"//evil.example/", "/"},
        {"/\\evil.example", "/"},
        {"http://evil/", "/"},
        {"/a\r\nSet-Cookie: x", "/"},
        {"/a b", "/"},
        {"", "/"},
        {NULL, "/"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(gate_next_path(cases[i][0]), cases[i][1]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),       cmocka_unit_test(test_origins),
        cmocka_unit_test(test_cross_site),  cmocka_unit_test(test_token_and_cookie),
        cmocka_unit_test(test_token_files), cmocka_unit_test(test_where_a_login_leads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
