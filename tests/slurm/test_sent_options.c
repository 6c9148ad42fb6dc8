/* From requests to sbatch options, attributes without a counterpart, and the output of Slurm's
 * commands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/request.h"
#include "slurm/cancel_ids.h"
#include "slurm/sent_options.h"
#include "slurm/slurm_answers.h"
#include "spec/attr.h"
#include "spec/config.h"

/* The options of a request made of these words, "gpus=2 time=1h", with these settings. */
static void
assert_options(const char *words, const char *settings, const char *expected)
{
    struct request r;
    struct config config;
    struct err e = {0};
    auto_buf struct buf out = BUF_INIT;
    auto_free char *copy = xstrdup(words);
    char *at = copy;
    config_init(&config);
    assert_int_equal(config_read(&config, "c", settings, strlen(settings), NULL, &e), 0);
    request_init(&r);
    r.command = xstrdup("true");
    for (char *word; (word = strsep(&at, " "));) {
        char *value = strchr(word, '=');
        if (value)
            *value++ = '\0';
        assert_int_equal(attr_assign(&r, word, value, ATTR_JOBS_FILE, &e), 0);
    }
    assert_int_equal(request_validate(&r, &e), 0);
    slurm_add_options(&r, true, &config, &out);
    for (size_t i = 0; i + 1 < out.len; i++)
        if (!out.data[i])
            out.data[i] = ' ';
    assert_string_equal(buf_str(&out), expected);
    request_free(&r);
    config_free(&config);
}

#define REST "--no-requeue --job-name=berth"

static void
test_options(void **state)
{
    (void)state;
    assert_options("on=slurm", "", "--nodes=1 --gres=gpu:1 " REST);
    assert_options("on=slurm gpus=0", "", "--nodes=1 " REST);
    assert_options("on=slurm gpus=2 gpu-type=A100 cpus=4 mem=8G name=big", "",
                   "--nodes=1 --gres=gpu:a100:2 --cpus-per-task=4 --mem=8192M --no-requeue "
                   "--job-name=big");
    /* Its limit, its grace of 10 s, and a minute: rounded up. */
    assert_options("on=slurm gpus=0 time=1h", "", "--nodes=1 --time=0-01:02:00 " REST);
    assert_options("on=slurm gpus=0 time=1h grace=1m", "", "--nodes=1 --time=0-01:02:00 " REST);
    /* What the supervisor or the daemon does is not also requested from Slurm. */
    assert_options("on=slurm gpus=0 requeue priority=-5 log=l "
                   "after=12 mail-user=me signal=USR2@60 time=1h",
                   "", "--nodes=1 --time=0-01:02:00 " REST);
}

static void
test_settings(void **state)
{
    (void)state;
    assert_options("on=slurm gpus=0",
                   "slurm_partition: gpu\nslurm_account: lab\nslurm_qos: low\n"
                   "slurm_options: \"  -x n7  --exclude=n8 \"\n",
                   "--partition=gpu --account=lab --qos=low --nodes=1 " REST
                   " -x n7 --exclude=n8");
}

static void
test_shards(void **state)
{
    static const char shards[] = "slurm_shard_mib: 1024\n";
    (void)state;
    assert_options("on=slurm vram=18G", "", "--nodes=1 --gres=gpu:1 " REST);
    assert_options("on=slurm vram=18G", shards, "--nodes=1 --gres=shard:18 " REST);
    assert_options("on=slurm vram=1025M", shards, "--nodes=1 --gres=shard:2 " REST);
    assert_options("on=slurm", shards, "--nodes=1 --gres=gpu:1 " REST);
    assert_options("on=slurm vram=1G exclusive", shards, "--nodes=1 --gres=gpu:1 " REST);
    assert_options("on=slurm vram=1G gpus=2", shards, "--nodes=1 --gres=gpu:2 " REST);
}

static void
test_no_counterpart(void **state)
{
    static const char *const words[] = {"gpu-ids",  "devices",     "min-vram", "max-used",
                                        "max-load", "preemptible", "screen",   "vram-cap",
                                        "gpu-cc",   "cpu-bind"};
    static const char *const values[] = {"0",  "0-1", "40G",     "0.5", "0.5",
                                         NULL, NULL,  "require", "8.0", "node"};
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct request r;
        struct err e = {0};
        request_init(&r);
        r.command = xstrdup("true");
        assert_int_equal(attr_assign(&r, words[i], values[i], ATTR_JOBS_FILE, &e), 0);
        assert_int_equal(request_validate(&r, &e), 0);
        assert_int_equal(attr_assign(&r, "on", "slurm", ATTR_JOBS_FILE, &e), 0);
        assert_int_equal(request_validate(&r, &e), -1);
        assert_non_null(strstr(e.text, "cannot be had on Slurm"));
        assert_non_null(strstr(e.text, words[i]));
        request_free(&r);
    }
}

static void
test_squeue(void **state)
{
    struct slurm_job j;
    char task[] = "12|3|RUNNING|n1|None|1795670797|berth:00ff";
    char alone[] = "13|N/A|PENDING||Resources|N/A|berth:ab";
    char bars[] = "14|N/A|PENDING||Priority|N/A|berth:a|b";
    char other[] = "15|N/A|PENDING||Priority|N/A|(null)";
    char cut[] = "16|N/A|PENDING||Prio";
    (void)state;
    assert_true(slurm_read_job(task, &j));
    assert_string_equal(j.array, "12");
    assert_true(j.is_task);
    assert_int_equal(j.index, 3);
    assert_string_equal(j.state, "RUNNING");
    assert_string_equal(j.node, "n1");
    assert_true(j.start_s == 1795670797);
    assert_string_equal(j.key, "00ff");
    assert_true(slurm_read_job(alone, &j));
    assert_false(j.is_task);
    assert_int_equal(j.index, 0);
    assert_string_equal(j.reason, "Resources");
    assert_true(j.start_s == 0);
    assert_true(slurm_read_job(bars, &j));
    assert_string_equal(j.key, "a|b");
    assert_false(slurm_read_job(other, &j));
    assert_false(slurm_read_job(cut, &j));
}

static void
test_states(void **state)
{
    (void)state;
    assert_int_equal(slurm_phase_of("PENDING"), SLURM_WAITS);
    assert_int_equal(slurm_phase_of("CONFIGURING"), SLURM_RUNS);
    assert_int_equal(slurm_phase_of("COMPLETING"), SLURM_RUNS);
    assert_int_equal(slurm_phase_of("NODE_FAIL"), SLURM_IS_OVER);
    assert_int_equal(slurm_phase_of("CANCELLED"), SLURM_IS_OVER);
    assert_non_null(slurm_reason_words("Resources"));
    assert_null(slurm_reason_words("SomethingNew"));
}

static void
test_sbatch(void **state)
{
    char plain_id[] = "123\n", with_cluster[] = "124;main\n",
         words[] = "Submitted batch job 5\n";
    char nothing[] = "";
    (void)state;
    assert_string_equal(slurm_read_id(plain_id), "123");
    assert_string_equal(slurm_read_id(with_cluster), "124");
    assert_null(slurm_read_id(words));
    assert_null(slurm_read_id(nothing));
    assert_int_equal(
        slurm_refusal_of("sbatch: error: Batch job submission failed: Invalid partition name"),
        SLURM_NEVER);
    assert_int_equal(slurm_refusal_of("sbatch: error: Batch job submission failed: Unable to "
                                      "contact slurm controller (connect failure)"),
                     SLURM_LATER);
    assert_int_equal(
        slurm_refusal_of("sbatch: error: Batch job submission failed: Socket timed "
                         "out on send/recv operation"),
        SLURM_UNKNOWN);
    assert_int_equal(slurm_refusal_of("what is this"), SLURM_UNKNOWN);
    assert_int_equal(
        slurm_refusal_of("sbatch: error: Batch job submission failed: Message send failure"),
        SLURM_UNKNOWN);
    assert_int_equal(slurm_refusal_of("sbatch: error: Batch job submission failed: I/O error "
                                      "writing script/environment to file"),
                     SLURM_LATER);
    assert_int_equal(slurm_refusal_of("sbatch: error: fetch_config: no answer\n"
                                      "sbatch: fatal: Could not establish a configuration "
                                      "source"),
                     SLURM_LATER);
}

static void
test_words_of_sbatch(void **state)
{
    static const struct {
        const char *words;
        enum slurm_refusal why;
        bool limit;
    } cases[] = {
        {"sbatch: unrecognized option '--partitoin=gpu'\nTry \"sbatch --help\" for more "
         "information",
         SLURM_NEVER, false},
        {"sbatch: invalid option -- 'Z'", SLURM_NEVER, false},
        {"sbatch: option '--qos' requires an argument", SLURM_NEVER, false},
        {"sbatch: option '--ex' is ambiguous; possibilities: '--export' '--exclusive'",
         SLURM_NEVER, false},
        {"sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: "
         "Job violates accounting/QOS policy (job submit limit, user's size and/or time "
         "limits)",
         SLURM_LATER, true},
        {"sbatch: error: Batch job submission failed: Unable to contact slurm controller",
         SLURM_LATER, false},
        {"sbatch: error: Batch job submission failed: Unable to contact slurm controller "
         "(connect failure)",
         SLURM_LATER, false},
        {"sbatch: error: Batch job submission failed: Unable to contact slurm controller (send "
         "failure)",
         SLURM_UNKNOWN, false},
        {"sbatch: error: Batch job submission failed: Unable to contact slurm controller "
         "(receive failure)",
         SLURM_UNKNOWN, false},
        {"sbatch: error: Batch job submission failed: Unable to contact slurm controller "
         "(shutdown failure)",
         SLURM_UNKNOWN, false},
        {"sbatch: error: Batch job submission failed: Required partition not available "
         "(inactive or drain)",
         SLURM_LATER, false},
        {"sbatch: error: Batch job submission failed: Requested partition configuration not "
         "available now",
         SLURM_LATER, false},
        {"sbatch: error: Batch job submission failed: Invalid qos specification", SLURM_NEVER,
         false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (slurm_refusal_of(cases[i].words) != cases[i].why)
            fail_msg("'%s': %d", cases[i].words, slurm_refusal_of(cases[i].words));
        assert_int_equal(slurm_is_limit(cases[i].words), cases[i].limit);
    }
}

static void
assert_cancelled(const char *const *texts, size_t n, int most, size_t covered,
                 const char *expected)
{
    struct cancel_id ids[8];
    auto_buf struct buf out = BUF_INIT;
    for (size_t i = 0; i < n; i++)
        assert_true(cancel_id_read(texts[i], &ids[i]));
    assert_int_equal(cancel_ids_add(ids, n, most, &out), covered);
    for (size_t i = 0; i + 1 < out.len; i++)
        if (!out.data[i])
            out.data[i] = ' ';
    assert_string_equal(out.len ? out.data : "", expected);
}

static void
test_cancel_ids(void **state)
{
    static const char *const texts[] = {"24_7", "31", "24_0", "9_2", "24_2", "24_1", "30"};
    static const char *const bad[] = {"", "x", "12_", "_3", "12_x", "0"};
    struct cancel_id id;
    (void)state;
    assert_cancelled(texts, 7, 5, 7, "9_[2] 24_[0-2,7] 30 31");
    assert_cancelled(texts, 7, 2, 5, "9_[2] 24_[0-2,7]");
    assert_cancelled(texts, 0, 2, 0, "");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(cancel_id_read(bad[i], &id));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),    cmocka_unit_test(test_settings),
        cmocka_unit_test(test_shards),     cmocka_unit_test(test_no_counterpart),
        cmocka_unit_test(test_squeue),     cmocka_unit_test(test_states),
        cmocka_unit_test(test_sbatch),     cmocka_unit_test(test_words_of_sbatch),
        cmocka_unit_test(test_cancel_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
