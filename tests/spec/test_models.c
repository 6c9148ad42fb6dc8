/* The table of models: its two forms, error positions, the commands it applies to and the
 * demands they get. */
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
#include "base/request.h"
#include "spec/attr.h"
#include "spec/models.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char json[] = "{\n  \"default_requirement\": 1.0,\n"
                           "  \"models\": {\"half\": 0.5, \"one\": 1, \"onehalf\": 1.5, "
                           "\"two\": 2,\n    \"big\": \"18G\", \"a/b-7b\": \"9000M\"}\n}\n";
static const char yaml[] = "models:\n  half: 0.5\n  one: 1.0\n  onehalf: 1.5\n  two: 2\n"
                           "  big: 18G\n  a/b-7b: 9000M\ndefault_requirement: 1\n";

static struct models *
read_table(const char *text)
{
    struct err e;
    struct models *m = models_read("m.json", text, strlen(text), &e);

    if (!m)
        fail_msg("%s", e.text);
    return m;
}

/* "MODEL GPUS VRAM SHARE" of a shell command with these attributes. */
static void
ask(const struct models *m, const char *command, const char *attribute, char *out)
{
    struct request r;
    struct err e;
    char name[32];

    request_begin(&r);
    r.command = xstrdup(command);
    if (*attribute) {
        const char *eq = strchr(attribute, '=');
        snprintf(name, sizeof name, "%.*s", (int)(eq - attribute), attribute);
        assert_int_equal(attr_assign(&r, name, eq + 1, ATTR_COMMAND_LINE, &e), 0);
    }
    models_apply(m, &r);
    if (request_validate(&r, &e) < 0)
        fail_msg("'%s': %s", command, e.text);
    snprintf(out, 256, "%s %d %d %d", r.llm ? r.llm : "-", r.demand.gpus, r.demand.vram_mib,
             r.demand.share_permille);
    request_free(&r);
}

static void
gives_what_the_table_says(void **state)
{
    static const struct {
        const char *command, *attribute, *gets;
    } cases[] = {
        {"x --llm half", "", "half 1 0 500"},
        {"x --llm=half --y", "", "half 1 0 500"},
        {"x --llm one", "", "one 1 0 0"},
        {"x --llm onehalf", "", "onehalf 2 0 0"},
        {"x --llm two", "", "two 2 0 0"},
        {"x --llm big", "", "big 1 18432 0"},
        {"x --llm a/b-7b;y", "", "a/b-7b 1 9000 0"},
        {"x --llm unknown", "", "unknown 1 0 0"},
        {"x --llm  'half' z", "", "half 1 0 500"},
        {"x --llm=\"ha\"lf", "", "half 1 0 500"},
        {"x --llm ha\\lf", "", "half 1 0 500"},
        {"cd y && (x --llm half)", "", "half 1 0 500"},
        {"--llm two --llm half", "", "two 2 0 0"},
        {"x --llmx half", "", "- 1 0 0"},
        {"x --llm", "", "- 1 0 0"},
        {"x --llm=", "", "- 1 0 0"},
        {"x -–llm half", "", "- 1 0 0"},
        {"x my--llm half --llm two", "", "two 2 0 0"},
        {"x y", "", "- 1 0 0"},
        {"x --llm half", "gpus=1", "- 1 0 0"},
        {"x --llm half", "gpus=0", "- 0 0 0"},
        {"x --llm half", "vram=2G", "- 1 2048 0"},
        {"x --llm half", "share=0.25", "- 1 0 250"},
        {"x --llm half", "gpu-ids=0,1", "- 2 0 0"},
        {"x --llm half", "devices=0-3", "half 1 0 500"},
    };
    struct models *tables[] = {read_table(json), read_table(yaml)};

    (void)state;
    for (size_t t = 0; t < COUNT(tables); t++) {
        assert_int_equal(models_count(tables[t]), 6);
        for (size_t i = 0; i < COUNT(cases); i++) {
            char got[256];
            ask(tables[t], cases[i].command, cases[i].attribute, got);
            if (strcmp(got, cases[i].gets) != 0)
                fail_msg("'%s' with '%s' gets %s", cases[i].command, cases[i].attribute, got);
        }
        models_free(tables[t]);
    }
}

static void
finds_the_model_in_an_argv(void **state)
{
    static const struct {
        const char *words[5];
        const char *llm;
    } cases[] = {
        {{"x", "--llm", "two"}, "two"}, {{"x", "--llm=two", "y"}, "two"},
        {{"x", "--llm"}, NULL},         {{"x", "--llm", ""}, NULL},
        {{"x", "--llm="}, NULL},        {{"sh", "-c", "x --llm two"}, NULL},
        {{"x", "--llm", "a b"}, "a b"},
    };
    struct models *m = read_table(json);

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct request r;
        request_begin(&r);
        r.argv = xcalloc(6, sizeof *r.argv);
        for (int w = 0; cases[i].words[w]; w++)
            r.argv[w] = xstrdup(cases[i].words[w]);
        models_apply(m, &r);
        assert_int_equal(r.llm != NULL, cases[i].llm != NULL);
        if (r.llm)
            assert_string_equal(r.llm, cases[i].llm);
        request_free(&r);
    }
    models_free(m);
}

static void
the_default_is_for_unknown_models(void **state)
{
    static const struct {
        const char *table, *gets;
    } cases[] = {
        {"{}", "u 1 0 0"},
        {"", "u 1 0 0"},
        {"default_requirement: 0.25\n", "u 1 0 250"},
        {"default_requirement: 12G\nmodels: {}\n", "u 1 12288 0"},
        {"models: {v: 2}\n", "u 1 0 0"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct models *m = read_table(cases[i].table);
        char got[256];
        ask(m, "x --llm u", "", got);
        assert_string_equal(got, cases[i].gets);
        models_free(m);
    }
}

static void
says_where_it_is_wrong(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"models:\n  a: 0\n", "m.json:2: a: '0' is not a requirement; write a share (0.5)"},
        {"models:\n  a: -1\n", "m.json:2: a: '-1' is not a requirement"},
        {"models:\n  a: 65\n", "m.json:2: a: '65' is not a requirement"},
        {"models:\n  a: 8X\n", "m.json:2: a: '8X' is not a requirement"},
        {"models:\n  a: 99T\n", "m.json:2: a: '99T' is not a requirement"},
        {"models:\n  a:\n", "m.json:2: a: an empty value is not a requirement"},
        {"models:\n  a: true\n", "a: 'true' is not a requirement"},
        {"models:\n\n  a: [1]\n", "m.json:3: a: expected a number or a size"},
        {"models:\n  [a]: 1\n", "m.json:2: expected the name of a model"},
        {"models: 3\n", "m.json:1: models: expected `name: requirement` lines"},
        {"models:\n  a: 1\n  b: 1\n  a: 2\n",
         "m.json:4: a is given twice; the other is in line 2"},
        {"model: {}\n", "m.json:1: unknown key 'model'; did you mean models"},
        {"xyzzy: {}\n", "unknown key 'xyzzy'; use default_requirement and models"},
        {"models: {}\nmodels: {}\n", "m.json:2: models is given twice"},
        {"default_requirement: x\n", "m.json:1: default_requirement: 'x' is not a requirement"},
        {"[]\n", "m.json:1: a table needs default_requirement and models"},
        {"{\"models\": {\"a\": 1}\n", "m.json:2: neither JSON nor YAML"},
        {"\xff", "neither JSON nor YAML"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct err e = {0};
        struct models *m = models_read("m.json", cases[i].text, strlen(cases[i].text), &e);
        if (m)
            fail_msg("'%s' is accepted", cases[i].text);
        assert_int_equal(e.code, ERR_USAGE);
        if (!strstr(e.text, cases[i].error))
            fail_msg("'%s': %s", cases[i].text, e.text);
    }
}

static void
many_models_are_found(void **state)
{
    auto_buf struct buf text = BUF_INIT;
    struct models *m;
    char command[64], got[256], want[256];

    (void)state;
    buf_adds(&text, "models:\n");
    for (int i = 0; i < 5000; i++)
        buf_addf(&text, "  m%d: %dM\n", i * 7919 % 5000, i * 7919 % 5000 + 1);
    m = read_table(text.data);
    for (int i = 0; i < 5000; i++) {
        snprintf(command, sizeof command, "x --llm m%d", i);
        snprintf(want, sizeof want, "m%d 1 %d 0", i, i + 1);
        ask(m, command, "", got);
        assert_string_equal(got, want);
    }
    models_free(m);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_what_the_table_says),
        cmocka_unit_test(finds_the_model_in_an_argv),
        cmocka_unit_test(the_default_is_for_unknown_models),
        cmocka_unit_test(says_where_it_is_wrong),
        cmocka_unit_test(many_models_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
