/* Which events pass which filters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "daemon/request/event_filter.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct event_view events[] = {
    {.kind = "ended",
     .job = 3,
     .file = 1,
     .line = "{\"user\":\"al\",\"name\":\"\\\"user\\\":\\\"bo\\\"\"}"},
    {.kind = "started", .job = 4, .file = 2, .line = "{\"user\":\"bo\"}"},
    {.kind = "gpu", .line = "{}"},
};

static void
lets_through_what_fits(void **state)
{
    static const struct {
        const char *params, *passes; /* + or - for each event */
    } cases[] = {
        {"{}", "+++"},
        {"{\"kinds\":[\"ended\"]}", "+--"},
        {"{\"kinds\":[\"ended\",\"gpu\"]}", "+-+"},
        {"{\"user\":\"bo\"}", "-+-"},
        {"{\"user\":\"b\"}", "---"},
        {"{\"jobs\":[4,1,9]}", "-++"},
        {"{\"jobs\":[]}", "--+"},
        {"{\"file\":1}", "+-+"},
        {"{\"file\":1,\"kinds\":[\"started\"]}", "---"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_t *params = json_loads(cases[i].params, 0, NULL);
        struct event_filter f;
        struct err e;
        assert_int_equal(event_filter_read(params, &f, &e), 0);
        for (size_t k = 0; k < COUNT(events); k++) {
            struct event_view ev = events[k];
            ev.n = strlen(ev.line);
            if (event_filter_lets(&f, &ev) != (cases[i].passes[k] == '+'))
                fail_msg("%s, event %zu", cases[i].params, k);
        }
        event_filter_free(&f);
        json_decref(params);
    }
}

static void
refuses_what_makes_no_sense(void **state)
{
    static const char *const cases[] = {
        "{\"kinds\":[]}",  "{\"kinds\":\"ended\"}", "{\"kinds\":[\"end\"]}",
        "{\"kinds\":[3]}", "{\"jobs\":\"3\"}",      "{\"user\":3}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_t *params = json_loads(cases[i], 0, NULL);
        struct event_filter f;
        struct err e = {0};
        assert_int_equal(event_filter_read(params, &f, &e), -1);
        assert_int_equal(e.code, ERR_USAGE);
        json_decref(params);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lets_through_what_fits),
        cmocka_unit_test(refuses_what_makes_no_sense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
