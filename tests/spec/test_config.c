/* Settings: defaults, YAML and JSON, errors and their positions, and that written settings
 * read back the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "spec/config.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int
read_text(struct config *c, const char *text, struct err *e)
{
    return config_read(c, "c.yaml", text, strlen(text), NULL, e);
}

static void
has_the_promised_defaults(void **state)
{
    struct config c;
    size_t n = 0;
    double tenth = 0.1;

    (void)state;
    config_init(&c);
    assert_int_equal(c.margin_mib, 512);
    assert_int_equal(c.idle_threshold_mib, 1024);
    assert_memory_equal(&c.spike_buffer, &tenth, sizeof tenth);
    assert_memory_equal(&c.tolerance, &tenth, sizeof tenth);
    assert_int_equal(c.placement, PLACEMENT_PACK);
    assert_int_equal(c.sample_ms, 1000);
    assert_int_equal(c.idle_sample_ms, 10000);
    assert_int_equal(c.probe_deadline_ms, 15000);
    assert_int_equal(c.vram_wait_ms, 10000);
    assert_int_equal(c.grace_ms, 10000);
    assert_int_equal(c.idle_exit_s, 300);
    assert_int_equal(c.oom_retries, 0);
    assert_int_equal(c.gpu_env, GPU_ENV_INDEX);
    assert_int_equal(c.on_exceed, CONFIG_EXCEED_WARN);
    assert_int_equal(c.pending_max, 1000000);
    assert_int_equal(c.log_level, LOG_LEVEL_INFO);
    while (c.oom_patterns[n])
        n++;
    assert_int_equal(n, 6);
    assert_string_equal(c.oom_patterns[0], "cuda out of memory");
    config_free(&c);
}

static void
reads_yaml_and_json(void **state)
{
    static const char *const texts[] = {
        "# mine\nmargin_mib: 256\nplacement: Spread\nspike_buffer: 0.25\ngpu_env: uuid\n"
        "oom_patterns:\n  - Out Of Luck\n  - 'no: more'\n",
        "{\"margin_mib\": 256, \"placement\": \"spread\", \"spike_buffer\": 0.25,\n"
        " \"gpu_env\": \"uuid\", \"oom_patterns\": [\"out of luck\", \"no: more\"]}\n",
        "---\nmargin_mib: \"256\"\nplacement: spread\nspike_buffer: .25\ngpu_env: uuid\n"
        "oom_patterns: [out of luck, \"no: more\"]\n...\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct config c;
        struct err e;
        double quarter = 0.25;
        config_init(&c);
        if (read_text(&c, texts[i], &e) < 0)
            fail_msg("%s", e.text);
        assert_int_equal(c.margin_mib, 256);
        assert_int_equal(c.placement, PLACEMENT_SPREAD);
        assert_memory_equal(&c.spike_buffer, &quarter, sizeof quarter);
        assert_int_equal(c.gpu_env, GPU_ENV_UUID);
        assert_string_equal(c.oom_patterns[0], "out of luck");
        assert_string_equal(c.oom_patterns[1], "no: more");
        assert_null(c.oom_patterns[2]);
        assert_int_equal(c.sample_ms, 1000); /* not given: unchanged */
        config_free(&c);
    }
}

static void
yes_and_no_have_many_words(void **state)
{
    static const struct {
        const char *word;
        bool on;
    } cases[] = {{"on", true},   {"true", true}, {"Yes", true},
                 {"off", false}, {"no", false},  {"FALSE", false}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct config c;
        struct err e;
        auto_free char *text = xasprintf("private: %s\n", cases[i].word);
        config_init(&c);
        c.private = !cases[i].on;
        if (read_text(&c, text, &e) < 0)
            fail_msg("%s", e.text);
        assert_int_equal(c.private, cases[i].on);
        config_free(&c);
    }
}

static void
empty_texts_change_nothing(void **state)
{
    static const char *const texts[] = {"", "\n", "# only words\n", "---\n{}\n", "{}"};

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct config c;
        struct err e;
        config_init(&c);
        assert_int_equal(config_set(&c, "margin_mib", "77", &e), 0);
        if (read_text(&c, texts[i], &e) < 0)
            fail_msg("'%s': %s", texts[i], e.text);
        assert_int_equal(c.margin_mib, 77);
        config_free(&c);
    }
}

static void
refuses_with_place_and_range(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"margin_mib: -1\n",
         "c.yaml:1: margin_mib: '-1' is not a whole number from 0 to 16777216"},
        {"\n\nmargin_mib: 1.5\n", "c.yaml:3: margin_mib: '1.5'"},
        {"margin_mib:\n  abc\n", "c.yaml:2: margin_mib: 'abc'"},
        {"spike_buffer: nan\n", "c.yaml:1: spike_buffer: 'nan' is not a number from 0 to 10"},
        {"spike_buffer: .inf\n", "spike_buffer: '.inf'"},
        {"tolerance: 1.5\n", "tolerance: '1.5' is not a number from 0 to 1"},
        {"placement: tight\n", "c.yaml:1: placement: 'tight' is not one of pack, spread"},
        {"sample_ms: 0\n", "from 50 to 3600000"},
        {"sample_ms: 1000\nmargn_mib: 3\n",
         "c.yaml:2: unknown setting 'margn_mib'; did you mean margin_mib?"},
        {"xyzzy: 3\n", "unknown setting 'xyzzy'; the settings are margin_mib, "},
        {"margin_mib: 1\nmargin_mib: 1\n", "c.yaml:2: margin_mib is given twice"},
        {"margin_mib: [1]\n", "c.yaml:1: margin_mib: a list where a single value belongs"},
        {"margin_mib: {a: 1}\n", "margin_mib: a mapping where a single value belongs"},
        {"margin_mib:\n", "margin_mib: an empty value"},
        {"margin_mib: ~\n", "margin_mib: '~'"},
        {"oom_patterns: {a: b}\n", "oom_patterns: a mapping where a list belongs"},
        {"oom_patterns: [a, [b]]\n", "oom_patterns must be a list of at most 64 texts"},
        {"oom_patterns: [a, '']\n", "oom_patterns: entry 2 is 0 bytes"},
        {"oom_patterns:\n", "oom_patterns: entry 1 is 0 bytes"},
        {"- a\n- b\n", "c.yaml:1: a file of settings must be"},
        {"hello\n", "c.yaml:1: a file of settings must be"},
        {"margin_mib: 1\n---\nmargin_mib: 2\n", "a file of settings must be"},
        {"? [a]\n: b\n", "a list where a setting's name belongs"},
        {"margin_mib: &a 1\nsample_ms: *a\n",
         "sample_ms: an alias where a single value belongs"},
        {"margin_mib: 1\nsample_ms: \"2\n", "not YAML: "},
        {"{\"margin_mib\": 1", "not YAML: "},
        {"webhook: hooks.example.org\n",
         "c.yaml:1: webhook: 'hooks.example.org' is not a URL; write http://HOST/PATH or "
         "https://HOST/PATH, at most 2000 bytes"},
        {"models: table.json\n", "c.yaml:1: models: 'table.json' is not an absolute path"},
        {"users: alice\n", "c.yaml:1: users: a single value where a mapping of users belongs"},
        {"users: [alice]\n", "users: a list where a mapping of users belongs"},
        {"users:\n  alice: 2\n",
         "c.yaml:2: users: alice: a single value where a mapping belongs"},
        {"users:\n  alice: {weight: 0}\n",
         "c.yaml:2: users: alice: weight: '0' is not a number from 0.01 to 1000"},
        {"users:\n  alice:\n    max_running: -1\n",
         "c.yaml:3: users: alice: max_running: '-1' is not a whole number from 0"},
        {"users:\n  alice: {max_runing: 1}\n",
         "users: alice: unknown limit 'max_runing'; did you mean max_running?"},
        {"users:\n  alice: {xyzzy: 1}\n", "unknown limit 'xyzzy'; use weight, "},
        {"users:\n  alice: {max_gpus: [1]}\n", "users: alice: keys and single values belong"},
        {"users:\n  a: {}\n  a: {}\n", "c.yaml:3: users: a is given twice"},
        {"users:\n  [a]: {}\n", "users: expected the name of a user"},
        {"users:\n  'a b': {}\n", "users: expected the name of a user"},
        {"users: {a: {weight: 2}", "not YAML"},
        {"margin_mib: \"1\\0\"\n", "where a single value belongs"},
        {"margin_mib: \x01\n", "not YAML"},
        {"margin_mib: \xff\n", "not YAML"},
    };
    struct config c;

    (void)state;
    config_init(&c);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct err e;
        if (read_text(&c, cases[i].text, &e) == 0)
            fail_msg("'%s' is accepted", cases[i].text);
        assert_int_equal(e.code, ERR_USAGE);
        assert_memory_equal(e.text, "c.yaml:", 7);
        if (!strstr(e.text, cases[i].error))
            fail_msg("'%s': %s", cases[i].text, e.text);
    }
    assert_int_equal(c.margin_mib, 512); /* nothing of a refused file was applied */
    assert_int_equal(c.sample_ms, 1000);
    config_free(&c);
}

static void
reads_users_and_paths(void **state)
{
    static const char text[] = "users:\n"
                               "  alice: {weight: 2.5, max_running: 4}\n"
                               "  bob:\n    max_gpus: 0\n    max_vram_mib: 40000\n"
                               "    max_pending: 7\n"
                               "  carol: {}\n"
                               "models: /etc/berth/models.json\n";
    struct config c;
    struct err e;

    (void)state;
    config_init(&c);
    assert_int_equal(c.n_users, 0);
    assert_string_equal(c.models, "");
    if (read_text(&c, text, &e) < 0)
        fail_msg("%s", e.text);
    assert_string_equal(c.models, "/etc/berth/models.json");
    assert_int_equal(c.n_users, 3);
    assert_string_equal(c.users[0].name, "alice");
    assert_true(c.users[0].weight > 2.4 && c.users[0].weight < 2.6);
    assert_int_equal(c.users[0].max_running, 4);
    assert_int_equal(c.users[0].max_gpus, -1);
    assert_int_equal(c.users[1].max_gpus, 0);
    assert_int_equal(c.users[1].max_vram_mib, 40000);
    assert_int_equal(c.users[1].max_pending, 7);
    assert_true(c.users[2].weight > 0.9 && c.users[2].weight < 1.1);
    /* A later file's map replaces an earlier one's. */
    assert_int_equal(read_text(&c, "users: {dave: {weight: 3}}\n", &e), 0);
    assert_int_equal(c.n_users, 1);
    assert_string_equal(c.users[0].name, "dave");
    assert_int_equal(config_set(&c, "users", "x", &e), -1);
    assert_non_null(strstr(e.text, "write it into a file of settings"));
    config_free(&c);
}

static void
finds_every_error(void **state)
{
    static const char text[] = "margin_mib: -1\n"
                               "xyzzy: {a: [1, {b: c}]}\n"
                               "sample_ms: [1, 2]\n"
                               "oom_patterns: [a, [b], {c: d}]\n"
                               "users:\n"
                               "  alice: {weight: -1, max_gpus: {}, max_running: 3}\n"
                               "  bob: [1]\n"
                               "? {a: b}\n"
                               ": [c]\n"
                               "margin_mib: 5\n"
                               "tolerance: 2\n";
    static const char *const lines[] = {
        "c.yaml:1: margin_mib",
        "c.yaml:2: unknown setting 'xyzzy'",
        "c.yaml:3: sample_ms",
        "c.yaml:4: oom_patterns",
        "c.yaml:6: users: alice: weight",
        "c.yaml:6: users: alice: keys",
        "c.yaml:7: users: bob",
        "c.yaml:8: a mapping where",
        "c.yaml:10: margin_mib is given twice",
        "c.yaml:11: tolerance",
    };
    auto_buf struct buf all = BUF_INIT;
    struct config c;
    struct err e;
    size_t n = 0;

    (void)state;
    config_init(&c);
    assert_int_equal(config_read(&c, "c.yaml", text, strlen(text), &all, &e), -1);
    assert_memory_equal(e.text, lines[0], strlen(lines[0]));
    char *rest = all.data, *line;
    while ((line = strsep(&rest, "\n")) && *line) {
        assert_true(n < COUNT(lines));
        if (strncmp(line, lines[n], strlen(lines[n])) != 0)
            fail_msg("error %zu: %s", n, line);
        n++;
    }
    assert_int_equal(n, COUNT(lines));
    assert_int_equal(c.n_users, 0);
    config_free(&c);
}

static void
lists_have_a_bound(void **state)
{
    struct config c;
    struct err e;

    (void)state;
    config_init(&c);
    for (int n = 63; n <= 66; n++) {
        auto_buf struct buf yaml = BUF_INIT, commas = BUF_INIT;
        buf_adds(&yaml, "oom_patterns:\n");
        for (int i = 0; i < n; i++) {
            buf_addf(&yaml, "- p%d\n", i);
            buf_addf(&commas, "%sp%d", i ? "," : "", i);
        }
        assert_int_equal(read_text(&c, yaml.data, &e), n <= 64 ? 0 : -1);
        assert_int_equal(config_set(&c, "oom_patterns", commas.data, &e), n <= 64 ? 0 : -1);
    }
    assert_int_equal(config_set(&c, "oom_patterns", "", &e), 0);
    assert_null(c.oom_patterns[0]);
    config_free(&c);
}

static void
sets_single_values(void **state)
{
    struct config c;
    struct err e;

    (void)state;
    config_init(&c);
    assert_int_equal(config_set(&c, "idle_exit_s", "0", &e), 0);
    assert_int_equal(c.idle_exit_s, 0);
    assert_int_equal(config_set(&c, "on_exceed", "kill", &e), 0);
    assert_int_equal(c.on_exceed, CONFIG_EXCEED_KILL);
    assert_int_equal(config_set(&c, "oom_patterns", "One,two three", &e), 0);
    assert_string_equal(c.oom_patterns[0], "one");
    assert_string_equal(c.oom_patterns[1], "two three");
    assert_int_equal(config_set(&c, "oom_patterns", "a,,b", &e), -1);
    assert_int_equal(config_set(&c, "margin", "1", &e), -1);
    assert_non_null(strstr(e.text, "did you mean margin_mib?"));
    assert_int_equal(config_set(&c, "grace_ms", "soon", &e), -1);
    assert_string_equal(e.text, "grace_ms: 'soon' is not a whole number from 0 to 86400000");
    config_free(&c);
}

static void
the_sample_is_the_defaults(void **state)
{
    auto_buf struct buf sample = BUF_INIT, before = BUF_INIT, after = BUF_INIT;
    struct config c;
    struct err e;

    (void)state;
    config_init(&c);
    config_show(&c, &before);
    config_sample(&sample);
    if (config_read(&c, "sample", sample.data, sample.len, NULL, &e) < 0)
        fail_msg("%s", e.text);
    config_show(&c, &after);
    assert_string_equal(after.data, before.data);
    config_free(&c);
}

static void
what_is_shown_reads_back(void **state)
{
    auto_buf struct buf before = BUF_INIT, after = BUF_INIT;
    struct config c, d;
    struct err e;

    (void)state;
    config_init(&c);
    assert_int_equal(
        read_text(&c,
                  "spike_buffer: 0.123456789\nplacement: spread\nlog_level: debug\n"
                  "oom_patterns: [\"a\\\"b\\\\c\", \"tab\\there\", '# x', '- y']\n"
                  "pending_max: 10\nmodels: /a b/\\\"c\nusers: {'x:y': {weight: 0.3}, z: "
                  "{max_gpus: 3}}\n",
                  &e),
        0);
    config_show(&c, &before);
    config_init(&d);
    if (config_read(&d, "shown", before.data, before.len, NULL, &e) < 0)
        fail_msg("%s in\n%s", e.text, before.data);
    config_show(&d, &after);
    assert_string_equal(after.data, before.data);
    assert_memory_equal(&c.spike_buffer, &d.spike_buffer, sizeof(double));
    assert_string_equal(d.oom_patterns[0], "a\"b\\c");
    assert_string_equal(d.oom_patterns[1], "tab\there");
    config_free(&c);
    config_free(&d);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_the_promised_defaults),
        cmocka_unit_test(reads_yaml_and_json),
        cmocka_unit_test(yes_and_no_have_many_words),
        cmocka_unit_test(empty_texts_change_nothing),
        cmocka_unit_test(refuses_with_place_and_range),
        cmocka_unit_test(reads_users_and_paths),
        cmocka_unit_test(finds_every_error),
        cmocka_unit_test(lists_have_a_bound),
        cmocka_unit_test(sets_single_values),
        cmocka_unit_test(the_sample_is_the_defaults),
        cmocka_unit_test(what_is_shown_reads_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
