/* Requests as sbatch options: each attribute, the effect of a cluster, what is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "slurm/sbatch_options.h"
#include "spec/attr.h"

static const char *const one_type[] = {"h100", NULL};
static const char *const types[] = {"nvidia_a100_80gb", "nvidia_a100_40gb", "rtx_4090", NULL};
static const int32_t mib[] = {81920, 40960, 24576};
static const struct sbatch_site plain;
static const struct sbatch_site sharded = {.shard_mib = 1024, .gpu_mib = 24576};

/* The options and notes of a request written as "name=value" words. */
static void
check(const char *said, const struct sbatch_site *site, const char *options, const char *notes)
{
    auto_buf struct buf got = BUF_INIT, lost = BUF_INIT;
    auto_free char *words = xstrdup(said);
    struct sbatch_options o;
    char *rest = words, *word;
    struct request r;
    struct err e;

    request_begin(&r);
    r.command = xstrdup("true");
    while ((word = strsep(&rest, " "))) {
        char *value = strchr(word, '=');
        if (!word[0])
            continue;
        if (value)
            *value++ = '\0';
        if (attr_assign(&r, word, value, ATTR_COMMAND_LINE, &e) < 0)
            fail_msg("%s: %s", said, e.text);
    }
    if (request_validate(&r, &e) < 0)
        fail_msg("%s: %s", said, e.text);
    sbatch_options_of(&r, site, &o);
    for (int i = 0; i < o.n_options; i++)
        buf_addf(&got, "%s%s", i ? " " : "", o.options[i]);
    for (int i = 0; i < o.n_notes; i++)
        buf_addf(&lost, "%s%s", i ? "|" : "", o.notes[i]);
    assert_string_equal(buf_str(&got), options);
    assert_string_equal(buf_str(&lost), notes);
    sbatch_options_free(&o);
    request_free(&r);
}

static void
test_every_attribute_has_a_row(void **state)
{
    const struct attr *a;

    (void)state;
    for (size_t i = 0; (a = attr_at(i)); i++)
        if (a->doors && a->key && !sbatch_options_know(a->name))
            fail_msg("%s is not in the table of slurm/sbatch_options.c", a->name);
    assert_false(sbatch_options_know("nice"));
}

static void
test_gpus(void **state)
{
    struct sbatch_site known = {.gpu_types = types, .gpu_mib = 24576};
    struct sbatch_site sized = {.gpu_types = types, .type_mib = mib, .gpu_mib = 24576};
    struct sbatch_site same = {.gpu_types = one_type};

    (void)state;
    check("", &plain, "--nodes=1 --gres=gpu:1 --no-requeue", "");
    check("gpus=0", &plain, "--nodes=1 --no-requeue", "");
    check("gpus=4", &plain, "--nodes=1 --gres=gpu:4 --no-requeue", "");
    check("gpu-ids=3,1", &plain, "--nodes=1 --gres=gpu:2 --no-requeue",
          "gpu-ids: Slurm chooses the GPUs");
    check("gpus=a100:2", &plain, "--nodes=1 --gres=gpu:a100:2 --no-requeue", "");
    check("gpu-type=4090", &known, "--nodes=1 --gres=gpu:rtx_4090:1 --no-requeue", "");
    check("gpu-type=A100", &known, "--nodes=1 --gres=gpu:1 --no-requeue",
          "gpu-type: several types of GPU contain it; any GPU will do");
    check("gpu-type=v100", &known, "--nodes=1 --gres=gpu:1 --no-requeue",
          "gpu-type: no type of GPU in the cluster contains it; any GPU will do");
    check("gpu-type=h100", &same, "--nodes=1 --gres=gpu:1 --no-requeue", "");
    check("min-vram=60G", &sized, "--nodes=1 --gres=gpu:nvidia_a100_80gb:1 --no-requeue", "");
    check("gpus=2 vram=50G", &sized, "--nodes=1 --gres=gpu:nvidia_a100_80gb:2 --no-requeue",
          "vram: the job gets whole GPUs, not a part");
    check("gpu-type=a100 min-vram=60G", &sized,
          "--nodes=1 --gres=gpu:nvidia_a100_80gb:1 --no-requeue", "");
    check("min-vram=30G", &sized, "--nodes=1 --gres=gpu:1 --no-requeue",
          "vram: several types of GPU have that much, others less; any GPU will do");
    check("min-vram=90G", &sized, "--nodes=1 --gres=gpu:1 --no-requeue",
          "vram: no type of GPU has that much; any GPU will do");
    check("min-vram=20G", &sized, "--nodes=1 --gres=gpu:1 --no-requeue", "");
    check("min-vram=24G", &known, "--nodes=1 --gres=gpu:1 --no-requeue", "");
    check("min-vram=25G", &known, "--nodes=1 --gres=gpu:1 --no-requeue",
          "min-vram: Slurm does not choose by memory; use --gres=gpu:TYPE or a feature");
}

/* No more memory than a GPU has is ever requested as shards. */
static void
test_parts_of_gpus(void **state)
{
    struct sbatch_site mixed = sharded;

    (void)state;
    mixed.gpu_types = types;
    check("vram=6G", &plain, "--nodes=1 --gres=gpu:1 --no-requeue",
          "vram: the job gets whole GPUs, not a part");
    check("vram=6G", &sharded, "--nodes=1 --gres=shard:6 --no-requeue", "");
    check("vram=6145M", &sharded, "--nodes=1 --gres=shard:7 --no-requeue", "");
    check("vram=24G", &sharded, "--nodes=1 --gres=shard:24 --no-requeue", "");
    check("vram=25G", &sharded, "--nodes=1 --gres=gpu:1 --no-requeue",
          "vram: the job gets whole GPUs, not a part");
    check("gpus=2 vram=6G", &sharded, "--nodes=1 --gres=gpu:2 --no-requeue",
          "vram: the job gets whole GPUs, not a part");
    check("vram=6G exclusive", &sharded, "--nodes=1 --gres=gpu:1 --no-requeue",
          "vram: the job gets whole GPUs, not a part");
    check("vram=auto", &sharded, "--nodes=1 --gres=gpu:1 --no-requeue",
          "vram: not learned; the job gets whole GPUs");
    check("share=0.5", &sharded, "--nodes=1 --gres=shard:12 --no-requeue", "");
    check("gpus=0.5", &plain, "--nodes=1 --gres=gpu:1 --no-requeue",
          "share: the job gets a whole GPU, not a part");
    check("vram=6G gpu-type=4090", &mixed, "--nodes=1 --gres=gpu:rtx_4090:1 --no-requeue",
          "vram: the job gets whole GPUs, not a part");
}

static void
test_host_and_time(void **state)
{
    struct sbatch_site patient = {.kill_wait_ms = 30000};

    (void)state;
    check("gpus=0 cpus=6 mem=5G", &plain,
          "--nodes=1 --cpus-per-task=6 --mem=5120M --no-requeue", "");
    check("gpus=0 time=90m", &plain, "--nodes=1 --time=0-01:30:00 --no-requeue", "");
    check("gpus=0 time=3d", &plain, "--nodes=1 --time=3-00:00:00 --no-requeue", "");
    check("gpus=0 time=90", &plain, "--nodes=1 --time=0-00:01:30 --no-requeue",
          "time: Slurm rounds the limit up to whole minutes");
    check("gpus=0 time=1h on-timeout=requeue max-requeues=5", &plain,
          "--nodes=1 --time=0-01:00:00 --no-requeue",
          "on-timeout: a job is not queued again at its limit");
    check("gpus=0 time=1h signal=B:USR2@90", &plain,
          "--nodes=1 --time=0-01:00:00 --signal=B:USR2@90 --no-requeue", "");
    check("gpus=0 time=1h signal=TERM@60", &plain,
          "--nodes=1 --time=0-01:00:00 --signal=B:TERM@60 --no-requeue",
          "signal: only the command's own process gets it; use srun for all processes");
    check("gpus=0 grace=30s", &plain, "--nodes=1 --no-requeue",
          "grace: KillWait of the cluster decides");
    check("gpus=0 grace=10s oom-retries=0", &plain, "--nodes=1 --no-requeue", "");
    check("gpus=0 grace=30s", &patient, "--nodes=1 --no-requeue", "");
    check("gpus=0 oom-retries=1", &plain, "--nodes=1 --no-requeue",
          "oom-retries: a job that runs out of VRAM is not run again");
}

static void
test_order(void **state)
{
    struct sbatch_site site = {.top_priority = 5, .array_size_max = 100};
    struct sbatch_site preempting = {.preempt_qos = "scavenger", .qos = "normal"};

    (void)state;
    check("gpus=0 priority=5", &site, "--nodes=1 --no-requeue", "");
    check("gpus=0 priority=-10", &site, "--nodes=1 --nice=15 --no-requeue", "");
    check("gpus=0 priority=6", &site, "--nodes=1 --no-requeue",
          "priority: users can only lower it");
    check("gpus=0 array=0-9,20%4", &site, "--nodes=1 --nice=5 --array=0-9,20%4 --no-requeue",
          "");
    check("gpus=0 array=0-100", &site, "--nodes=1 --nice=5 --array=0-100 --no-requeue",
          "array: MaxArraySize of the cluster is too small for its task numbers");
    check("gpus=0 hold requeue unique", &plain, "--nodes=1 --hold --requeue", "");
    check("gpus=0 preemptible", &plain, "--nodes=1 --no-requeue",
          "preemptible: it is not stopped for other jobs; use a QOS or partition");
    check("gpus=0 preemptible", &preempting, "--qos=scavenger --nodes=1 --requeue", "");
    check("gpus=0", &preempting, "--qos=normal --nodes=1 --no-requeue", "");
}

static void
test_words(void **state)
{
    struct sbatch_site site = {
        .partition = "gpu", .account = "lab", .qos = "high", .comment = "berth:1"};

    (void)state;
    check("gpus=0 comment=mine name=a;b", &site,
          "--partition=gpu --account=lab --qos=high --nodes=1 --no-requeue --job-name=a;b "
          "--comment=berth:1",
          "");
    check("gpus=0 log=out.%4j.%r.%%r error=e.%A_%a open-mode=truncate", &plain,
          "--nodes=1 --no-requeue --output=out.%4j..%%r --error=e.%A_%a --open-mode=truncate",
          "log: %r, %g and %s are left out");
    check("gpus=0 log=a\\%j", &plain,
          "--nodes=1 --no-requeue --output=a\\%j --open-mode=append",
          "log: a name with a backslash is taken literally");
    check("gpus=0 mail-user=me@example.org", &plain,
          "--nodes=1 --no-requeue --mail-user=me@example.org --mail-type=END", "");
    check("gpus=0 mail-type=BEGIN,FAIL,TIME_LIMIT", &plain,
          "--nodes=1 --no-requeue --mail-type=BEGIN,FAIL,TIME_LIMIT", "");
    check("gpus=0 tag=x on-fail=ls login chdir=/tmp env=A=1 conda=torch", &plain,
          "--nodes=1 --no-requeue --chdir=/tmp --export=NONE",
          "on-fail: no command is run; use mail, or a job that depends on this one|"
          "tag: jobs have no tags; use --comment or --wckey");
}

/* Jobs below 100 are in Slurm, numbered from 1000 on. */
static bool
add_id(void *context, const struct dep *dep, struct buf *out)
{
    (void)context;
    if (dep->job >= 100)
        return false;
    buf_addf(out, "%u", dep->job + 1000);
    if (dep->task >= 0)
        buf_addf(out, "_%d", dep->task);
    return true;
}

static void
test_dependencies(void **state)
{
    static const struct dep deps[] = {{.type = DEP_SUCCESS, .job = 1, .task = -1},
                                      {.type = DEP_SUCCESS, .job = 2, .task = 7},
                                      {.type = DEP_ANY, .job = 100, .task = -1},
                                      {.type = DEP_ANY, .job = 3, .task = -1},
                                      {.type = DEP_FAILED, .job = 4, .task = -1}};
    auto_buf struct buf out = BUF_INIT, none = BUF_INIT;
    struct request r;
    struct dep copy[5];

    (void)state;
    request_init(&r);
    assert_int_equal(sbatch_add_dependency(&r, add_id, NULL, &none), 0);
    assert_string_equal(buf_str(&none), "");
    memcpy(copy, deps, sizeof copy);
    r.deps = copy;
    r.n_deps = 5;
    assert_int_equal(sbatch_add_dependency(&r, add_id, NULL, &out), 1);
    assert_string_equal(buf_str(&out), "afterok:1001:1002_7,afterany:1003,afternotok:1004");
    r.deps = &copy[2];
    r.n_deps = 1;
    assert_int_equal(sbatch_add_dependency(&r, add_id, NULL, &none), 1);
    assert_string_equal(buf_str(&none), "");
}

static void
test_quotes(void **state)
{
    auto_buf struct buf out = BUF_INIT;

    (void)state;
    sbatch_add_quoted("--job-name=a \"b\" \\c '$x' #d", &out);
    assert_string_equal(buf_str(&out), "\"--job-name=a \\\"b\\\" \\\\c '$x' #d\"");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_attribute_has_a_row),
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_parts_of_gpus),
        cmocka_unit_test(test_host_and_time),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_dependencies),
        cmocka_unit_test(test_quotes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
