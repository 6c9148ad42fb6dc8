/* The drop-in schedulers' files: a line of the jobs file, the table of models' needs, the
 * state file, the config file of scheduler_10x. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "compat/scheduler/scheduler.h"
#include "compat/scheduler10x/scheduler10x.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static char folder[] = "/tmp/berth-test.XXXXXX";

static int
make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int
remove_folder(void **state)
{
    (void)state;
    (void)unlink("f.json");
    return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static void
put_file(const char *text)
{
    assert_int_equal(
        file_write_atomic_at(-100, "f.json", text, strlen(text), 0600, false, NULL), 0);
}

static void
reads_lines(void **state)
{
    static const struct {
        const char *line;
        enum sched_line kind;
        int64_t priority;
        const char *script, *conda;
        const char *args[4];
        uint64_t allowed;
        const char *mode;
    } cases[] = {
        {"0,/x.py", SCHED_LINE_JOB, 0, "/x.py", NULL, {NULL}, 0, "unknown"},
        {" -3 , /x.py , env ", SCHED_LINE_JOB, -3, "/x.py", "env", {NULL}, 0, "unknown"},
        {"+1_0,/x.py", SCHED_LINE_JOB, 10, "/x.py", NULL, {NULL}, 0, "unknown"},
        {"1,/x.py,,--a 'b c' d\\ e",
         SCHED_LINE_JOB,
         1,
         "/x.py",
         NULL,
         {"--a", "b c", "d e"},
         0,
         "unknown"},
        {"1,/x.py,,\"a\\\"b\\n\" #",
         SCHED_LINE_JOB,
         1,
         "/x.py",
         NULL,
         {"a\"b\\n", "#"},
         0,
         "unknown"},
        {"1,/x.py,,'',", SCHED_LINE_JOB, 1, "/x.py", NULL, {""}, 0, "unknown"},
        {"1,/x.py,,--mode a/./b,0-1, 3",
         SCHED_LINE_JOB,
         1,
         "/x.py",
         NULL,
         {"--mode", "a/./b"},
         0xb,
         "a_b"},
        {"1,/x.py,,--mode abcdefghijklmnopqrstuvw",
         SCHED_LINE_JOB,
         1,
         "/x.py",
         NULL,
         {"--mode", "abcdefghijklmnopqrstuvw"},
         0,
         "abcdefghijklmnopqrst"},
        {"1,/x.py,,,2,,2,9,x", SCHED_LINE_JOB, 1, "/x.py", NULL, {NULL}, 4, "unknown"},
        {"# 0,/x.py", SCHED_LINE_NOTHING, 0, NULL, NULL, {NULL}, 0, NULL},
        {"  \t", SCHED_LINE_NOTHING, 0, NULL, NULL, {NULL}, 0, NULL},
        {"0", SCHED_LINE_BAD, 0, NULL, NULL, {NULL}, 0, NULL},
        {",/x.py", SCHED_LINE_BAD, 0, NULL, NULL, {NULL}, 0, NULL},
        {"0,", SCHED_LINE_BAD, 0, NULL, NULL, {NULL}, 0, NULL},
        {"1.5,/x.py", SCHED_LINE_BAD, 0, NULL, NULL, {NULL}, 0, NULL},
        {"0,/x.py,,'a", SCHED_LINE_BAD, 0, NULL, NULL, {NULL}, 0, NULL},
        {"0,/x.py,,a\\", SCHED_LINE_BAD, 0, NULL, NULL, {NULL}, 0, NULL},
        {"0,/x.py,,,4", SCHED_LINE_BAD, 0, NULL, NULL, {NULL}, 0, NULL},
        {"0,/x.py,,,3-1", SCHED_LINE_BAD, 0, NULL, NULL, {NULL}, 0, NULL},
        {"0,/\xff.py", SCHED_LINE_BAD, 0, NULL, NULL, {NULL}, 0, NULL},
    };
    const struct sched_table table = {.standard = 1};
    const struct sched_rules rules = {&table, 4, false};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf why = BUF_INIT;
        struct sched_spec s;

        assert_int_equal(
            sched_line_parse(cases[i].line, strlen(cases[i].line), &rules, &s, &why),
            cases[i].kind);
        assert_true(cases[i].kind != SCHED_LINE_BAD || why.len > 0);
        if (cases[i].kind != SCHED_LINE_JOB)
            continue;
        assert_int_equal(s.priority, cases[i].priority);
        assert_string_equal(s.script, cases[i].script);
        assert_string_equal(s.conda ? s.conda : "", cases[i].conda ? cases[i].conda : "");
        for (size_t k = 0; k < COUNT(cases[i].args); k++) {
            if (!cases[i].args[k]) {
                assert_null(s.args[k]);
                break;
            }
            assert_string_equal(s.args[k], cases[i].args[k]);
        }
        assert_int_equal(s.allowed, cases[i].allowed);
        assert_string_equal(s.mode, cases[i].mode);
        sched_spec_free(&s);
    }
}

static void
refuses_a_wrong_piece_where_that_is_strict(void **state)
{
    const struct sched_table table = {.standard = 1};
    const struct sched_rules rules = {&table, 4, true};
    auto_buf struct buf why = BUF_INIT;
    struct sched_spec s;

    (void)state;
    assert_int_equal(sched_line_parse("0,/x.py,,,0,x", 13, &rules, &s, &why), SCHED_LINE_BAD);
    assert_non_null(strstr(buf_str(&why), "'x' is no GPU"));
}

/* A job's identity includes the order of arguments and their boundaries, but not the
 * priority. */
static void
tells_jobs_apart_by_what_they_are(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"0,/x.py,,--lr 1 --bs 2", "0,/x.py,,--lr 2 --bs 1", false},
        {"0,/x.py,,--lr 1 --bs 2", "0,/x.py,,--lr 1  --bs '2'", true},
        {"0,/x.py,,ab c", "0,/x.py,,a bc", false},
        {"0,/x.py,,'a b'", "0,/x.py,,a b", false},
        {"0,/x.py,e,a", "0,/x.py,,e a", false},
        {"0,/x.py", "7,/x.py", true},
        {"0,/x.py,,,0", "0,/x.py,,,1", false},
        {"0,/x.py,,,0-1", "0,/x.py,,,1,0", true},
    };
    const struct sched_table table = {.standard = 1};
    const struct sched_rules rules = {&table, 4, false};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf why = BUF_INIT;
        struct sched_spec a, b;

        assert_int_equal(sched_line_parse(cases[i].a, strlen(cases[i].a), &rules, &a, &why), 0);
        assert_int_equal(sched_line_parse(cases[i].b, strlen(cases[i].b), &rules, &b, &why), 0);
        assert_int_equal(strcmp(a.key, b.key) == 0, cases[i].same);
        sched_spec_free(&a);
        sched_spec_free(&b);
    }
}

static void
looks_up_what_a_model_needs(void **state)
{
    struct sched_table t;
    auto_buf struct buf why = BUF_INIT;
    struct sched_spec s;

    (void)state;
    put_file(
        "{\"default_requirement\": 0.25, \"models\": {\"half\": 0.5, \"bad\": -1, \"word\": "
        "\"x\", \"two\": 2}}");
    assert_false(sched_table_load(&t, "f.json", &why));
    assert_non_null(strstr(buf_str(&why), "what 'bad' needs"));
    const struct sched_rules rules = {&t, 4, false};
    const struct {
        const char *line;
        double need;
    } cases[] = {
        {"0,/x.py,,--llm half", 0.5},  {"0,/x.py,,--llm two --llm half", 2},
        {"0,/x.py,,--llm=half", 0.25}, {"0,/x.py,,--llm bad", 0.25},
        {"0,/x.py,,--llm", 0.25},      {"0,/x.py,,x --llm other", 0.25},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        buf_clear(&why);
        assert_int_equal(
            sched_line_parse(cases[i].line, strlen(cases[i].line), &rules, &s, &why), 0);
        assert_true(fabs(s.need - cases[i].need) < 1e-9);
        sched_spec_free(&s);
    }
    json_decref(t.models);
    put_file("no JSON");
    assert_false(sched_table_load(&t, "f.json", &why));
    assert_true(t.standard == 1 && !t.models);
}

static void
keeps_a_state_file_as_it_was_written(void **state)
{
    static const char text[] =
        "{\n    \"gpu_status\": [\n        0.0,\n        0.3333,\n        "
        "1.0\n    ],\n    \"paused_gpus\": [\n        0,\n        2\n    "
        "]\n}";
    auto_buf struct buf again = BUF_INIT;
    struct sched_state s;

    (void)state;
    put_file(text);
    assert_int_equal(sched_state_read("f.json", &s, NULL), 0);
    assert_true(s.there && s.n == 3 && s.paused == 5);
    assert_int_equal(sched_state_write("f.json", &s, NULL), 0);
    assert_int_equal(file_read("f.json", 4096, &again, NULL), 0);
    assert_string_equal(buf_str(&again), text);
    /* Values are clamped to 0..1; entries that are not GPUs are skipped. */
    put_file("{\"gpu_status\": [7, -1, \"x\"], \"paused_gpus\": [1, 64, -1, \"2\"]}");
    assert_int_equal(sched_state_read("f.json", &s, NULL), 0);
    assert_true(s.n == 3 && s.alloc[0] == 1 && s.alloc[1] == 0 && s.paused == 2);
    put_file("{\"gpu_status\": [");
    assert_int_equal(sched_state_read("f.json", &s, NULL), -1);
    put_file("{\"paused_gpus\": \"1\"}");
    assert_int_equal(sched_state_read("f.json", &s, NULL), -1);
    put_file("{\"gpu_status\": 7}");
    assert_int_equal(sched_state_read("f.json", &s, NULL), 0);
    assert_true(s.there && s.n == 0 && s.paused == 0);
    assert_int_equal(sched_state_read("none.json", &s, NULL), 0);
    assert_false(s.there);
}

static void
pauses_and_resumes_in_the_file(void **state)
{
    struct sched_state s;

    (void)state;
    put_file("{\"gpu_status\": [0.5], \"paused_gpus\": []}");
    assert_int_equal(sched_state_pause("f.json", 3, 4, true, NULL), 0);
    assert_int_equal(sched_state_pause("f.json", 3, 4, true, NULL), 1);
    assert_int_equal(sched_state_read("f.json", &s, NULL), 0);
    assert_true(s.n == 4 && s.paused == 8 && s.alloc[0] == 0.5);
    assert_int_equal(sched_state_pause("f.json", 3, 4, false, NULL), 0);
    assert_int_equal(sched_state_pause("f.json", 3, 4, false, NULL), 1);
}

static void
loads_its_own_sample(void **state)
{
    auto_buf struct buf text = BUF_INIT;
    struct x10_config c;
    struct err e = {0};

    (void)state;
    x10_config_sample(&text);
    put_file(buf_str(&text));
    x10_config_init(&c);
    assert_int_equal(x10_config_read(&c, "f.json", &e), 0);
    assert_int_equal(x10_config_check(&c, &e), 0);
    assert_int_equal(c.num_gpus, 8);
    assert_true(c.job_timeout_s == 3600 && c.sched.monitor_s == 30 && c.sched.state_s == 5);
    assert_string_equal(c.allowed[2], "/tmp/test/");
    x10_config_free(&c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_lines),
        cmocka_unit_test(refuses_a_wrong_piece_where_that_is_strict),
        cmocka_unit_test(tells_jobs_apart_by_what_they_are),
        cmocka_unit_test(looks_up_what_a_model_needs),
        cmocka_unit_test(keeps_a_state_file_as_it_was_written),
        cmocka_unit_test(pauses_and_resumes_in_the_file),
        cmocka_unit_test(loads_its_own_sample),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
