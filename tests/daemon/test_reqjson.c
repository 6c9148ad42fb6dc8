/* A job as sent over the socket: the daemon reads the request that the client wrote, and
 * refuses malformed ones from scripts with a clear error. */
#include <jansson.h>
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
#include "base/jsonw.h"
#include "base/request.h"
#include "cli/ask/request_write.h"
#include "spec/attr.h"
#include "spec/models.h"
#include "wire/request_read.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void
make(const char *words, struct request *r)
{
    char copy[512];
    char *rest = copy, *word;
    struct err e;

    snprintf(copy, sizeof copy, "%s", words);
    request_begin(r);
    r->command = xstrdup("true");
    while ((word = strsep(&rest, " "))) {
        char *value = strchr(word, '=');
        if (value)
            *value++ = '\0';
        if (*word && attr_assign(r, word, value, ATTR_COMMAND_LINE, &e) < 0)
            fail_msg("%s", e.text);
    }
    if (request_validate(r, &e) < 0)
        fail_msg("'%s': %s", words, e.text);
}

static json_t *
send(const struct request *r)
{
    auto_buf struct buf out = BUF_INIT;
    struct jsonw w;

    jsonw_init(&w, &out);
    jsonw_object(&w);
    jobreq_add_fields(&w, r);
    jsonw_end_object(&w);
    json_t *j = json_loadb(out.data, out.len, 0, NULL);
    assert_non_null(j);
    return j;
}

static void
what_is_sent_is_read_as_the_same(void **state)
{
    static const char *const cases[] = {
        "",
        "gpus=0",
        "gpus=1",
        "gpus=4 vram=18G",
        "gpus=0.5",
        "share=1",
        "gpu-ids=3,1",
        "gpu-ids=MIG-5f6a,3,GPU-1b",
        "devices=0-3,63 exclusive",
        "gpu-type=A100 min-vram=40G gpu-cc=8.9 cpu-bind=off max-used=0.8 max-load=75% margin=0",
        "margin=2G cpus=8 mem=64G",
        "time=2h grace=0 on-timeout=requeue max-requeues=0 signal=USR2@90",
        "priority=-1000 retries=3 oom-retries=0 requeue",
        "after=12,prep after-any=13_0 after-failed=14 begin=@1766600000",
        "array=0-9,20,30-40%3 name=n tag=a,b log=x-%j",
        "hold unique preemptible",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf before = BUF_INIT, after = BUF_INIT;
        struct request r, back;
        struct err e;
        make(cases[i], &r);
        json_t *j = send(&r);
        if (reqjson_read(j, NULL, NULL, &back, &e) < 0)
            fail_msg("'%s': %s", cases[i], e.text);
        request_describe(&r, &before);
        request_describe(&back, &after);
        assert_string_equal(buf_str(&after), buf_str(&before));
        assert_memory_equal(&r.demand, &back.demand, sizeof r.demand);
        assert_int_equal(r.grace_ms, back.grace_ms);
        assert_int_equal(r.oom_retries, back.oom_retries);
        assert_int_equal(r.max_requeues, back.max_requeues);
        assert_int_equal(r.begin_us, back.begin_us);
        assert_int_equal(r.gpus_said, back.gpus_said);
        json_decref(j);
        request_free(&r);
        request_free(&back);
    }
}

static void
refuses_in_words(void **state)
{
    static const struct {
        const char *job, *error;
    } cases[] = {
        {"[]", "a job must be an object"},
        {"{}", "a job needs either \"command\" or \"argv\""},
        {"{\"command\":\"x\",\"argv\":[\"x\"]}", "a job needs either"},
        {"{\"command\":\" \"}", "the command is empty"},
        {"{\"command\":3}", "\"command\" must be a string"},
        {"{\"argv\":[]}", "\"argv\" must be a list of at least one string"},
        {"{\"argv\":[1]}", "\"argv\" must be a string"},
        {"{\"command\":\"x\",\"gpsu\":1}", "a job has no \"gpsu\""},
        {"{\"command\":\"x\",\"gpu_ids\":[1,\"a,b\"]}",
         "\"gpu_ids\" has something that is no GPU"},
        {"{\"command\":\"x\",\"gpu_ids\":[\"\"]}", "has something that is no GPU"},
        {"{\"command\":\"x\",\"gpu_ids\":[\"MIG-1\",1.5]}", "has something that is no GPU"},
        {"{\"command\":\"x\",\"gpus\":65}", "\"gpus\" must be a whole number from 0 to 64"},
        {"{\"command\":\"x\",\"gpus\":0.5}", "\"gpus\" must be a whole number"},
        {"{\"command\":\"x\",\"share_permille\":0}", "from 1 to 1000"},
        {"{\"command\":\"x\",\"share_permille\":500,\"gpus\":2}", "a share is of one GPU"},
        {"{\"command\":\"x\",\"gpu_type\":\"\"}", "\"gpu_type\" must be a string of 1 to 23"},
        {"{\"command\":\"x\",\"gpu_type\":\"a\\u0007\"}", "\"gpu_type\": holds a control"},
        {"{\"command\":\"x\",\"max_load_permille\":1001}", "from 1 to 1000"},
        {"{\"command\":\"x\",\"margin_mib\":-1}",
         "\"margin_mib\" must be a whole number from 0"},
        {"{\"command\":\"x\",\"on_timeout\":\"stop\"}", "\"kill\", \"requeue\""},
        {"{\"command\":\"x\",\"warn_signal\":10,\"warn_ms\":1}", "USR1 is NCCL's own"},
        {"{\"command\":\"x\",\"warn_signal\":9,\"warn_ms\":1}", "KILL cannot be caught"},
        {"{\"command\":\"x\",\"begin_us\":-1}", "\"begin_us\" must be a whole number from 0"},
        {"{\"command\":\"x\",\"array\":\"5-1\"}", "\"array\": '5-1' has a range"},
        {"{\"command\":\"x\",\"array\":7}", "\"array\" must be a string"},
        {"{\"command\":\"x\",\"after\":7}", "\"after\" must be a list"},
        {"{\"command\":\"x\",\"after\":[7]}", "\"after\" must be a list of objects"},
        {"{\"command\":\"x\",\"after\":[{}]}", "each is a job's number"},
        {"{\"command\":\"x\",\"after\":[{\"job\":0}]}",
         "\"job\" must be a whole number from 1"},
        {"{\"command\":\"x\",\"after\":[{\"job\":1,\"name\":\"a\"}]}",
         "each is a job's number"},
        {"{\"command\":\"x\",\"after\":[{\"type\":\"ok\",\"job\":1}]}",
         "\"type\" must be \"success\", \"any\" or \"failed\""},
        {"{\"command\":\"x\",\"after\":[{\"job\":1,\"x\":1}]}", "it has no \"x\""},
        {"{\"command\":\"x\",\"tags\":[\"\"]}", "\"tags\": must not be empty"},
        {"{\"command\":\"x\",\"tags\":\"a\"}", "\"tags\" must be a list"},
        {"{\"command\":\"x\",\"unique\":1}", "\"unique\" must be true or false"},
        {"{\"command\":\"x\",\"name\":\"a\\nb\"}", "name: holds a control character"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_t *j = json_loads(cases[i].job, 0, NULL);
        struct request r;
        struct err e = {0};
        assert_non_null(j);
        if (reqjson_read(j, NULL, NULL, &r, &e) == 0)
            fail_msg("%s is accepted", cases[i].job);
        assert_int_equal(e.code, ERR_USAGE);
        if (!strstr(e.text, cases[i].error))
            fail_msg("%s: %s", cases[i].job, e.text);
        request_free(&r);
        json_decref(j);
    }
}

static void
a_table_is_asked_where_nobody_said(void **state)
{
    static const struct {
        const char *words;
        int gpus;
    } cases[] = {{"", 2}, {"gpus=1", 1}, {"vram=1G", 1}};
    static const char table[] = "models: {m: 2}";
    struct err e;
    struct models *m = models_read("t", table, strlen(table), &e);

    (void)state;
    assert_non_null(m);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct request r, back;
        make(cases[i].words, &r);
        free(r.command);
        r.command = xstrdup("x --llm m");
        json_t *j = send(&r);
        assert_int_equal(reqjson_read(j, NULL, m, &back, &e), 0);
        assert_int_equal(back.demand.gpus, cases[i].gpus);
        json_decref(j);
        request_free(&r);
        request_free(&back);
    }
    models_free(m);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_is_read_as_the_same),
        cmocka_unit_test(refuses_in_words),
        cmocka_unit_test(a_table_is_asked_where_nobody_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
