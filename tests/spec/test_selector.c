/* Selectors: which jobs of a small table each text selects, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "core/queue/job.h"
#include "spec/selector.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
    uint32_t id;
    const char *name, *user, *state;
    bool is_last;
    uint32_t array;
    int32_t task;
    const char *tags[3];
} jobs[] = {
    {1, "sweep-1", "alice", "COMPLETED", false, 0, -1, {"night", "v2"}},
    {2, "sweep-2", "bob", "FAILED", false, 0, -1, {"night"}},
    {3, NULL, "alice", "RUNNING", false, 0, -1, {NULL}},
    {12, "sweep-12", "alice", "PENDING", true, 0, -1, {NULL}},
    {20, "a,b:c", "carol", "OUT_OF_MEMORY", false, 0, -1, {NULL}},
    {31, NULL, "dave", "RUNNING", false, 30, 0, {NULL}},
    {32, NULL, "dave", "RUNNING", false, 30, 7, {NULL}},
    {33, NULL, "dave", "RUNNING", false, 40, 7, {NULL}},
};

/* The ids of the matching jobs, "1 12 ". */
static void
match(const struct selector *s, char *out, size_t size)
{
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = 0; i < COUNT(jobs); i++) {
        const struct selector_job job = {.id = jobs[i].id,
                                         .array = jobs[i].array,
                                         .task = jobs[i].task,
                                         .name = jobs[i].name,
                                         .user = jobs[i].user,
                                         .state = jobs[i].state,
                                         .tags = jobs[i].tags,
                                         .is_last = jobs[i].is_last};
        if (selector_matches(s, &job))
            n += (size_t)snprintf(out + n, size - n, "%u ", jobs[i].id);
    }
}

static void
selects(void **state)
{
    static const struct {
        const char *text, *ids;
    } cases[] = {
        {"12", "12 "},
        {"1,3", "1 3 "},
        {"2-12", "2 3 12 "},
        {"1,3-20", "1 3 12 20 "},
        {"2-2", "2 "},
        {"99", ""},
        {"4294967295", ""},
        {"@", "12 "},
        {"1,@", "1 12 "},
        {"all", "1 2 3 12 20 31 32 33 "},
        {"ALL", "1 2 3 12 20 31 32 33 "},
        {"--all", "1 2 3 12 20 31 32 33 "},
        {"name:sweep*", "1 2 12 "},
        {"name:sweep-?", "1 2 "},
        {"name:*", "1 2 12 20 "},
        {"NAME:a,b:c", "20 "},
        {"user:alice", "1 3 12 "},
        {"user:alice,carol", "1 3 12 20 "},
        {"user:ali*", ""},
        {"state:failed", "2 "},
        {"state:Running,PENDING", "3 12 31 32 33 "},
        {"state:out_of_memory", "20 "},
        {"30_7", "32 "},
        {"30_0,40_7", "31 33 "},
        {"30_[0-7]", "31 32 "},
        {"30_[5,7-9],12", "12 32 "},
        {"30_[0,7]", "31 32 "},
        {"30_8", ""},
        {"12_0", ""},
        {"tag:night", "1 2 "},
        {"tag:v*", "1 "},
        {"tag:v2,night", "1 2 "},
        {"TAG:none", ""},
    };
    char ids[64];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_selector struct selector s = SELECTOR_INIT;
        struct err e;
        if (selector_add(&s, cases[i].text, &e) < 0)
            fail_msg("'%s': %s", cases[i].text, e.text);
        match(&s, ids, sizeof ids);
        assert_string_equal(ids, cases[i].ids);
    }
}

static void
several_are_a_union(void **state)
{
    auto_selector struct selector s = SELECTOR_INIT;
    struct err e;
    char ids[64];

    (void)state;
    match(&s, ids, sizeof ids);
    assert_string_equal(ids, "");
    assert_int_equal(selector_add(&s, "1", &e), 0);
    assert_int_equal(selector_add(&s, "state:failed", &e), 0);
    assert_int_equal(selector_add(&s, "3,bad", &e), -1); /* changes nothing */
    assert_int_equal(s.n_terms, 2);
    match(&s, ids, sizeof ids);
    assert_string_equal(ids, "1 2 ");
}

static void
refuses_with_words(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "'' is incomplete; write a job's number"},
        {"0", "'0' selects no job; write a job's number"},
        {"4294967296", "selects no job"},
        {"99999999999999999999", "selects no job"},
        {"-5", "selects no job"},
        {"5-", "is not a range"},
        {"5-0", "is not a range"},
        {"5-3", "runs backwards"},
        {"5-3-1", "selects no job"},
        {"3-5-7", "selects no job"},
        {"1,,2", "is incomplete"},
        {"1,", "is incomplete"},
        {"1 2", "selects no job"},
        {"12_", "'12_' is not a task of an array; write 12_3"},
        {"12_x", "is not a task of an array"},
        {"12_3-5", "is not a task of an array; write 12_3 or 12_[3-5,9]"},
        {"12_[3", "is not a task"},
        {"12_[3]4", "is not a task"},
        {"12_[]", "is not a task"},
        {"12_[3,]", "is not a task"},
        {"12_[5-3]", "is not a task"},
        {"12_1000000", "is not a task"},
        {"_3", "selects no job"},
        {"sweep", "'sweep' selects no job; write a job's number"},
        {"name:", "lacks the name"},
        {"user:", "is incomplete"},
        {"state:", "is incomplete"},
        {"state:faild", "'faild' is not a state; did you mean FAILED?"},
        {"state:xyz", "the states are PENDING, HELD, STARTING, RUNNING, COMPLETING, "},
        {"state:suspended", "'suspended' is not a state"},
        {"usr:alice", "did you mean user:alice?"},
        {"tag:", "is incomplete"},
        {"tags:x", "did you mean tag:x?"},
        {"what:x", "selects no job"},
        {":x", "selects no job"},
        {"a\x1b[2J", "'a\\x1B[2J' selects no job"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_selector struct selector s = SELECTOR_INIT;
        struct err e;
        if (selector_add(&s, cases[i].text, &e) == 0)
            fail_msg("'%s' is accepted", cases[i].text);
        assert_int_equal(e.code, ERR_USAGE);
        assert_int_equal(s.n_terms, 0);
        if (!strstr(e.text, cases[i].error))
            fail_msg("'%s': %s", cases[i].text, e.text);
    }
}

/* The grammar's states are exactly the scheduler's. */
static void
knows_every_state(void **state)
{
    (void)state;
    for (int i = 0; i < JOB_STATES; i++) {
        auto_selector struct selector s = SELECTOR_INIT;
        char text[64];
        struct err e;
        if (i == JOB_SUSPENDED)
            continue;
        snprintf(text, sizeof text, "state:%s", job_state_name((enum job_state)i));
        assert_int_equal(selector_add(&s, text, &e), 0);
        const struct selector_job job = {.id = 1, .state = job_state_name((enum job_state)i)};
        assert_true(selector_matches(&s, &job));
    }
}

/* A normalised selector selects the same as before. */
static void
puts_together_what_is_said_twice(void **state)
{
    static const struct {
        const char *texts[4];
        size_t terms;
        const char *ids;
    } cases[] = {
        {{"1", "1", "2", "3"}, 1, "1 2 3 "},
        {{"3,1", "20", "2"}, 2, "1 2 3 20 "},
        {{"1-3", "2-12", "2"}, 2, "1 2 3 12 "},
        {{"30_[0-5]", "30_[3-7]", "30_7"}, 1, "31 32 "},
        {{"40_7", "30_[0-5]", "@"}, 3, "12 31 33 "},
        {{"name:sweep*", "name:sweep*", "user:dave"}, 2, "1 2 12 31 32 33 "},
        {{"state:failed", "tag:night", "12", "31-33"}, 4, "1 2 12 31 32 33 "},
        {{"4294967295", "4294967294", "1-4294967295"}, 2, "1 2 3 12 20 31 32 33 "},
    };
    char before[64], after[64];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_selector struct selector s = SELECTOR_INIT;
        struct err e;
        for (size_t k = 0; k < 4 && cases[i].texts[k]; k++)
            assert_int_equal(selector_add(&s, cases[i].texts[k], &e), 0);
        match(&s, before, sizeof before);
        assert_int_equal(selector_tidy(&s, &e), 0);
        match(&s, after, sizeof after);
        assert_string_equal(before, cases[i].ids);
        assert_string_equal(after, cases[i].ids);
        assert_int_equal(s.n_terms, cases[i].terms);
    }
}

static void
refuses_too_many_terms(void **state)
{
    auto_selector struct selector ids = SELECTOR_INIT;
    auto_selector struct selector names = SELECTOR_INIT;
    char text[SELECTOR_PATTERN_MAX_BYTES + 10];
    struct err e;

    (void)state;
    for (int i = 0; i < SELECTOR_TERMS_MAX; i++) {
        snprintf(text, sizeof text, "%d", 2 * i + 1);
        assert_int_equal(selector_add(&ids, text, &e), 0);
    }
    assert_int_equal(selector_tidy(&ids, &e), 0);
    assert_true(selector_names(&ids, 1999, 0));
    assert_false(selector_names(&ids, 1998, 0));
    assert_int_equal(selector_add(&ids, "5000", &e), 0);
    assert_int_equal(selector_tidy(&ids, &e), -1);
    assert_int_equal(e.code, ERR_USAGE);
    for (int i = 0; i <= SELECTOR_PATTERNS_MAX; i++) {
        snprintf(text, sizeof text, "tag:%d", i);
        assert_int_equal(selector_add(&names, text, &e), 0);
    }
    assert_int_equal(selector_tidy(&names, &e), -1);
    assert_non_null(strstr(e.text, "65 names and tags"));
    memcpy(text, "name:", 5);
    memset(text + 5, 'x', SELECTOR_PATTERN_MAX_BYTES + 1);
    text[5 + SELECTOR_PATTERN_MAX_BYTES + 1] = '\0';
    assert_int_equal(selector_add(&names, text, &e), -1);
}

static size_t
looked_up(const struct selector *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_terms; i++)
        n += s->terms[i].each ? s->terms[i].last - s->terms[i].first + 1 : 0;
    return n;
}

/* All of them are selected, but consecutive ids are not looked up one by one. */
static void
numbers_without_end_are_ranges(void **state)
{
    auto_selector struct selector row = SELECTOR_INIT;
    auto_selector struct selector holes = SELECTOR_INIT;
    auto_selector struct selector said = SELECTOR_INIT;
    char text[24], ids[64];
    struct err e;

    (void)state;
    for (int i = 2; i < 6002; i++) {
        if (i == 5002) {
            assert_int_equal(selector_tidy(&row, &e), 0);
            assert_int_equal(looked_up(&row), 5000);
        }
        snprintf(text, sizeof text, "%d", i);
        assert_int_equal(selector_add(&row, text, &e), 0);
    }
    assert_int_equal(selector_add(&row, "9000", &e), 0);
    assert_int_equal(selector_tidy(&row, &e), 0);
    assert_int_equal(looked_up(&row), 1);
    assert_true(selector_names(&row, 9000, 0));
    assert_false(selector_names(&row, 12, 0));
    match(&row, ids, sizeof ids);
    assert_string_equal(ids, "2 3 12 20 31 32 33 ");
    for (int i = 0; i < 50000; i++) {
        snprintf(text, sizeof text, "%d", i + 1 + i / 50);
        assert_int_equal(selector_add(&holes, text, &e), 0);
    }
    assert_int_equal(selector_tidy(&holes, &e), 0);
    assert_true(looked_up(&holes) <= 5000);
    for (int i = 0; i < 100000; i++)
        assert_int_equal(selector_add(&said, i % 2 ? "1_2" : "1", &e), 0);
    assert_int_equal(selector_add(&said, "1", &e), -1);
    assert_int_equal(e.code, ERR_USAGE);
    assert_int_equal(selector_add(&said, "1_[3]", &e), -1);
    assert_int_equal(said.n_terms, 100000);
    assert_int_equal(selector_tidy(&said, &e), 0);
    assert_int_equal(said.n_terms, 2);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(selects),
        cmocka_unit_test(several_are_a_union),
        cmocka_unit_test(refuses_with_words),
        cmocka_unit_test(knows_every_state),
        cmocka_unit_test(puts_together_what_is_said_twice),
        cmocka_unit_test(refuses_too_many_terms),
        cmocka_unit_test(numbers_without_end_are_ranges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
