/* The output lines of `berth run`, from events as docs/protocol.md defines them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "cli/table/render.h"

struct event_case {
    const char *json;
    const char *word;
    const char *details;
};

static const struct event_case cases[] = {
    {"{\"kind\":\"started\",\"gpus\":[0],\"vram_mib\":18432,\"total_mib\":24576,\"attempt\":1}",
     "started", "gpu 0    18.0 GiB of 24.0   CMD"},
    {"{\"kind\":\"started\",\"gpus\":[1,3],\"vram_mib\":null,\"total_mib\":24576,\"attempt\":"
     "2}",
     "started", "gpu 1,3  whole, 24.0 GiB    CMD   (attempt 2)"},
    {"{\"kind\":\"started\",\"gpus\":[1],\"vram_mib\":null,\"share\":0.25,\"total_mib\":24576}",
     "started", "gpu 1    0.25 of 24.0 GiB   CMD"},
    {"{\"kind\":\"started\",\"gpus\":[0,1,2,3],\"total_mib\":24576}", "started",
     "gpu 0-3  whole, 24.0 GiB    CMD"},
    {"{\"kind\":\"started\",\"gpus\":[3,2,5,6,7,9],\"total_mib\":24576}", "started",
     "gpu 3,2,5-7,9 whole, 24.0 GiB CMD"},
    {"{\"kind\":\"started\",\"gpus\":[],\"attempt\":1}", "started",
     "cpu                         CMD"},
    {"{\"kind\":\"waiting\",\"reason\":\"GpuBusy\",\"text\":\"wants an idle GPU\"}", "waiting",
     "GpuBusy: wants an idle GPU"},
    {"{\"kind\":\"waiting\",\"reason\":\"GpuBusy\",\"text\":\"GpuBusy: wants an idle GPU\"}",
     "waiting", "GpuBusy: wants an idle GPU"},
    {"{\"kind\":\"waiting\",\"reason\":\"Probe\"}", "waiting", "Probe"},
    {"{\"kind\":\"ended\",\"state\":\"COMPLETED\",\"exit_status\":0,\"run_ms\":1774000,"
     "\"peak_mib\":{\"0\":17920},\"vram_mib\":18432,\"util\":96,\"verdict\":\"within\","
     "\"text\":\"exit 0\"}",
     "completed", "29m34s   peak 17.5 of 18.0 GiB (97 %)   gpu 96 %   CMD"},
    {"{\"kind\":\"ended\",\"state\":\"COMPLETED\",\"run_ms\":2000,\"peak_mib\":{\"0\":4000},"
     "\"vram_mib\":12000,\"verdict\":\"over\"}",
     "completed",
     "2.0s   peak 3.9 of 11.7 GiB (33 %), over-declared (-66 %): vram=4400M would be enough   "
     "CMD"},
    /* A demand raised after an out of memory was not declared by the user. */
    {"{\"kind\":\"ended\",\"state\":\"COMPLETED\",\"run_ms\":2000,\"peak_mib\":{\"0\":4000},"
     "\"vram_mib\":12000,\"verdict\":\"over\",\"attempt\":2}",
     "completed", "2.0s   peak 3.9 of 11.7 GiB (33 %)   CMD"},
    {"{\"kind\":\"ended\",\"state\":\"COMPLETED\",\"run_ms\":2000,\"peak_mib\":{\"0\":4000},"
     "\"vram_mib\":12000,\"declared_mib\":12000,\"verdict\":\"over\",\"attempt\":2}",
     "completed",
     "2.0s   peak 3.9 of 11.7 GiB (33 %), over-declared (-66 %): vram=4400M would be enough   "
     "CMD"},
    {"{\"kind\":\"ended\",\"state\":\"COMPLETED\",\"run_ms\":2000,\"peak_mib\":{\"1\":12000},"
     "\"vram_mib\":8000,\"verdict\":\"under\"}",
     "completed",
     "2.0s   peak 11.7 of 7.8 GiB (150 %), UNDER-DECLARED (+50 %): declare vram=12.9G   CMD"},
    {"{\"kind\":\"ended\",\"state\":\"COMPLETED\",\"run_ms\":2000,\"peak_mib\":{\"0\":null},"
     "\"vram_mib\":8000,\"verdict\":\"unattributed\"}",
     "completed", "2.0s   peak n/a   CMD"},
    {"{\"kind\":\"ended\",\"state\":\"COMPLETED\",\"run_ms\":2000,\"peak_mib\":{\"0\":500,"
     "\"1\":2048}}",
     "completed", "2.0s   peak gpu 0: 500 MiB, gpu 1: 2.0 GiB   CMD"},
    {"{\"kind\":\"ended\",\"state\":\"FAILED\",\"exit_code\":7,\"exit_status\":7,\"run_ms\":"
     "400,"
     "\"peak_mib\":{},\"text\":\"exit 7\"}",
     "failed exit 7", "0.4s   CMD"},
    {"{\"kind\":\"ended\",\"state\":\"FAILED\",\"signal\":9,\"exit_status\":137,\"run_ms\":400,"
     "\"peak_mib\":{},\"text\":\"killed by signal 9 (KILL)\"}",
     "failed signal 9", "0.4s   CMD"},
    {"{\"kind\":\"ended\",\"state\":\"FAILED\",\"exit_status\":127,\"run_ms\":0,\"peak_mib\":{}"
     ","
     "\"text\":\"could not start: No such file or directory\"}",
     "failed exit 127", "0.0s   could not start: No such file or directory   CMD"},
    {"{\"kind\":\"ended\",\"state\":\"TIMEOUT\",\"signal\":15,\"run_ms\":400,\"peak_mib\":{},"
     "\"text\":\"time limit of 0.4s reached\"}",
     "timeout", "0.4s   time limit of 0.4s reached   CMD"},
    {"{\"kind\":\"ended\",\"state\":\"CANCELLED\",\"text\":\"cancelled by ada before it "
     "started\"}",
     "cancelled", "by ada before it started   CMD"},
    {"{\"kind\":\"ended\",\"state\":\"INFEASIBLE\",\"text\":\"needs 30.0 GiB\"}", "infeasible",
     "needs 30.0 GiB   CMD"},
    {"{\"kind\":\"ended\",\"state\":\"OUT_OF_MEMORY\",\"run_ms\":1000,\"peak_mib\":{\"0\":1800}"
     ","
     "\"vram_mib\":2000,\"text\":\"CUDA out of memory (exit 1)\"}",
     "out of memory", "1.0s   peak 1.8 of 2.0 GiB (90 %)   CUDA out of memory (exit 1)   CMD"},
    {"{\"kind\":\"requeued\",\"vram_mib_old\":2048,\"vram_mib\":2560,\"attempt\":1,\"allowed\":"
     "2,"
     "\"text\":\"CUDA out of memory\"}",
     "out of memory", "requeued with vram 2.0 GiB -> 2.5 GiB (attempt 1 of 2)"},
    {"{\"kind\":\"requeued\",\"vram_mib_old\":2048,\"vram_mib\":2048,\"attempt\":1,\"allowed\":"
     "4,"
     "\"text\":\"exit 3\"}",
     "requeued", "exit 3 (attempt 1 of 4)"},
    {"{\"kind\":\"exceeds\",\"gpu\":0,\"mib\":12000,\"declared_mib\":8000}", "EXCEEDS",
     "11.7 used of 7.8 GiB declared on gpu 0 (+50 %): other jobs there may run out of memory"},
    {"{\"kind\":\"usage\",\"peak_mib\":{\"0\":8396}}", "vram", "8.2 GiB"},
    {"{\"kind\":\"held\"}", "held", "CMD"},
    {"{\"kind\":\"started\",\"on\":\"slurm\",\"state\":\"STARTING\",\"gpus\":[]}", "sent",
     "Slurm   CMD"},
    {"{\"kind\":\"launched\",\"on\":\"slurm\",\"slurm_job\":\"47_3\",\"slurm_node\":\"n1\"}",
     "started", "Slurm's job 47_3 on n1   CMD"},
    {"{\"kind\":\"running\",\"on\":\"slurm\",\"state\":\"RUNNING\",\"attempts\":[{\"slurm_"
     "job\":"
     "\"46\"},{\"slurm_job\":\"47\",\"slurm_node\":\"n1\"}]}",
     "running", "Slurm's job 47 on n1   CMD"},
    {"{\"kind\":\"running\",\"on\":\"slurm\",\"state\":\"STARTING\",\"attempts\":[{\"slurm_"
     "job\":"
     "\"47\",\"slurm_node\":null}]}",
     "sent", "Slurm's job 47   CMD"},
};

static void
test_events(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *event = json_loads(cases[i].json, 0, NULL);
        auto_buf struct buf word = BUF_INIT;
        auto_buf struct buf details = BUF_INIT;
        enum style style;

        assert_non_null(event);
        assert_true(render_event(event, "CMD", &word, &details, &style));
        assert_string_equal(buf_str(&word), cases[i].word);
        assert_string_equal(buf_str(&details), cases[i].details);
        json_decref(event);
    }
}

static void
test_kinds_without_a_line(void **state)
{
    static const char *const quiet[] = {"submitted", "updated", "cancelled",
                                        "file",      "new-one", "launched"};

    (void)state;
    for (size_t i = 0; i < sizeof quiet / sizeof quiet[0]; i++) {
        json_t *event = json_pack("{s:s}", "kind", quiet[i]);
        auto_buf struct buf word = BUF_INIT;
        auto_buf struct buf details = BUF_INIT;
        enum style style;

        assert_false(render_event(event, "CMD", &word, &details, &style));
        json_decref(event);
    }
}

static void
test_states(void **state)
{
    (void)state;
    assert_true(render_state_is_active("COMPLETING"));
    assert_false(render_state_is_active("PENDING"));
    assert_true(render_state_is_final("LOST"));
    assert_false(render_state_is_final("RUNNING"));
    assert_false(render_state_is_final("a newer daemon's"));
    assert_int_equal(render_state_style("COMPLETED"), STYLE_GOOD);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_kinds_without_a_line),
        cmocka_unit_test(test_states),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
