/* The table of attributes: what each sets, what it refuses and in which words, at which
 * door it is open, and the checks between attributes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/request.h"
#include "spec/attr.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Sets attributes written as in a jobs file ("vram=8G gpus=2 hold"); then validates. */
static int
apply(struct request *r, const char *words, enum attr_door door, struct err *e)
{
    char copy[512];
    char *rest = copy, *word;
    int rc = 0;

    snprintf(copy, sizeof(copy), "%s", words);
    request_begin(r);
    r->command = xstrdup("true");
    while (rc == 0 && (word = strsep(&rest, " "))) {
        char *value = strchr(word, '=');
        if (value)
            *value++ = '\0';
        if (*word)
            rc = attr_set(r, word, value, door, e);
    }
    return rc == 0 ? request_validate(r, e) : rc;
}

static void
sets_each_field(void **state)
{
    struct request r;
    struct err e;

    (void)state;
    assert_int_equal(apply(&r,
                           "vram=18G gpus=2 devices=0-3,6 exclusive cpus=4 mem=32G time=2h "
                           "grace=30s priority=-5 retries=3 requeue hold cancel name=sweep-1 "
                           "log=out/%j.log",
                           ATTR_JOBS_FILE, &e),
                     0);
    assert_int_equal(r.demand.vram_mib, 18432);
    assert_int_equal(r.demand.gpus, 2);
    assert_int_equal(r.demand.devices, 0x4f);
    assert_int_equal(r.demand.exclusive, 1);
    assert_int_equal(r.demand.cpus, 4);
    assert_int_equal(r.demand.mem_mib, 32768);
    assert_int_equal(r.limit_ms, 7200000);
    assert_int_equal(r.grace_ms, 30000);
    assert_int_equal(r.priority, -5);
    assert_int_equal(r.oom_retries, 3);
    assert_int_equal(r.retries, 0);
    assert_true(r.requeue && r.hold && r.cancel);
    assert_string_equal(r.name, "sweep-1");
    assert_string_equal(r.log, "out/%j.log");
    request_free(&r);
}

static void
nothing_said_is_one_whole_gpu(void **state)
{
    struct request r;
    struct demand standard;
    struct err e;

    (void)state;
    demand_init(&standard);
    assert_int_equal(apply(&r, "", ATTR_JOBS_FILE, &e), 0);
    assert_memory_equal(&r.demand, &standard, sizeof(standard));
    assert_int_equal(r.oom_retries, -1);
    request_free(&r);
}

static void
names_are_forgiving(void **state)
{
    static const char *const same[] = {"time=60", "timeout=1m", "LIMIT=60s", "Time=00:01:00"};
    struct request r;
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(same); i++) {
        assert_int_equal(apply(&r, same[i], ATTR_JOBS_FILE, &e), 0);
        assert_int_equal(r.limit_ms, 60000);
        request_free(&r);
    }
    assert_int_equal(apply(&r, "GPU_ids=3,1 OOM_Retries=2", ATTR_JOBS_FILE, &e), 0);
    assert_int_equal(r.demand.n_ids, 2);
    assert_int_equal(r.oom_retries, 2);
    request_free(&r);
}

static void
the_last_of_several_wins(void **state)
{
    struct request r;
    struct err e;

    (void)state;
    assert_int_equal(apply(&r,
                           "vram=8G vram=2G name=a name=b hold hold=no gpu-ids=5 gpus=4 gpus=2 "
                           "gpu-ids=3,1",
                           ATTR_JOBS_FILE, &e),
                     0);
    assert_int_equal(r.demand.vram_mib, 2048);
    assert_string_equal(r.name, "b");
    assert_false(r.hold);
    assert_int_equal(r.demand.gpus, 2);
    assert_int_equal(r.demand.ids[0], 3);
    assert_int_equal(r.demand.ids[1], 1);
    request_free(&r);
    /* What an earlier, longer list held does not stay behind: equal demands, equal bytes. */
    struct request other;
    assert_int_equal(apply(&r, "gpu-ids=5,6,7 gpu-ids=1", ATTR_JOBS_FILE, &e), 0);
    assert_int_equal(apply(&other, "gpu-ids=1", ATTR_JOBS_FILE, &e), 0);
    assert_memory_equal(&r.demand, &other.demand, sizeof(r.demand));
    request_free(&r);
    request_free(&other);
}

static void
retries_mean_what_the_door_says(void **state)
{
    struct request r;
    struct err e;

    (void)state;
    assert_int_equal(apply(&r, "retries=3", ATTR_JOBS_FILE, &e), 0);
    assert_true(r.oom_retries == 3 && r.retries == 0);
    request_free(&r);
    assert_int_equal(apply(&r, "retries=3 oom-retries=2", ATTR_COMMAND_LINE, &e), 0);
    assert_true(r.oom_retries == 2 && r.retries == 3);
    request_free(&r);
    assert_int_equal(apply(&r, "cancel", ATTR_COMMAND_LINE, &e), -1);
    request_free(&r);
}

static void
refuses_with_words(void **state)
{
    static const struct {
        const char *words, *error; /* a part of it */
    } cases[] = {
        {"vram=8X", "vram: '8X' is not a size; write 8G"},
        {"vram=0", "vram: '0' is less than 1 MiB"},
        {"vram=nan", "vram: 'nan' is not a size"},
        {"vram=17T", "more than 16T"},
        {"vram=", "vram: an empty value is not a size"},
        {"vram", "vram needs a value: vram=SIZE"},
        {"gpus=0.5", "gpus: '0.5' will not do; gpus takes a whole number from 0 to 64"},
        {"gpus=65", "gpus takes a whole number from 0 to 64"},
        {"gpus=-1", "gpus takes a whole number from 0 to 64"},
        {"gpus=two", "gpus takes a whole number from 0 to 64"},
        {"gpu-ids=1,1", "gpu-ids: '1,1' names a GPU twice"},
        {"gpu-ids=0-16", "more than 16 GPUs"},
        {"devices=3-1", "runs backwards"},
        {"exclusive=maybe", "exclusive: 'maybe' is neither true nor false"},
        {"cpus=0", "cpus: '0' is not a whole number from 1"},
        {"time=0", "time: '0' is no time at all"},
        {"timeout=5x", "time: '5x' is not a duration"},
        {"grace=25h", "longer than 24h"},
        {"priority=1001", "from -1000 to 1000"},
        {"retries=101", "from 0 to 100"},
        {"name=", "name: must not be empty"},
        {"name=a\x1b[m", "name: holds a control character"},
        {"name=\xff", "name: is not UTF-8"},
        {"vrma=8G", "'vrma' is not an attribute; did you mean 'vram'?"},
        {"xyzzy", "'xyzzy' is not an attribute; there are vram, gpus, "},
        {"share=0.5", "'share' is not an attribute"},
        {"after=12", "'after' is not an attribute"},
        {"tag=x", "'tag' is not an attribute"},
        {"unique", "'unique' is not an attribute"},
        {"array=0-9", "'array' is not an attribute"},
        {"gpus=0 vram=8G", "gpus=0 asks for no GPU, so vram means nothing"},
        {"gpus=0 devices=1", "so devices means nothing"},
        {"gpus=0 exclusive", "so exclusive means nothing"},
        {"gpus=0 gpu-ids=1", "gpus=0, but gpu-ids names 1; leave gpus out"},
        {"gpus=1 gpu-ids=0,1", "gpus=1, but gpu-ids names 2; leave gpus out"},
        {"gpus=3 gpu-ids=0,1", "gpus=3, but gpu-ids names 2"},
        {"gpu-ids=0 devices=0-3", "leave one of them out"},
        {"gpus=3 devices=0,1", "gpus=3, but devices names only 2"},
    };
    struct request r;
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int rc = apply(&r, cases[i].words, ATTR_JOBS_FILE, &e);
        request_free(&r);
        if (rc == 0)
            fail_msg("'%s' is accepted", cases[i].words);
        assert_int_equal(e.code, ERR_USAGE);
        if (!strstr(e.text, cases[i].error))
            fail_msg("'%s': %s", cases[i].words, e.text);
    }
}

static void
accepts_cpu_only(void **state)
{
    struct request r;
    struct err e;

    (void)state;
    assert_int_equal(apply(&r, "gpus=0 cpus=8 mem=64G grace=0", ATTR_JOBS_FILE, &e), 0);
    assert_int_equal(r.demand.gpus, 0);
    assert_int_equal(r.grace_ms, 0);
    request_free(&r);
}

/* Requests that came over the wire have not passed the setters. */
static void
validates_what_setters_never_saw(void **state)
{
    struct request good, r;
    struct err e;

    (void)state;
    request_init(&good);
    good.command = (char *)"true";
    r = good;
    assert_int_equal(request_validate(&r, &e), 0);
#define REFUSED(field, value)                                                                  \
    do {                                                                                       \
        r = good;                                                                              \
        r.field = (value);                                                                     \
        assert_int_equal(request_validate(&r, &e), -1);                                        \
    } while (0)
    REFUSED(demand.gpus, 65);
    REFUSED(demand.gpus, -2);
    REFUSED(demand.vram_mib, -1);
    REFUSED(demand.vram_mib, VRAM_MAX_MIB + 1);
    REFUSED(demand.cpus, -1);
    REFUSED(demand.mem_mib, INT32_MAX);
    REFUSED(demand.n_ids, REQUEST_IDS_MAX + 1);
    REFUSED(demand.n_ids, 2); /* both are 0 */
    REFUSED(priority, 1001);
    REFUSED(retries, -1);
    REFUSED(oom_retries, -2);
    REFUSED(limit_ms, -1);
    REFUSED(limit_ms, INT64_MAX);
    REFUSED(grace_ms, INT64_MAX);
    REFUSED(command, NULL);
    REFUSED(command, (char *)" \t\n");
    REFUSED(name, (char *)"");
    REFUSED(name, (char *)"a\nb");
    REFUSED(argv, ((char *[]){(char *)"x", NULL})); /* beside a command */
    r = good;
    r.command = NULL;
    r.argv = (char *[]){NULL};
    assert_int_equal(request_validate(&r, &e), -1);
    r = good;
    r.demand.n_ids = 1;
    r.demand.ids[0] = GPU_MAX;
    assert_int_equal(request_validate(&r, &e), -1);
}

static void
the_table_is_sound(void **state)
{
    static const enum attr_door doors[] = {ATTR_JOBS_FILE, ATTR_COMMAND_LINE};
    char letters[64] = "";

    (void)state;
    for (size_t i = 0; attr_at(i); i++) {
        const struct attr *a = attr_at(i);
        assert_true(a->doors && a->help && a->set);
        assert_null(strchr(a->help, '\n'));
        assert_null(strchr(a->name, '_'));
        for (size_t d = 0; d < COUNT(doors); d++) {
            if (!(a->doors & doors[d]))
                continue;
            assert_ptr_equal(attr_find(a->name, doors[d]), a);
            for (size_t j = 0; j < ATTR_ALIASES_MAX && a->aliases[j]; j++)
                assert_ptr_equal(attr_find(a->aliases[j], doors[d]), a);
        }
        if (a->letter && a->doors & ATTR_COMMAND_LINE) {
            assert_null(strchr(letters, a->letter));
            letters[strlen(letters)] = a->letter;
        }
    }
    assert_null(attr_at(1000));
    assert_null(attr_find("", ATTR_JOBS_FILE));
    assert_null(attr_find("vra", ATTR_JOBS_FILE));
    assert_null(attr_find("vrams", ATTR_JOBS_FILE));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_each_field),
        cmocka_unit_test(nothing_said_is_one_whole_gpu),
        cmocka_unit_test(names_are_forgiving),
        cmocka_unit_test(the_last_of_several_wins),
        cmocka_unit_test(retries_mean_what_the_door_says),
        cmocka_unit_test(refuses_with_words),
        cmocka_unit_test(accepts_cpu_only),
        cmocka_unit_test(validates_what_setters_never_saw),
        cmocka_unit_test(the_table_is_sound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
