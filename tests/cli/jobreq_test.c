/* Requests as JSON: the fields of docs/protocol.md, no defaults, the environment unchanged. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/request.h"
#include "cli/ask/request_write.h"
#include "cli/ask/submit_env.h"
#include "spec/jobsfile.h"

/* The lines of a jobs file as the text of their objects: sorted keys, one object per line. */
static char *
lines_of(const char *text)
{
    struct jobsfile f;
    auto_buf struct buf out = BUF_INIT;
    struct jsonw w;
    json_t *tree;
    char *sorted;

    assert_int_equal(jobsfile_parse("f", text, strlen(text), NULL, &f, NULL), 0);
    jsonw_init(&w, &out);
    jsonw_array(&w);
    for (size_t i = 0; i < f.n_lines; i++) {
        jsonw_object(&w);
        jobreq_add_line(&w, &f.lines[i]);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jobsfile_free(&f);
    tree = json_loadb(out.data, out.len, 0, NULL);
    assert_non_null(tree);
    sorted = json_dumps(tree, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(tree);
    return sorted;
}

static void
assert_lines(const char *text, const char *expect)
{
    char *got = lines_of(text);

    assert_string_equal(got, expect);
    free(got);
}

static void
test_defaults_are_not_sent(void **state)
{
    (void)state;
    assert_lines("echo \"hi\"\n", "[{\"command\":\"echo \\\"hi\\\"\","
                                  "\"key\":\"399c208bfbe6#0\",\"line\":1}]");
}

static void
test_every_attribute_is_sent(void **state)
{
    json_t *tree;
    json_t *job;
    char *text = lines_of("[vram=18G gpus=2 timeout=1.5h oom-retries=3 priority=-5 name=n "
                          "devices=0-1,5 exclusive cpus=4 mem=2G hold]  x\n"
                          "[cancel gpus=0] y\n");

    (void)state;
    tree = json_loads(text, 0, NULL);
    free(text);
    job = json_array_get(tree, 0);
    assert_int_equal(json_integer_value(json_object_get(job, "vram_mib")), 18432);
    assert_int_equal(json_integer_value(json_object_get(job, "gpus")), 2);
    assert_int_equal(json_integer_value(json_object_get(job, "limit_ms")), 5400000);
    assert_int_equal(json_integer_value(json_object_get(job, "oom_retries")), 3);
    assert_int_equal(json_integer_value(json_object_get(job, "priority")), -5);
    assert_string_equal(json_string_value(json_object_get(job, "name")), "n");
    assert_int_equal(json_array_size(json_object_get(job, "devices")), 3);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(job, "devices"), 2)), 5);
    assert_true(json_is_true(json_object_get(job, "exclusive")));
    assert_int_equal(json_integer_value(json_object_get(job, "cpus")), 4);
    assert_int_equal(json_integer_value(json_object_get(job, "mem_mib")), 2048);
    assert_true(json_is_true(json_object_get(job, "hold")));
    assert_null(json_object_get(job, "cancel"));
    job = json_array_get(tree, 1);
    assert_true(json_is_true(json_object_get(job, "cancel")));
    assert_int_equal(json_integer_value(json_object_get(job, "gpus")), 0);
    json_decref(tree);
}

static void
test_exact_gpus_keep_their_order(void **state)
{
    struct request r;
    auto_buf struct buf out = BUF_INIT;
    struct jsonw w;
    static char word[] = "a b";
    char *argv[] = {word, NULL};

    (void)state;
    request_init(&r);
    r.argv = argv;
    r.demand.gpus = 2;
    r.demand.n_ids = 2;
    r.demand.ids[0] = 3;
    r.demand.ids[1] = 1;
    jsonw_init(&w, &out);
    jsonw_object(&w);
    jobreq_add_fields(&w, &r);
    jsonw_end_object(&w);
    assert_string_equal(buf_str(&out), "{\"argv\":[\"a b\"],\"gpu_ids\":[3,1]}");
}

static bool
has_entry(const json_t *env, const char *entry)
{
    size_t i;
    json_t *v;

    json_array_foreach(env, i, v)
    {
        if (strcmp(json_string_value(v), entry) == 0)
            return true;
    }
    return false;
}

static void
test_context(void **state)
{
    struct env_choice choice = {0};
    auto_buf struct buf out = BUF_INIT;
    struct jsonw w;
    json_t *tree;
    json_t *env;

    (void)state;
    setenv("BERTH_TEST_A", "x=y z", 1);
    setenv("BERTH_TEST_B", "old", 1);
    umask(027);
    jsonw_init(&w, &out);
    jsonw_object(&w);
    assert_int_equal(env_set(&choice, "BERTH_TEST_B=once", NULL), 0);
    assert_int_equal(env_set(&choice, "BERTH_TEST_B=new", NULL), 0);
    jobreq_add_context(&w, "/some where", &choice);
    env_free(&choice);
    jsonw_end_object(&w);
    tree = json_loadb(out.data, out.len, 0, NULL);
    env = json_object_get(tree, "env");
    assert_string_equal(json_string_value(json_object_get(tree, "cwd")), "/some where");
    assert_int_equal(json_integer_value(json_object_get(tree, "umask")), 027);
    assert_int_equal(umask(022), 027);
    assert_true(has_entry(env, "BERTH_TEST_A=x=y z"));
    assert_true(has_entry(env, "BERTH_TEST_B=new"));
    assert_false(has_entry(env, "BERTH_TEST_B=old"));
    assert_false(has_entry(env, "BERTH_TEST_B=once"));
    json_decref(tree);
}

/* The effect of --export: of these variables in our environment, those in `passes` are
 * sent. */
static void
test_export(void **state)
{
    static const struct {
        const char *text, *passes, *kept;
    } cases[] = {
        {"ALL", "BERTH_TEST_A=a", "BERTH_TEST_B=b"},
        {"NONE", NULL, "BERTH_TEST_A=a"},
        {"BERTH_TEST_B", "BERTH_TEST_B=b", "BERTH_TEST_A=a"},
        {"BERTH_TEST_A,BERTH_TEST_B=c", "BERTH_TEST_A=a", "BERTH_TEST_B=b"},
        {"ALL,BERTH_TEST_A=c", "BERTH_TEST_A=c", "BERTH_TEST_A=a"},
        {"NIL,BERTH_TEST_A=c", "BERTH_TEST_A=c", "BERTH_TEST_B=b"},
        {"none", NULL, "BERTH_TEST_A=a"},
        {"BERTH_TEST_A='x,y\"',BERTH_TEST_B", "BERTH_TEST_A='x,y\"'", "BERTH_TEST_A=a"},
        {"BERTH_TEST_A=\"x,BERTH_TEST_B", "BERTH_TEST_A=\"x,BERTH_TEST_B", "BERTH_TEST_B=b"},
    };
    struct err e;

    (void)state;
    setenv("BERTH_TEST_A", "a", 1);
    setenv("BERTH_TEST_B", "b", 1);
    setenv("PATH", "/bin:/usr/bin", 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct env_choice choice = {0};
        auto_buf struct buf out = BUF_INIT;
        struct jsonw w;
        json_t *tree;
        json_t *env;

        assert_int_equal(env_export(&choice, cases[i].text, &e), 0);
        jsonw_init(&w, &out);
        jsonw_object(&w);
        env_add(&w, &choice);
        jsonw_end_object(&w);
        tree = json_loadb(out.data, out.len, 0, NULL);
        env = json_object_get(tree, "env");
        assert_true(has_entry(env, "PATH=/bin:/usr/bin"));
        assert_true(!cases[i].passes || has_entry(env, cases[i].passes));
        assert_int_equal(has_entry(env, cases[i].kept), i == 0);
        json_decref(tree);
        env_free(&choice);
    }
    struct env_choice choice = {0}, login = {0};
    auto_buf struct buf text = BUF_INIT;
    struct jsonw w;
    assert_int_equal(env_set(&login, "HOME=/said", &e), 0);
    env_for_login(&login);
    jsonw_init(&w, &text);
    jsonw_object(&w);
    env_add(&w, &login);
    jsonw_end_object(&w);
    json_t *tree = json_loadb(text.data, text.len, 0, NULL);
    const json_t *env = json_object_get(tree, "env");
    assert_false(has_entry(env, "PATH=/bin:/usr/bin"));
    assert_false(has_entry(env, "BERTH_TEST_A=a"));
    assert_true(has_entry(env, "HOME=/said"));
    json_decref(tree);
    env_free(&login);
    assert_int_equal(env_export(&choice, "A,,B", &e), -1);
    assert_int_equal(env_set(&choice, "=x", &e), -1);
    assert_int_equal(env_set(&choice, "x", &e), -1);
    env_free(&choice);
}

/* True if an entry of the environment is sent with --export=text, for sbatch or srun. */
static bool
goes_along(const char *text, bool is_srun, const char *entry)
{
    struct env_choice choice = {0};
    auto_buf struct buf out = BUF_INIT;
    struct jsonw w;
    struct err e;

    assert_int_equal(env_export(&choice, text, &e), 0);
    if (is_srun)
        env_prefer_own(&choice);
    env_for_slurm(&choice, "/tmp");
    jsonw_init(&w, &out);
    jsonw_object(&w);
    env_add(&w, &choice);
    jsonw_end_object(&w);
    json_t *tree = json_loadb(out.data, out.len, 0, NULL);
    bool found = has_entry(json_object_get(tree, "env"), entry);
    json_decref(tree);
    env_free(&choice);
    return found;
}

static void
test_export_of_slurm(void **state)
{
    (void)state;
    setenv("BERTH_TEST_A", "a", 1);
    unsetenv("BERTH_TEST_C");
    setenv("SLURM_EXPORT_ENV", "another job's", 1);
    assert_true(goes_along("ALL,BERTH_TEST_A=c", false, "BERTH_TEST_A=c"));
    assert_true(goes_along("ALL,BERTH_TEST_A=c", true, "BERTH_TEST_A=a"));
    assert_true(goes_along("ALL,BERTH_TEST_C=c", true, "BERTH_TEST_C=c"));
    assert_true(goes_along("BERTH_TEST_A=c", true, "BERTH_TEST_A=c"));
    assert_true(goes_along("BERTH_TEST_A=c,BERTH_TEST_A", true, "BERTH_TEST_A=a"));
    /* A batch job's steps inherit its setting. */
    assert_true(goes_along("NONE", false, "SLURM_EXPORT_ENV=NONE"));
    assert_false(goes_along("NONE", true, "SLURM_EXPORT_ENV=NONE"));
    assert_true(goes_along("A,C=3", false, "SLURM_EXPORT_ENV=A,C=3"));
    assert_false(goes_along("all", false, "SLURM_EXPORT_ENV=all"));
    assert_false(goes_along("ALL", false, "SLURM_EXPORT_ENV=another job's"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_are_not_sent),
        cmocka_unit_test(test_every_attribute_is_sent),
        cmocka_unit_test(test_exact_gpus_keep_their_order),
        cmocka_unit_test(test_context),
        cmocka_unit_test(test_export),
        cmocka_unit_test(test_export_of_slurm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
