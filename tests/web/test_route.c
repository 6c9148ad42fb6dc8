/* The meaning of a path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "web/route.h"

static void
test_paths(void **state)
{
    static const struct {
        const char *path;
        enum route_kind kind;
        enum query_kind query;
        int64_t job;
    } cases[] = {
        {"/", ROUTE_PAGE, QUERY_OVERVIEW, 0},
        {"/history", ROUTE_PAGE, QUERY_HISTORY, 0},
        {"/jobs/12", ROUTE_PAGE, QUERY_JOB, 12},
        {"/jobs/4294967295", ROUTE_PAGE, QUERY_JOB, 4294967295},
        {"/api/v1/jobs/12", ROUTE_DATA, QUERY_JOB, 12},
        {"/api/v1/jobs/12/series", ROUTE_DATA, QUERY_JOB_SERIES, 12},
        {"/api/v1/jobs/12/log", ROUTE_LOG, QUERY_JOB, 12},
        {"/api/v1/events", ROUTE_EVENTS, 0, 0},
        {"/metrics", ROUTE_DATA, QUERY_METRICS, 0},
        {"/login", ROUTE_LOGIN, 0, 0},
        {"/assets/x", ROUTE_ASSET, 0, 0},
        {"/jobs/", ROUTE_NONE, 0, 0},
        {"/jobs/0", ROUTE_NONE, 0, 0},
        {"/jobs/-1", ROUTE_NONE, 0, 0},
        {"/jobs/1x", ROUTE_NONE, 0, 0},
        {"/jobs/1/", ROUTE_NONE, 0, 0},
        {"/jobs/4294967296", ROUTE_NONE, 0, 0},
        {"/jobs/99999999999999999999", ROUTE_NONE, 0, 0},
        {"/api/v1/jobs/1/series/", ROUTE_NONE, 0, 0},
        {"/api/v1", ROUTE_NONE, 0, 0},
        {"//", ROUTE_NONE, 0, 0},
        {"", ROUTE_NONE, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct route r;
        route_find(cases[i].path, &r);
        if (r.kind != cases[i].kind || r.job != cases[i].job)
            fail_msg("%s", cases[i].path);
        assert_int_equal(r.query, cases[i].query);
    }
}

/* Without the token only the form and its assets are served. */
static void
test_open(void **state)
{
    static const char *const open[] = {"/login", "/logout", "/assets/style.css",
                                       "/favicon.ico"};
    static const char *const shut[] = {"/",        "/history", "/jobs/1", "/api/v1/events",
                                       "/metrics", "/health",  "/nothing"};
    struct route r;
    (void)state;
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++) {
        route_find(open[i], &r);
        assert_true(r.is_open);
    }
    for (size_t i = 0; i < sizeof shut / sizeof shut[0]; i++) {
        route_find(shut[i], &r);
        assert_false(r.is_open);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
