/* Advice to users: a table of endings and situations, with the text for each. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/ledger/cards.h"
#include "core/place/place.h"
#include "core/plan/advice.h"

#define GIB 1024

static struct job *
make(enum job_state state, int32_t declared_gib)
{
    struct job *job = job_new();
    job->id = 12;
    job->state = state;
    job->req.demand.vram_mib = job->declared_mib = declared_gib * GIB;
    return job;
}

struct end_row {
    enum job_state state;
    struct ending ending;
    int32_t declared_gib, peak_mib;
    int64_t card_gib, largest_gib;
    const char *text;
};

static const struct end_row end_rows[] = {
    {JOB_COMPLETED, {.outcome = OUTCOME_EXITED}, 0, 5000, 24, 24, ""},
    {JOB_COMPLETED, {.outcome = OUTCOME_EXITED}, 18, 18000, 24, 24, ""},
    {JOB_COMPLETED,
     {.outcome = OUTCOME_EXITED},
     18,
     3000,
     24,
     24,
     "peaked at 2.9 GiB of 18.0 GiB declared: --vram 3300M would be enough"},
    {JOB_COMPLETED,
     {.outcome = OUTCOME_EXITED},
     4,
     6000,
     24,
     24,
     "peaked at 5.9 GiB of 4.0 GiB declared: --vram 6.4G is what it needs"},
    {JOB_FAILED,
     {.outcome = OUTCOME_EXITED, .code = 1},
     18,
     100,
     24,
     24,
     "berth logs 12 shows its output"},
    {JOB_FAILED,
     {.outcome = OUTCOME_EXITED, .code = 127},
     18,
     100,
     24,
     24,
     "the shell did not find the command; berth logs 12 shows its output"},
    {JOB_FAILED,
     {.outcome = OUTCOME_SIGNALED, .signal = 9},
     18,
     100,
     24,
     24,
     "Berth did not kill it: the kernel (out of memory?) or a person did; berth logs 12 shows "
     "its output"},
    {JOB_FAILED,
     {.outcome = OUTCOME_SIGNALED, .signal = 11},
     18,
     100,
     24,
     24,
     "berth logs 12 shows its output"},
    {JOB_FAILED,
     {.outcome = OUTCOME_EXITED, .code = 1},
     0,
     24200,
     24,
     24,
     "its memory was at the GPU's limit (23.6 GiB of 24.0 GiB): a smaller batch, or a larger "
     "GPU"},
    {JOB_FAILED,
     {.outcome = OUTCOME_NOT_STARTED, .errno_value = ENOENT},
     0,
     -1,
     24,
     24,
     "check the name of the program, its PATH and its folder"},
    {JOB_FAILED,
     {.outcome = OUTCOME_NOT_STARTED,
      .errno_value = EACCES,
      .text = "cannot open the log /a/b: Permission denied"},
     0,
     -1,
     24,
     24,
     "--log with a file that the job's user may write"},
    {JOB_FAILED,
     {.outcome = OUTCOME_NOT_STARTED, .errno_value = EACCES},
     0,
     -1,
     24,
     24,
     "is it executable (chmod +x), and may its user reach it?"},
    {JOB_OUT_OF_MEMORY,
     {.outcome = OUTCOME_EXITED, .code = 1, .oom = OOM_CUDA},
     12,
     12200,
     24,
     24,
     "peaked at 11.9 GiB of 12.0 GiB: --vram 15G or --oom-retries 2"},
    {JOB_OUT_OF_MEMORY,
     {.outcome = OUTCOME_EXITED, .code = 1, .oom = OOM_CUDA},
     24,
     24000,
     24,
     80,
     "peaked at 23.4 GiB of 24.0 GiB: --vram 30G or --oom-retries 2"},
    {JOB_OUT_OF_MEMORY,
     {.outcome = OUTCOME_EXITED, .code = 1, .oom = OOM_CUDA},
     22,
     22000,
     24,
     24,
     "peaked at 21.5 GiB of 22.0 GiB: a smaller batch, or more GPUs; no GPU here is larger"},
    {JOB_OUT_OF_MEMORY,
     {.outcome = OUTCOME_EXITED, .code = 1, .oom = OOM_CUDA},
     0,
     24000,
     24,
     80,
     "peaked at 23.4 GiB of 24.0 GiB: a larger GPU (--min-vram 80G; the largest here has "
     "80.0 GiB)"},
    {JOB_OUT_OF_MEMORY,
     {.outcome = OUTCOME_SIGNALED, .signal = 9, .oom = OOM_HOST},
     0,
     -1,
     24,
     24,
     "request what it needs with --mem"},
    {JOB_TIMEOUT,
     {.outcome = OUTCOME_TIMEOUT},
     0,
     -1,
     24,
     24,
     "--time 4h00m, or --on-timeout requeue if it can continue from a checkpoint; --signal "
     "USR2@60 warns it one minute before"},
    {JOB_LOST,
     {.outcome = OUTCOME_LOST},
     0,
     -1,
     24,
     24,
     "berth requeue 12 runs it again; with --requeue Berth does that itself"},
    {JOB_CANCELLED, {.outcome = OUTCOME_CANCELLED}, 0, -1, 24, 24, ""},
    {JOB_PREEMPTED, {.outcome = OUTCOME_PREEMPTED}, 0, -1, 24, 24, ""},
};

static void
test_endings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof end_rows / sizeof end_rows[0]; i++) {
        const struct end_row *r = &end_rows[i];
        auto_buf struct buf text = BUF_INIT;
        struct job *job = make(r->state, r->declared_gib);
        job->req.limit_ms = 2 * 3600 * 1000;
        job->run = xcalloc(1, sizeof *job->run);
        job->run->n_gpus = 1;
        job->run->peak_mib[0] = r->peak_mib;
        job->run->vram_mib = r->declared_gib * GIB;
        job->run->ending = r->ending;
        const struct advice_facts f = {.card_mib = r->card_gib * GIB,
                                       .largest_mib = r->largest_gib * GIB,
                                       .tolerance_permille = 100};
        advice_for_ended(job, &f, &text);
        assert_string_equal(buf_str(&text), r->text);
        job_free(job);
    }
}

struct wait_row {
    struct blocked why;
    int32_t declared_gib;
    const char *text;
};

static const struct wait_row wait_rows[] = {
    {{.reason = REASON_HELD}, 0, "berth release 12"},
    {{.reason = REASON_GPU_MEMORY, .gpu = 1, .free_mib = 12595, .margin_mib = 512},
     18,
     "--vram 11G would fit on gpu 1 now"},
    {{.reason = REASON_GPU_MEMORY, .gpu = 1, .free_mib = 1500, .margin_mib = 512},
     1,
     "--vram 988M would fit on gpu 1 now"},
    {{.reason = REASON_GPU_MEMORY, .gpu = 1, .free_mib = 6144, .margin_mib = 512}, 18, ""},
    {{.reason = REASON_GPU_MEMORY, .gpu = 1, .free_mib = 100, .margin_mib = 512}, 18, ""},
    {{.reason = REASON_GPU_MEMORY,
      .gpu = 1,
      .free_mib = -10,
      .margin_mib = 512,
      .by = BLOCKED_BY_STRANGER,
      .stranger_pid = 99},
     18,
     "end process 99, or ask its owner"},
    {{.reason = REASON_GPU_BUSY, .gpu = 0, .by = BLOCKED_BY_JOB, .holders[0] = {.id = 7}},
     0,
     "--vram SIZE lets it share a GPU with others"},
    {{.reason = REASON_GPU_BUSY, .gpu = 0, .guard = 'l', .guard_has = 930},
     8,
     "a higher --max-load"},
    {{.reason = REASON_GPU_BUSY, .gpu = 0, .guard = 'u', .guard_has = 930},
     8,
     "a higher --max-used"},
    {{.reason = REASON_GPU_SHARE, .gpu = 0, .share_left = 250},
     0,
     "a smaller --gpus share, or --vram without a share"},
    {{.reason = REASON_GPU_PAUSED, .gpu = 2, .gpu_state = GPU_PAUSED}, 0, "berth resume 2"},
    {{.reason = REASON_GPU_PAUSED, .gpu = 2, .gpu_state = GPU_UP},
     0,
     "'nvidia-smi -c DEFAULT', by root, lets processes in again"},
    {{.reason = REASON_GPU_SICK, .gpu = 2}, 0, "'berth gpus' says what is wrong with the GPU"},
    {{.reason = REASON_RESOURCES,
      .card_reason = REASON_GPU_PAUSED,
      .gpu = 3,
      .gpu_state = GPU_DRAINING},
     0,
     "berth resume 3"},
    {{.reason = REASON_DEPENDENCY, .waits_for.id = 11}, 0, "berth explain 11"},
    {{.reason = REASON_RESERVATION, .waits_for.id = 11},
     0,
     "with a time limit (--time) it could start before the reservation if it ends in time"},
    {{.reason = REASON_PROBE, .gpu = -1}, 0, "'berth doctor' says why the GPUs cannot be read"},
    {{.reason = REASON_CPUS, .gpu = -1}, 0, "fewer --cpus"},
    {{.reason = REASON_DISK, .gpu = -1},
     0,
     "free space on that disk, or repair it; then jobs start again"},
    {{.reason = REASON_MEMORY, .gpu = -1}, 0, "less --mem"},
    {{.reason = REASON_ARRAY_LIMIT, .gpu = -1}, 0, "a larger %N in --array"},
    {{.reason = REASON_PRIORITY, .gpu = -1}, 0, ""},
    {{.reason = REASON_USER_LIMIT, .gpu = -1}, 0, ""},
    {{.reason = REASON_BEGIN_TIME, .gpu = -1}, 0, ""},
};

static void
test_waits(void **state)
{
    (void)state;
    static const struct advice_facts none;
    for (size_t i = 0; i < sizeof wait_rows / sizeof wait_rows[0]; i++) {
        auto_buf struct buf text = BUF_INIT;
        struct job *job = make(JOB_PENDING, wait_rows[i].declared_gib);
        advice_for_waiting(job, &wait_rows[i].why, &none, &text);
        assert_string_equal(buf_str(&text), wait_rows[i].text);
        job_free(job);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_endings),
        cmocka_unit_test(test_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
