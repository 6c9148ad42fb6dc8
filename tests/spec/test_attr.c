/* The table of attributes: what each sets, what it refuses and with which error, where it is
 * accepted, and the checks between attributes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/request.h"
#include "spec/attr.h"
#include "spec/value.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Sets attributes written as in a jobs file ("vram=8G gpus=2 hold"); then validates. */
static int
apply(struct request *r, const char *words, enum attr_door door, struct err *e)
{
    char copy[512];
    char *rest = copy, *word;
    int rc = 0;

    snprintf(copy, sizeof copy, "%s", words);
    request_begin(r);
    r->command = xstrdup("true");
    while (rc == 0 && (word = strsep(&rest, " "))) {
        char *value = strchr(word, '=');
        if (value)
            *value++ = '\0';
        if (*word)
            rc = attr_assign(r, word, value, door, e);
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
    assert_int_equal(r.oom_retries, -1);
    assert_int_equal(r.retries, 3);
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
    assert_memory_equal(&r.demand, &standard, sizeof standard);
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
    assert_int_equal(apply(&r, "vram=8G vram=Auto", ATTR_JOBS_FILE, &e), 0);
    assert_true(r.vram_auto && r.demand.vram_mib == 0);
    request_free(&r);
    assert_int_equal(apply(&r, "vram=auto vram=8G", ATTR_COMMAND_LINE, &e), 0);
    assert_true(!r.vram_auto && r.demand.vram_mib == 8192);
    request_free(&r);
    /* Nothing of an earlier, longer list remains: equal demands, equal bytes. */
    struct request other;
    assert_int_equal(apply(&r, "gpu-ids=5,6,7 gpu-ids=1", ATTR_JOBS_FILE, &e), 0);
    assert_int_equal(apply(&other, "gpu-ids=1", ATTR_JOBS_FILE, &e), 0);
    assert_memory_equal(&r.demand, &other.demand, sizeof r.demand);
    request_free(&r);
    request_free(&other);
}

static void
retries_mean_the_same_at_every_door(void **state)
{
    static const enum attr_door doors[] = {ATTR_JOBS_FILE, ATTR_COMMAND_LINE};
    struct request r;
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(doors); i++) {
        assert_int_equal(apply(&r, "retries=3", doors[i], &e), 0);
        assert_true(r.oom_retries == -1 && r.retries == 3);
        request_free(&r);
        assert_int_equal(apply(&r, "retries=3 oom-retries=2", doors[i], &e), 0);
        assert_true(r.oom_retries == 2 && r.retries == 3);
        request_free(&r);
    }
}

static void
refuses_with_words(void **state)
{
    static const struct {
        const char *words, *error; /* a part of the error */
    } cases[] = {
        {"vram=8X", "vram: '8X' is not a size; write 8G"},
        {"vram=0", "vram: '0' is less than 1 MiB"},
        {"vram=nan", "vram: 'nan' is not a size"},
        {"vram=17T", "more than the maximum of 16T"},
        {"vram=", "vram: an empty value is not a size"},
        {"vram", "vram needs a value: vram=SIZE"},
        {"gpus=65", "is not a number of GPUs; write a whole number from 0 to 64"},
        {"gpus=-1", "is not a number of GPUs; write a whole number from 0 to 64"},
        {"gpus=two", "is not a number of GPUs; write a whole number from 0 to 64"},
        {"gpu-ids=1,1", "gpu-ids: '1,1' names a GPU twice"},
        {"gpu-ids=MIG-1,,2", "gpu-ids: 'MIG-1,,2' is no list of GPUs: 3,1 or UUIDs"},
        {"gpu-ids=MIG-1,", "is no list of GPUs"},
        {"gpu-ids=MIG_1", "is no list of GPUs"},
        {"gpu-ids=a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "more than the maximum of 16 GPUs"},
        {"gpu-ids=0-16", "more than the maximum of 16 GPUs"},
        {"devices=3-1", "runs backwards"},
        {"exclusive=maybe", "exclusive: 'maybe' is not true or false"},
        {"cpus=0", "cpus: '0' is not a whole number from 1"},
        {"time=0", "time: '0' is not a duration"},
        {"timeout=5x", "time: '5x' is not a duration"},
        {"grace=25h", "longer than the maximum of 24h"},
        {"priority=1001", "from -1000 to 1000"},
        {"retries=101", "from 0 to 100"},
        {"name=", "name: must not be empty"},
        {"name=a\x1b[m", "name: holds a control character"},
        {"name=\xff", "name: is not UTF-8"},
        {"vrma=8G", "unknown attribute 'vrma'; did you mean 'vram'?"},
        {"xyzzy", "unknown attribute 'xyzzy'; the attributes are gpus, vram, "},
        {"array=0-9", "array: a line is one job; write a line for each task, or use"},
        {"pty", "pty: a line of a file has no terminal"},
        {"begin=16:00", "begin: '16:00' needs the local clock"},
        {"vram=8", "vram: 8 MiB? write 8G; the minimum is 64 MiB"},
        {"vram=63M", "vram: 63 MiB? write 63G"},
        {"vram=0.05G", "vram: 51 MiB is less than the minimum of 64 MiB"},
        {"min-vram=40", "min-vram: 40 MiB? write 40G"},
        {"mem=16", "mem: 16 MiB? write 16G"},
        {"gpus=0.0001", "gpus: '0.0001' is not a number of GPUs"},
        {"gpus=1e1", "gpus: '1e1' is not a number of GPUs"},
        {"share=2", "share: '2' is not a fraction; write 0.8 or 80%"},
        {"share=0", "share: '0' is too small"},
        {"share=101%", "share: '101%' is not a fraction"},
        {"share=0.5 gpus=2", "a share is of one GPU, but gpus=2"},
        {"share=0.5 gpu-ids=0,1", "a share is of one GPU, but gpus=2"},
        {"share=0.5 exclusive", "omit one of them"},
        {"gpus=0 share=0.5", "so share has no effect"},
        {"after=0", "after: '0' is not a job; write ids (12,13)"},
        {"after=12_", "after: '12_' is not a job"},
        {"after=12,", "after: an empty value is not a job"},
        {"after=5000000000", "after: '5000000000' is not a job"},
        {"tag=", "tag: must not be empty"},
        {"tag=a,,b", "tag: must not be empty"},
        {"tag=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "more than the maximum of 16 tags"},
        {"gpus=0 vram=8G", "gpus=0 requests no GPU, so vram has no effect"},
        {"gpus=0 devices=1", "so devices has no effect"},
        {"gpus=0 exclusive", "so exclusive has no effect"},
        {"gpus=0 gpu-ids=1", "gpus=0, but gpu-ids names 1; omit gpus"},
        {"gpus=1 gpu-ids=0,1", "gpus=1, but gpu-ids names 2; omit gpus"},
        {"gpus=3 gpu-ids=0,1", "gpus=3, but gpu-ids names 2"},
        {"gpu-ids=0 devices=0-3", "omit one of them"},
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
refuses_on_the_command_line(void **state)
{
    static const struct {
        const char *words, *error;
    } cases[] = {
        {"max-used=80", "max-used: '80' is not a fraction; write 0.8 or 80%"},
        {"max-load=", "max-load: an empty value is not a fraction"},
        {"gpu-type=abcdefghijklmnopqrstuvwxyz",
         "gpu-type: is 26 bytes long; the maximum is 23"},
        {"margin=-1", "margin: '-1' is not a size"},
        {"gpus=0 margin=0", "so margin has no effect"},
        {"idle=x", "idle: 'x' is not a size"},
        {"gpus=0 idle=1G", "so idle has no effect"},
        {"placement=best",
         "placement: 'best' is not a placement rule; write pack, spread or first"},
        {"gpus=0 placement=pack", "so placement has no effect"},
        {"gpus=0 gpu-type=x", "so gpu-type has no effect"},
        {"gpu-cc=sm_80", "gpu-cc: 'sm_80' is not a version; write 8.0"},
        {"gpu-cc=8.", "is not a version"},
        {"gpu-cc=8.61", "is not a version"},
        {"gpu-cc=0", "gpu-cc: '0' is out of range; versions go from 0.1 to 25.5"},
        {"gpu-cc=26", "is out of range"},
        {"cpu-bind=core", "cpu-bind: 'core' is not valid; use auto, node or off"},
        {"gpus=0 cpu-bind=node", "so cpu-bind has no effect"},
        {"gpus=0 gpu-cc=8", "so gpu-cc has no effect"},
        {"gpus=0 min-vram=1G", "so min-vram has no effect"},
        {"gpus=0 max-used=0.5", "so max-used has no effect"},
        {"gpus=0 max-load=0.5", "so max-load has no effect"},
        {"on-timeout=stop", "on-timeout: 'stop' is not valid; use kill or requeue"},
        {"max-requeues=101", "max-requeues: '101' is not a whole number from 0 to 100"},
        {"signal=USR1@60", "signal: USR1 is NCCL's own; write USR2@60"},
        {"signal=10", "signal: USR1 is NCCL's own"},
        {"signal=KILL@60", "signal: KILL cannot be caught"},
        {"signal=SIGSTOP", "signal: STOP cannot be caught"},
        {"signal=FOO@60", "signal: 'FOO@60' names no signal"},
        {"signal=USR2@", "signal: an empty value is not a duration"},
        {"signal=USR2@2h time=1h", "would come 7200 s before a limit of 3600 s"},
        {"array=5-1", "array: '5-1' has a range that runs backwards"},
        {"array=0-9%0", "array: '0-9%0' has no valid number after the %"},
        {"array=0-1000000", "array: '0-1000000' goes beyond task 999999"},
        {"array=", "array: an empty value is not a set of tasks"},
        {"array=1,,2", "array: '1,,2' is not a set of tasks"},
        {"array=0-9:0", "array: '0-9:0' is not a set of tasks"},
        {"array=0-99999:2", "more than 16384 separate ranges"},
        {"begin=16:00", "begin: '16:00' needs the local clock"},
        {"begin=soon", "begin: 'soon' is not a time"},
        {"after=12 after-failed=12", "it cannot run both after job 12 has completed and"},
        {"cancel", "cancel: 'cancel' is only for lines of a jobs file; use berth cancel"},
        {"vram=8", "vram: 8 MiB? write 8G"},
    };
    struct request r;
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int rc = apply(&r, cases[i].words, ATTR_COMMAND_LINE, &e);
        request_free(&r);
        if (rc == 0)
            fail_msg("'%s' is accepted", cases[i].words);
        assert_int_equal(e.code, ERR_USAGE);
        if (!strstr(e.text, cases[i].error))
            fail_msg("'%s': %s", cases[i].words, e.text);
    }
}

/* Earlier values, as from a script, are replaced; a type takes what belongs to it along. */
static void
later_words_count(void **state)
{
    static const struct {
        const char *words, *type;
        int gpus;
    } cases[] = {
        {"gpus=a100:2", "a100", 2},
        {"gpus=a100:2 gpus=1", "", 1},
        {"gpus=a100:2 gpus=0", "", 0},
        {"gpus=a100:2 gpus=h100:1", "h100", 1},
        {"gpus=a100:2 gpu-type=h100 gpus=1", "h100", 1},
        {"gpu-type=a100 gpus=2", "a100", 2},
    };
    struct request r;
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (apply(&r, cases[i].words, ATTR_COMMAND_LINE, &e) < 0)
            fail_msg("'%s': %s", cases[i].words, e.text);
        assert_string_equal(r.demand.gpu_type, cases[i].type);
        assert_int_equal(r.demand.gpus, cases[i].gpus);
        request_free(&r);
    }
    assert_int_equal(apply(&r, "signal=USR1@60 slurm-env", ATTR_COMMAND_LINE, &e), 0);
    request_free(&r);
}

/* Accepted only on the command line. */
static void
sets_what_the_command_line_says(void **state)
{
    struct request r;
    struct err e;

    (void)state;
    assert_int_equal(apply(&r,
                           "gpu-type=A100 min-vram=40G max-used=0.8 max-load=75% margin=0 "
                           "idle=200 placement=Spread gpu-cc=8.6 cpu-bind=node "
                           "time=2h on-timeout=requeue max-requeues=5 signal=SIGUSR2@90s "
                           "preemptible login unique after=12,prep after-any=13_4 "
                           "after-failed=20 array=0-9,20%3 begin=@1766600000 tag=a,b tag=c "
                           "tag=a conda=/opt/envs/x env-setup=",
                           ATTR_COMMAND_LINE, &e),
                     0);
    assert_string_equal(r.demand.gpu_type, "a100");
    assert_int_equal(r.demand.min_vram_mib, 40960);
    assert_int_equal(r.demand.min_cc, 86);
    assert_int_equal(r.demand.cpu_bind, CPU_BIND_NODE);
    assert_int_equal(r.demand.max_used_permille, 800);
    assert_int_equal(r.demand.max_load_permille, 750);
    assert_int_equal(r.demand.margin_mib, 0);
    assert_int_equal(r.demand.idle_mib, 200);
    assert_int_equal(r.demand.placement, PLACING_SPREAD);
    assert_int_equal(r.on_timeout, ON_TIMEOUT_REQUEUE);
    assert_int_equal(r.max_requeues, 5);
    assert_int_equal(r.warn_signal, 12);
    assert_int_equal(r.warn_ms, 90000);
    assert_true(r.preemptible && r.unique && r.login);
    assert_int_equal(r.n_deps, 4);
    assert_true(r.deps[0].job == 12 && r.deps[0].task == -1 && r.deps[0].type == DEP_SUCCESS);
    assert_string_equal(r.deps[1].name, "prep");
    assert_true(r.deps[2].job == 13 && r.deps[2].task == 4 && r.deps[2].type == DEP_ANY);
    assert_true(r.deps[3].job == 20 && r.deps[3].type == DEP_FAILED);
    assert_int_equal(task_set_count(&r.array), 11);
    assert_int_equal(r.array_max, 3);
    assert_int_equal(r.begin_us, 1766600000000000);
    assert_string_equal(r.tags[2], "c");
    assert_null(r.tags[3]);
    assert_string_equal(r.conda, "/opt/envs/x");
    assert_string_equal(r.env_setup, "");
    request_free(&r);
}

static void
the_last_dependency_of_a_type_wins(void **state)
{
    struct request r;
    struct err e;

    (void)state;
    assert_int_equal(apply(&r, "after=a,b after-any=c after=7", ATTR_COMMAND_LINE, &e), 0);
    assert_int_equal(r.n_deps, 2);
    assert_string_equal(r.deps[0].name, "c");
    assert_int_equal(r.deps[1].job, 7);
    request_free(&r);
}

static void
a_fraction_of_gpus_is_a_share(void **state)
{
    static const struct {
        const char *words;
        int gpus, share;
        bool rounded;
    } cases[] = {
        {"gpus=0.5", 1, 500, false},
        {"gpus=0.333333", 1, 333, false},
        {"gpus=1", 1, 0, false},
        {"gpus=1.0", 1, 0, false},
        {"gpus=0.9999", 1, 0, false},
        {"gpus=1.5", 2, 0, true},
        {"gpus=2.001", 3, 0, true},
        {"gpus=0.5 gpus=2", 2, 0, false},
        {"gpus=1.5 gpus=4", 4, 0, false},
        {"share=25%", 1, 250, false},
        {"gpus=1 share=1", 1, 1000, false},
    };
    struct request r;
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (apply(&r, cases[i].words, ATTR_JOBS_FILE, &e) < 0)
            fail_msg("'%s': %s", cases[i].words, e.text);
        assert_int_equal(r.demand.gpus, cases[i].gpus);
        assert_int_equal(r.demand.share_permille, cases[i].share);
        assert_int_equal(r.gpus_rounded, cases[i].rounded);
        request_free(&r);
    }
}

static void
task_numbers_are_a_set(void **state)
{
    static const struct {
        const char *text, *set;
        int max;
    } cases[] = {
        {"0-99", "0-99", 0},
        {"0-99%8", "0-99", 8},
        {"1,3,5-9", "1,3,5-9", 0},
        {"0-20:5", "0,5,10,15,20", 0},
        {"0-22:5", "0,5,10,15,20", 0},
        {"7", "7", 0},
        {"9,1-3,2-5,6,9", "1-6,9", 0},
        {"999999", "999999", 0},
        {"0-99999:1%100000", "0-99999", 100000},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf text = BUF_INIT;
        struct task_set set;
        int32_t max;
        struct err e;
        if (value_tasks(cases[i].text, &set, &max, &e) < 0)
            fail_msg("'%s': %s", cases[i].text, e.text);
        task_set_text(&set, &text);
        assert_string_equal(buf_str(&text), cases[i].set);
        assert_int_equal(max, cases[i].max);
        task_set_free(&set);
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

/* Requests from the wire have not passed the setters. */
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
    REFUSED(demand.share_permille, 1001);
    REFUSED(demand.min_vram_mib, -1);
    REFUSED(demand.max_used_permille, -1);
    REFUSED(demand.margin_mib, -2);
    REFUSED(demand.idle_mib, -1);
    REFUSED(max_requeues, -1);
    REFUSED(warn_signal, 9);
    REFUSED(warn_signal, 65);
    REFUSED(begin_us, -1);
    REFUSED(array_max, -1);
    REFUSED(n_deps, DEPS_MAX + 1);
    REFUSED(command, NULL);
    REFUSED(command, (char *)" \t\n");
    REFUSED(name, (char *)"");
    REFUSED(name, (char *)"a\nb");
    REFUSED(argv, ((char *[]){(char *)"x", NULL})); /* together with a command */
    r = good;
    r.command = NULL;
    r.argv = (char *[]){NULL};
    assert_int_equal(request_validate(&r, &e), -1);
    r = good;
    r.demand.n_ids = 1;
    r.demand.ids[0] = GPU_MAX;
    assert_int_equal(request_validate(&r, &e), -1);
}

/* Kinds that attr_read_text can read. */
static bool
has_reader(enum attr_kind kind)
{
    return kind != ATTR_NOTHING && kind != ATTR_US && kind != ATTR_LIST && kind != ATTR_TYPE &&
           kind != ATTR_TASKS && kind != ATTR_DEPS;
}

/* Its key is unique, its default is an allowed value or below all of them, and its size is its
 * kind's. */
static void
the_field_is_sound(const struct attr *a)
{
    static const size_t sizes[] = {
        [ATTR_FLAG] = 1,
        [ATTR_INT] = 4,
        [ATTR_MIB] = 4,
        [ATTR_PERMILLE] = 4,
        [ATTR_TENTHS] = 1,
        [ATTR_MS] = 8,
        [ATTR_US] = 8,
        [ATTR_TEXT] = sizeof(char *),
        [ATTR_LIST] = sizeof(char **),
        [ATTR_HOOK] = sizeof(char *),
        [ATTR_MAIL] = 4,
        [ATTR_CARDS] = 8,
        [ATTR_TYPE] = GPU_TYPE_MAX,
    };

    assert_int_equal(a->kind == ATTR_NOTHING, !a->key);
    if (!a->key)
        return;
    assert_ptr_equal(attr_of_key(a->key), a);
    assert_false(attr_is_said(a, &request_standard));
    assert_true(attr_is_same(a, &request_standard, &request_standard));
    if (a->kind < COUNT(sizes) && sizes[a->kind])
        assert_int_equal(a->size, sizes[a->kind]);
    if (a->max && a->kind != ATTR_LIST)
        assert_true(a->min < a->max && attr_default(a) <= a->max);
    assert_int_equal(a->kind == ATTR_CHOICE, a->words != NULL);
    assert_int_equal(a->kind == ATTR_LIST, a->want != NULL);
    assert_true(a->kind != ATTR_HOOK || a->check);
}

static void
the_table_is_sound(void **state)
{
    static const enum attr_door doors[] = {ATTR_JOBS_FILE, ATTR_COMMAND_LINE};
    char letters[64] = "";

    (void)state;
    for (size_t i = 0; attr_at(i); i++) {
        const struct attr *a = attr_at(i);
        the_field_is_sound(a);
        if (!a->doors) { /* a group's title, or a field without a name */
            assert_true(!a->set && !a->set_at && !a->name != !a->key);
            continue;
        }
        assert_true(a->help && (!a->set || !a->set_at));
        assert_true(has_reader(a->kind) || a->set || a->set_at);
        assert_int_equal(!a->closed, a->doors == (ATTR_JOBS_FILE | ATTR_COMMAND_LINE));
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
        cmocka_unit_test(retries_mean_the_same_at_every_door),
        cmocka_unit_test(refuses_with_words),
        cmocka_unit_test(refuses_on_the_command_line),
        cmocka_unit_test(later_words_count),
        cmocka_unit_test(sets_what_the_command_line_says),
        cmocka_unit_test(the_last_dependency_of_a_type_wins),
        cmocka_unit_test(a_fraction_of_gpus_is_a_share),
        cmocka_unit_test(task_numbers_are_a_set),
        cmocka_unit_test(accepts_cpu_only),
        cmocka_unit_test(validates_what_setters_never_saw),
        cmocka_unit_test(the_table_is_sound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
