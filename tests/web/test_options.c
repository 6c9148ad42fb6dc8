/* The address to listen on, and valid combinations of options. */
#include <arpa/inet.h>
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "web/web_options.h"

static void
test_listen(void **state)
{
    static const struct {
        const char *text;
        int family; /* 0: refused */
        int port;
        bool loopback;
    } cases[] = {
        {"127.0.0.1:80", AF_INET, 80, true},
        {"localhost:7461", AF_INET, 7461, true},
        {"127.8.8.8:0", AF_INET, 0, true},
        {"0.0.0.0:80", AF_INET, 80, false},
        {"10.1.2.3:65535", AF_INET, 65535, false},
        {"[::1]:80", AF_INET6, 80, true},
        {"[::]:80", AF_INET6, 80, false},
        {"::1:80", 0, 0, false},
        {"127.0.0.1", 0, 0, false},
        {":80", 0, 0, false},
        {"80", 0, 0, false},
        {"127.0.0.1:", 0, 0, false},
        {"127.0.0.1:65536", 0, 0, false},
        {"127.0.0.1:x", 0, 0, false},
        {"gpu.example.org:80", 0, 0, false},
        {"[]:80", 0, 0, false},
        {"unix:relative", 0, 0, false},
        {"", 0, 0, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct options o = {0};
        struct err e;
        int rc = web_options_parse_listen(cases[i].text, &o, &e);
        if ((rc == 0) != (cases[i].family != 0))
            fail_msg("%s", cases[i].text);
        if (rc)
            continue;
        assert_int_equal(o.address.ss_family, cases[i].family);
        assert_int_equal(o.is_loopback, cases[i].loopback);
        /* The port has the same offset in both. */
        assert_int_equal(ntohs(((const struct sockaddr_in *)&o.address)->sin_port),
                         cases[i].port);
    }
}

static void
test_unix(void **state)
{
    struct options o = {0};
    struct err e;
    (void)state;
    assert_int_equal(web_options_parse_listen("unix:/run/x.sock", &o, &e), 0);
    assert_string_equal(o.unix_path, "/run/x.sock");
}

static int
parse(char **argv, struct options *o, struct err *e)
{
    int argc = 0;
    while (argv[argc])
        argc++;
    optind = 0;
    return web_options_parse(argc, argv, o, e);
}

static void
test_together(void **state)
{
    char *plain[] = {"berth-web", NULL};
    char *wide[] = {"berth-web", "--listen", "0.0.0.0:80", NULL};
    char *guarded[] = {"berth-web", "--listen", "0.0.0.0:80", "--token-file", "t", NULL};
    char *hosts[] = {"berth-web", "--host", "a.example", "--host", "b.example", NULL};
    char *wrong[] = {"berth-web", "--host", "http://a.example", NULL};
    char *extra[] = {"berth-web", "what", NULL};
    char *open[] = {"berth-web", "--allow-local", NULL};
    struct options o;
    struct err e;
    (void)state;
    assert_int_equal(parse(plain, &o, &e), 0);
    assert_true(o.is_loopback && !o.allow_local && !o.token_file);
    assert_int_equal(parse(wide, &o, &e), -1);
    assert_non_null(strstr(e.text, "--token-file"));
    assert_int_equal(parse(guarded, &o, &e), 0);
    assert_int_equal(parse(hosts, &o, &e), 0);
    assert_string_equal(o.names[1], "b.example");
    assert_null(o.names[2]);
    assert_int_equal(parse(wrong, &o, &e), -1);
    assert_int_equal(parse(extra, &o, &e), -1);
    assert_int_equal(parse(open, &o, &e), geteuid() == 0 ? -1 : 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listen),
        cmocka_unit_test(test_unix),
        cmocka_unit_test(test_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
