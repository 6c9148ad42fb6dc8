/* Lines between the daemon and allocations, and the shape of a new allocation. */
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
#include "slurm/allocation_options.h"
#include "slurm/backlog.h"
#include "spec/attr.h"
#include "spec/config.h"

/* The demand on an allocation of a request made of these words. */
static struct backlog_line
line_of(const char *words)
{
    struct request r;
    struct backlog_line line;
    struct err e = {0};
    auto_free char *copy = xstrdup(words);
    char *at = copy;
    request_init(&r);
    for (char *word; (word = strsep(&at, " "));) {
        char *value = strchr(word, '=');
        if (value)
            *value++ = '\0';
        assert_int_equal(attr_assign(&r, word, value, ATTR_JOBS_FILE, &e), 0);
    }
    slurm_line_of_request(&r, r.demand.vram_mib, &line);
    line.job = 7;
    line.attempt = 2;
    request_free(&r);
    return line;
}

static void
assert_same_back(const struct backlog_line *line, const char *text)
{
    struct backlog_line back;
    auto_buf struct buf out = BUF_INIT;
    backlog_add(line, &out);
    assert_string_equal(buf_str(&out), text);
    out.data[out.len - 1] = '\0';
    assert_true(backlog_read(out.data, &back));
    assert_int_equal(back.word, line->word);
    assert_int_equal(back.job, line->job);
    assert_int_equal(back.attempt, line->attempt);
    assert_int_equal(back.times, line->times);
    assert_string_equal(back.key, line->key);
    assert_int_equal(back.limit_ms, line->limit_ms);
    assert_int_equal(back.grace_ms, line->grace_ms);
    assert_int_equal(back.span_ms, line->span_ms);
    assert_int_equal(back.demand.gpus, line->demand.gpus);
    assert_int_equal(back.demand.vram_mib, line->demand.vram_mib);
    assert_int_equal(back.demand.share_permille, line->demand.share_permille);
    assert_int_equal(back.demand.exclusive, line->demand.exclusive);
    assert_int_equal(back.demand.margin_mib, line->demand.margin_mib);
    assert_string_equal(back.demand.gpu_type, line->demand.gpu_type);
}

static void
test_lines(void **state)
{
    (void)state;
    struct backlog_line line = line_of("vram=18G");
    line.span_ms = 1500;
    assert_same_back(&line, "job 7.2 1 18432 0 0 0 0 -1 0 10000 1500 -\n");
    line = line_of("gpus=2 gpu-type=A100 exclusive cpus=4 mem=8G time=1h grace=5s margin=1G");
    assert_same_back(&line, "job 7.2 2 0 0 1 4 8192 1024 3600000 5000 0 a100\n");
    line = line_of("share=0.25 margin=0");
    assert_same_back(&line, "job 7.2 1 0 250 0 0 0 0 0 10000 0 -\n");
    line = (struct backlog_line){.word = BACKLOG_STOP, .job = 3, .attempt = 1, .times = 2};
    demand_init(&line.demand);
    assert_same_back(&line, "stop 3.1 2\n");
    line = (struct backlog_line){.word = BACKLOG_LEAVE, .key = "00ff00ff00ff00ff"};
    demand_init(&line.demand);
    assert_same_back(&line, "leave 00ff00ff00ff00ff\n");
}

static void
test_other_lines(void **state)
{
    static const char *const texts[] = {"",
                                        "job",
                                        "job 7",
                                        "job 0.1 1 1",
                                        "stop",
                                        "stop 0.1",
                                        "stop 1.1",
                                        "leave",
                                        "go 1.1 2",
                                        "job 7.2 1 18432 0 0 0 0 -1 0 10000 1500",
                                        "job 7.2 65 1 0 0 0 0 -1 0 10000 0 -"};
    struct backlog_line line;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_false(backlog_read(texts[i], &line));
}

static void
test_spec(void **state)
{
    struct allocation_spec spec = {.gpus = 4,
                                   .cpus = 8,
                                   .mem_mib = 16384,
                                   .limit_ms = 3600000,
                                   .idle_ms = 1000,
                                   .gpu_mib = 24000,
                                   .type = "a100"},
                           back;
    auto_buf struct buf out = BUF_INIT;
    (void)state;
    allocation_spec_add(&spec, &out);
    assert_true(allocation_spec_read(buf_str(&out), &back));
    assert_int_equal(back.gpus, 4);
    assert_int_equal(back.cpus, 8);
    assert_int_equal(back.mem_mib, 16384);
    assert_int_equal(back.limit_ms, 3600000);
    assert_int_equal(back.idle_ms, 1000);
    assert_int_equal(back.gpu_mib, 24000);
    assert_string_equal(back.type, "a100");
    assert_false(allocation_spec_read("", &back));
    assert_false(allocation_spec_read("allocation 4 8 16384 0 1000 24000 -", &back));
    assert_false(allocation_spec_read("allocation 99 8 16384 1000 1000 24000 -", &back));
}

static void
test_fit(void **state)
{
    const struct allocation_spec spec = {.gpus = 2, .cpus = 4, .limit_ms = 3600000};
    const struct allocation_spec typed = {
        .gpus = 2, .cpus = 4, .limit_ms = 3600000, .type = "a100"};
    struct backlog_line line;
    (void)state;
    line = line_of("vram=80G");
    assert_true(allocation_is_fit(&spec, &line)); /* the size of its GPUs is unknown yet */
    line = line_of("gpus=2 cpus=4 time=1h");
    assert_true(allocation_is_fit(&spec, &line));
    line = line_of("gpus=3");
    assert_false(allocation_is_fit(&spec, &line));
    line = line_of("cpus=5");
    assert_false(allocation_is_fit(&spec, &line));
    line = line_of("mem=1G");
    assert_false(allocation_is_fit(&spec, &line));
    line = line_of("time=61m");
    assert_false(allocation_is_fit(&spec, &line));
    line = line_of("time=1h grace=2m"); /* a minute of which is the allocation's own */
    assert_false(allocation_is_fit(&spec, &line));
    line = line_of("time=59m grace=2m");
    assert_true(allocation_is_fit(&spec, &line));
    line = line_of("gpu-type=A100");
    assert_false(allocation_is_fit(&spec, &line));
    assert_true(allocation_is_fit(&typed, &line));
}

static void
test_time(void **state)
{
    const struct allocation_spec spec = {.gpus = 1, .limit_ms = 3600000};
    struct backlog_line line = line_of("time=1h");
    (void)state;
    assert_true(allocation_has_time(&spec, &line, 3600000 - ALLOCATION_SLACK_MS));
    assert_false(allocation_has_time(&spec, &line, 3600000 - ALLOCATION_SLACK_MS - 1));
    line = line_of("time=1h grace=2m");
    assert_true(allocation_has_time(&spec, &line, 3600000));
    assert_false(allocation_has_time(&spec, &line, 3599999));
    line = line_of("vram=1G"); /* run time unknown */
    assert_true(allocation_has_time(&spec, &line, 900000));
    assert_false(allocation_has_time(&spec, &line, 899999));
    line.span_ms = 10000;
    assert_true(allocation_has_time(&spec, &line, 10000));
    assert_false(allocation_has_time(&spec, &line, 9999));
    line.span_ms = 7200000; /* no allocation is long enough, so it is tried */
    assert_true(allocation_has_time(&spec, &line, 900000));
}

static void
read_config(struct config *c, const char *text)
{
    struct err e = {0};
    config_init(c);
    assert_int_equal(config_read(c, "c", text, strlen(text), NULL, &e), 0);
}

static void
assert_sent(const char *settings, const char *words, const char *expected)
{
    struct config c;
    struct allocation_spec spec;
    struct backlog_line line;
    auto_buf struct buf out = BUF_INIT;
    read_config(&c, settings);
    if (words)
        line = line_of(words);
    allocation_spec_for(&c, words ? &line : NULL, &spec);
    slurm_add_allocation_options(&spec, &c, &out);
    for (size_t i = 0; i + 1 < out.len; i++)
        if (!out.data[i])
            out.data[i] = ' ';
    assert_string_equal(buf_str(&out), expected);
    config_free(&c);
}

#define REST "--no-requeue --job-name=berth-pack"

static void
test_sent(void **state)
{
    (void)state;
    /* Four hours, and a minute each for a late start, for ending, and for Slurm. */
    assert_sent("", NULL, "--nodes=1 --gres=gpu:1 --time=0-04:03:00 " REST);
    assert_sent(
        "slurm_allocation_gpus: 4\nslurm_allocation_cpus: 16\nslurm_partition: p\n",
        "gpus=2 vram=4G cpus=2",
        "--partition=p --nodes=1 --gres=gpu:4 --cpus-per-task=16 --time=0-04:03:00 " REST);
    assert_sent("", "gpus=2 gpu-type=H100 cpus=6 mem=32G time=1d",
                "--nodes=1 --gres=gpu:h100:2 --cpus-per-task=6 --mem=32768M --time=1-00:03:00 "
                "" REST);
    assert_sent("", "time=4h grace=3m", "--nodes=1 --gres=gpu:1 --time=0-04:05:00 " REST);
}

static void
test_which(void **state)
{
    struct config c;
    struct demand d;
    (void)state;
    demand_init(&d);
    d.vram_mib = 4096;
    read_config(&c, "");
    assert_false(slurm_is_to_pack(&d, &c));
    d.pack = 1;
    assert_true(slurm_is_to_pack(&d, &c));
    config_free(&c);
    d.pack = 0;
    read_config(&c, "slurm_pack_mib: 8000\n");
    assert_true(slurm_is_to_pack(&d, &c));
    d.vram_mib = 8001;
    assert_false(slurm_is_to_pack(&d, &c));
    d.vram_mib = 0; /* a whole GPU */
    assert_false(slurm_is_to_pack(&d, &c));
    config_free(&c);
    d.vram_mib = 4096;
    read_config(&c, "slurm_pack_mib: 8000\nslurm_shard_mib: 1000\n");
    assert_false(slurm_is_to_pack(&d, &c));
    config_free(&c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines), cmocka_unit_test(test_other_lines),
        cmocka_unit_test(test_spec),  cmocka_unit_test(test_fit),
        cmocka_unit_test(test_time),  cmocka_unit_test(test_sent),
        cmocka_unit_test(test_which),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
