/* Why a job waits, in words: each situation is a row, from the machine's facts through a plan
 * to the sentence; and immediate refusals, with the nearest demand that would fit. */
#include "machine.h"

/* Two cards of 40 GiB and one of 15, on NUMA nodes of their own; 8 cores, 64,000 MiB. */
static struct ledger *
lab_new(void)
{
    static const struct gpu_info cards[] = {
        {.index = 0, .cc = 80, .total_mib = 40960, .name = "NVIDIA A100-SXM4-40GB"},
        {.index = 1, .cc = 80, .total_mib = 40960, .name = "NVIDIA A100-SXM4-40GB"},
        {.index = 2, .cc = 75, .total_mib = 15360, .name = "Tesla T4"},
    };
    struct ledger *l = ledger_new(NULL);
    for (int i = 0; i < 3; i++) {
        ledger_add_card(l, &cards[i]);
        machine_sample(l, i, 0, NULL, 0, 1);
    }
    ledger_set_known(l);
    ledger_set_host(l, 8, 64000);
    ledger_set_wall_offset(l, 1767225600000000); /* 2026-01-01T00:00:00Z */
    return l;
}

/* Puts the machine into the row's state. */

static void
all_whole(struct ledger *l)
{
    for (int i = 0; i < 3; i++)
        book(l, 11 + (uint32_t)i, i, 0);
}

static void
one_left(struct ledger *l)
{
    book(l, 11, 0, 0);
    book(l, 12, 1, 0);
}

static void
thirty_on_each(struct ledger *l)
{
    book(l, 11, 0, 30720);
    book(l, 12, 1, 30720);
    book(l, 13, 2, 12288);
}

static void
three_on_one(struct ledger *l)
{
    thirty_on_each(l);
    book(l, 14, 0, 2048);
    book(l, 15, 1, 1024);
    book(l, 16, 1, 1024);
    book(l, 17, 1, 512);
}

static void
shares(struct ledger *l)
{
    book_share(l, 3, 0, 1000, 1024);
    book_share(l, 4, 1, 500, 1024);
    book_share(l, 7, 1, 250, 1024);
    book(l, 8, 1, 1024);
    book_share(l, 9, 2, 900, 1024);
}

static void
half_of_the_memory(struct ledger *l)
{
    for (int i = 0; i < 3; i++)
        book(l, 11 + (uint32_t)i, i, i == 2 ? 10240 : 25600);
}

static void
strangers_idle_not(struct ledger *l)
{
    for (int i = 0; i < 3; i++)
        machine_stranger(l, i, 4711 + i, 2000 + i, 2);
}

static void
stranger_is_large(struct ledger *l)
{
    for (int i = 0; i < 3; i++)
        machine_stranger(l, i, 4711 + i, i == 2 ? 12000 : 32000, 2);
}

static void
loaded(struct ledger *l)
{
    for (int i = 0; i < 3; i++) {
        struct gpu_sample s = {1000 * (i + 1), 95 - i, 60, NULL, 0, NULL, 0, 0};
        ledger_sample(l, i, &s, 2, NULL, NULL);
    }
}

static void
full_of_others_memory(struct ledger *l)
{
    machine_sample(l, 0, 30000, NULL, 0, 2);
    machine_sample(l, 1, 35000, NULL, 0, 2);
    machine_sample(l, 2, 14000, NULL, 0, 2);
}

static void
paused(struct ledger *l)
{
    for (int i = 0; i < 3; i++)
        ledger_set_admin(l, i, GPU_PAUSED, 60000000);
}

static void
draining_and_busy(struct ledger *l)
{
    ledger_set_admin(l, 0, GPU_DRAINING, 60000000);
    ledger_set_admin(l, 1, GPU_DRAINING, 60000000);
    book(l, 5, 2, 0);
}

static void
sick(struct ledger *l)
{
    ledger_set_sick(l, 0, 79, "the card has fallen off the bus", 60000000);
    ledger_set_sick(l, 1, 0, "another daemon has it", 60000000);
    ledger_set_admin(l, 2, GPU_PAUSED, 60000000);
}

static void
lost(struct ledger *l)
{
    for (int i = 0; i < 3; i++)
        ledger_set_health(l, i, GPU_LOST, 3600000000);
}

static void
silent(struct ledger *l)
{
    for (int i = 0; i < 3; i++)
        ledger_set_health(l, i, GPU_UNKNOWN, 3600000000);
}

static void
cores_taken(struct ledger *l)
{
    struct demand d = want(0, 0);
    d.cpus = 6;
    d.mem_mib = 60000;
    ledger_hold(l, 21, &d, NULL, 0);
}

static void
nothing_known_of_memory(struct ledger *l)
{
    for (int i = 0; i < 3; i++) {
        machine_sample(l, i, -1, NULL, -1, 2);
        book(l, 11 + (uint32_t)i, i, 1000);
    }
}

static void
over_its_demand(struct ledger *l)
{
    book(l, 11, 0, 8192);
    struct gpu_proc p = {.pid = 10, .mib = 36000, .job = 11};
    machine_sample(l, 0, 36000, &p, 1, 2);
}

#define GPUS(n)                                                                                \
    {                                                                                          \
        .gpus = (n), .margin_mib = -1                                                          \
    }

static const struct row {
    void (*make)(struct ledger *l);
    struct demand demand;
    const char *words;
} rows[] = {
    {all_whole, GPUS(1), "GpuBusy: wants an idle GPU; gpu 0 is held by job 11"},
    {one_left, GPUS(2),
     "Resources: wants 2 idle GPUs; 1 of them has room; gpu 0 is held by job 11"},
    {all_whole,
     {.gpus = 1, .margin_mib = -1, .gpu_type = "t4"},
     "GpuBusy: wants an idle GPU called 't4'; gpu 2 is held by job 13"},
    {all_whole,
     {.gpus = 1, .margin_mib = -1, .min_cc = 80},
     "GpuBusy: wants an idle GPU of compute capability 8.0 or more; gpu 0 is held by job 11"},
    {all_whole,
     {.gpus = 1, .margin_mib = -1, .min_vram_mib = 20480},
     "GpuBusy: wants an idle GPU of 20.0 GiB or more; gpu 0 is held by job 11"},
    {all_whole,
     {.gpus = 1, .margin_mib = -1, .devices = 6},
     "GpuBusy: wants an idle GPU among gpus 1,2; gpu 1 is held by job 12"},
    {all_whole,
     {.gpus = 1, .margin_mib = -1, .n_ids = 1, .ids = {1}},
     "GpuBusy: wants gpu 1 idle; gpu 1 is held by job 12"},
    {thirty_on_each,
     {.gpus = 1, .margin_mib = -1, .vram_mib = 12288},
     "GpuMemory: needs 12.0 GiB + 512 MiB margin on one GPU; gpu 0 has 10.0 GiB free (2.5 GiB "
     "short), held by job 11"},
    {thirty_on_each,
     {.gpus = 1, .margin_mib = 4096, .vram_mib = 8192},
     "GpuMemory: needs 8.0 GiB + 4.0 GiB margin on one GPU; gpu 0 has 10.0 GiB free (2.0 GiB "
     "short), held by job 11"},
    {three_on_one,
     {.gpus = 1, .margin_mib = -1, .vram_mib = 12288, .devices = 1},
     "GpuMemory: needs 12.0 GiB + 512 MiB margin on one GPU among gpu 0; gpu 0 has 8.0 GiB "
     "free "
     "(4.5 GiB short), held by jobs 11 and 14"},
    {three_on_one,
     {.gpus = 1, .margin_mib = -1, .vram_mib = 12288, .devices = 2},
     "GpuMemory: needs 12.0 GiB + 512 MiB margin on one GPU among gpu 1; gpu 1 has 7.5 GiB "
     "free "
     "(5.0 GiB short), held by jobs 12, 15, 16 and 1 more"},
    {over_its_demand,
     {.gpus = 1, .margin_mib = -1, .vram_mib = 8192, .devices = 1},
     "GpuMemory: needs 8.0 GiB + 512 MiB margin on one GPU among gpu 0; gpu 0 has 1.3 GiB free "
     "(7.2 GiB short), held by job 11"},
    {stranger_is_large,
     {.gpus = 2, .margin_mib = -1, .vram_mib = 8192},
     "GpuMemory: needs 8.0 GiB + 512 MiB margin on each of 2 GPUs; gpu 0 has 5.6 GiB free (2.9 "
     "GiB short), 34.4 GiB in use outside Berth (pid 4711)"},
    {strangers_idle_not, GPUS(1),
     "GpuBusy: wants an idle GPU; gpu 0 has 2.1 GiB in use outside Berth (pid 4711)"},
    {half_of_the_memory,
     {.gpus = 1, .margin_mib = -1, .share_permille = 500},
     "GpuMemory: needs 0.5 of a GPU (20.0 GiB there); gpu 0 has 15.0 GiB free (5.0 GiB short), "
     "held by job 11"},
    {shares,
     {.gpus = 1, .margin_mib = -1, .share_permille = 500},
     "GpuShare: needs 0.5 of a GPU (20.0 GiB there); gpu 1 has 0.25 left, held by jobs 4 and "
     "7"},
    {shares,
     {.gpus = 1, .margin_mib = -1, .share_permille = 335, .vram_mib = 2048},
     "GpuShare: needs 0.335 of a GPU with 2.0 GiB + 512 MiB margin; gpu 1 has 0.25 left, held "
     "by jobs 4 and 7"},
    {shares,
     {.gpus = 1, .margin_mib = -1, .share_permille = 100, .n_ids = 1, .ids = {0}},
     "GpuShare: needs 0.1 of gpu 0 (4.0 GiB there); gpu 0 has none left, held by job 3"},
    {shares,
     {.gpus = 1, .margin_mib = -1, .vram_mib = 1024, .exclusive = 1},
     "GpuBusy: needs 1.0 GiB + 512 MiB margin on one GPU, alone; gpu 0 is held by job 3"},
    {loaded,
     {.gpus = 1, .margin_mib = -1, .vram_mib = 1024, .max_load_permille = 800},
     "GpuBusy: needs 1.0 GiB + 512 MiB margin on one GPU; gpu 2 is 93 % busy; the job wants "
     "below 80 %"},
    {full_of_others_memory,
     {.gpus = 1, .margin_mib = -1, .vram_mib = 512, .max_used_permille = 505},
     "GpuBusy: needs 512 MiB + 512 MiB margin on one GPU; gpu 0 has 73.2 % of its memory in "
     "use; the job wants below 50.5 %"},
    {paused, GPUS(1),
     "GpuPaused: wants an idle GPU; gpu 0 is paused since 2026-01-01T00:01:00Z"},
    {draining_and_busy,
     {.gpus = 1, .margin_mib = -1, .gpu_type = "a100"},
     "GpuPaused: wants an idle GPU called 'a100'; gpu 0 is draining since "
     "2026-01-01T00:01:00Z"},
    {draining_and_busy, GPUS(1), "GpuBusy: wants an idle GPU; gpu 2 is held by job 5"},
    {sick,
     {.gpus = 1, .margin_mib = -1, .n_ids = 1, .ids = {0}},
     "GpuSick: wants gpu 0 idle; gpu 0 is sick since 2026-01-01T00:01:00Z: XID 79: the "
     "card "
     "has fallen off the bus"},
    {sick,
     {.gpus = 1, .margin_mib = -1, .vram_mib = 1024, .n_ids = 1, .ids = {1}},
     "GpuSick: needs 1.0 GiB + 512 MiB margin on gpu 1; gpu 1 is sick since "
     "2026-01-01T00:01:00Z: another daemon has it"},
    {lost, GPUS(1), "GpuSick: wants an idle GPU; gpu 0 is lost since 2026-01-01T01:00:00Z"},
    {silent, GPUS(1), "Probe: no recent data from gpu 0 since 2026-01-01T01:00:00Z"},
    {cores_taken, {.gpus = 1, .margin_mib = -1, .cpus = 3}, "Cpus: needs 3 cores; 2 are free"},
    {cores_taken,
     {.gpus = 0, .margin_mib = -1, .mem_mib = 8192},
     "Memory: needs 8.0 GiB of host memory; 3.9 GiB are free"},
    {nothing_known_of_memory,
     {.gpus = 1, .margin_mib = -1, .vram_mib = 1000},
     "GpuBusy: needs 1000 MiB + 512 MiB margin on one GPU; gpu 0 is held by job 11"},
};

static void
test_cards_and_host_in_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ledger *l = lab_new();
        struct queue *q = queue_new();
        auto_plan struct plan p = PLAN_INIT;
        auto_buf struct buf text = BUF_INIT;
        rows[i].make(l);
        queue_add(q, new_job(99, rows[i].demand));
        plan_once(q, l, 1, &p);
        assert_int_equal(p.n, 0);
        plan_explain_text(q, queue_get(q, 99), &text);
        assert_string_equal(buf_str(&text), rows[i].words);
        assert_null(ledger_check(l));
        queue_free(q);
        ledger_free(l);
    }
}

/* What the plan, the queue and the daemon record. */
static const struct plan_row {
    struct blocked why;
    const char *words;
} plan_rows[] = {
    {{.reason = REASON_PRIORITY, .gpu = -1}, "Priority: its turn has not come yet"},
    {{.reason = REASON_PRIORITY, .gpu = -1, .ahead.id = 4},
     "Priority: its turn has not come yet; job 4, with the same request, is first"},
    {{.reason = REASON_HELD, .gpu = -1}, "Held: held by a user; 'berth release' releases it"},
    {{.reason = REASON_BEGIN_TIME, .gpu = -1, .until_us = 1767225600000000},
     "BeginTime: not before 2026-01-01T00:00:00Z"},
    {{.reason = REASON_BEGIN_TIME, .gpu = -1, .until_us = 1767225600000000, .failed = 2},
     "BeginTime: pause after attempt 2, which failed; attempt 3 not before "
     "2026-01-01T00:00:00Z"},
    {{.reason = REASON_DEPENDENCY, .gpu = -1, .waits_for.id = 12},
     "Dependency: waits for job 12 to succeed"},
    {{.reason = REASON_DEPENDENCY,
      .gpu = -1,
      .waits_for.id = 12,
      .waits_how = DEP_ANY,
      .waits_more = 2},
     "Dependency: waits for job 12 to end, and for 2 more"},
    {{.reason = REASON_DEPENDENCY, .gpu = -1, .waits_for.id = 12, .waits_how = DEP_FAILED},
     "Dependency: waits for job 12 to fail"},
    {{.reason = REASON_RESERVATION, .gpu = -1, .waits_for.id = 5, .until_us = 1767225600000000},
     "Reservation: would delay job 5, which is expected to start at 2026-01-01T00:00:00Z"},
    {{.reason = REASON_RESERVATION, .gpu = -1, .waits_for.id = 5, .until_us = INT64_MAX},
     "Reservation: would delay job 5, for which GPUs are reserved"},
    {{.reason = REASON_ARRAY_LIMIT, .gpu = -1, .limit = 8},
     "ArrayLimit: 8 tasks of the array run, the maximum at the same time"},
    {{.reason = REASON_ARRAY_LIMIT, .gpu = -1, .limit = 1},
     "ArrayLimit: 1 task of the array runs, the maximum at the same time"},
    {{.reason = REASON_USER_LIMIT, .gpu = -1, .limit = 4, .limit_of = 'r'},
     "UserLimit: would exceed the user's limit of 4 running jobs"},
    {{.reason = REASON_USER_LIMIT, .gpu = -1, .limit = 1, .limit_of = 'g'},
     "UserLimit: would exceed the user's limit of 1 GPU"},
    {{.reason = REASON_QUEUE_LIMIT, .gpu = -1, .limit = 40960, .limit_of = 'v'},
     "QueueLimit: would exceed the limit for all users of 40.0 GiB of VRAM"},
    {{.reason = REASON_PROBE, .gpu = -1}, "Probe: the GPUs have not been read yet"},
    {{.reason = REASON_DISK, .gpu = -1, .trouble = "/x: no space is left"},
     "Disk: no job can be started, because nothing can be written: /x: no space is left"},
    {{.reason = REASON_NONE, .gpu = -1}, ""},
};

static void
test_the_plans_reasons_in_words(void **state)
{
    (void)state;
    struct demand d = want(1, 0);
    for (size_t i = 0; i < sizeof plan_rows / sizeof *plan_rows; i++) {
        auto_buf struct buf text = BUF_INIT;
        blocked_text(&plan_rows[i].why, &d, &text);
        blocked_text_ahead(&plan_rows[i].why, &text);
        assert_string_equal(buf_str(&text), plan_rows[i].words);
    }
}

static const struct never_row {
    struct demand demand;
    const char *words;
} never_rows[] = {
    {{.gpus = 1, .margin_mib = -1, .gpu_type = "h100"},
     "no GPU here is called 'h100'; there are NVIDIA A100-SXM4-40GB (gpus 0,1) and Tesla T4 "
     "(gpu 2)"},
    {{.gpus = 1, .margin_mib = -1, .gpu_type = "t4", .devices = 3},
     "none of gpus 0,1 is called 't4'; there are NVIDIA A100-SXM4-40GB (gpus 0,1)"},
    {{.gpus = 1, .margin_mib = -1, .gpu_type = "a100", .devices = 4},
     "gpu 2 is 'Tesla T4', not 'a100'"},
    {{.gpus = 2, .margin_mib = -1, .gpu_type = "a100", .n_ids = 2, .ids = {2, 0}},
     "gpu 2 is 'Tesla T4', not 'a100'"},
    {{.gpus = 3, .margin_mib = -1, .gpu_type = "a100"},
     "needs 3 GPUs, but only 2 called 'a100' are usable; request at most 2"},
    {{.gpus = 1, .margin_mib = -1, .min_cc = 90},
     "no GPU here has compute capability 9.0; the highest, of gpu 0, is 8.0"},
    {{.gpus = 1, .margin_mib = -1, .min_vram_mib = 81920},
     "no GPU here has 80.0 GiB; the largest, gpu 0, has 40.0 GiB"},
    {{.gpus = 1, .margin_mib = -1, .min_vram_mib = 81920, .gpu_type = "nvidia"},
     "no GPU here called 'nvidia' has 80.0 GiB; the largest, gpu 0, has 40.0 GiB"},
    {{.gpus = 1, .margin_mib = -1, .min_vram_mib = 20480, .gpu_type = "t4"},
     "gpu 2 has 15.0 GiB, not 20.0 GiB"},
    {{.gpus = 1, .margin_mib = -1, .min_vram_mib = 20480, .n_ids = 2, .ids = {0, 2}},
     "gpu 2 has 15.0 GiB, not 20.0 GiB"},
    {{.gpus = 3, .margin_mib = -1, .min_vram_mib = 20480},
     "needs 3 GPUs, but only 2 with 20.0 GiB are usable; request at most 2"},
    {{.gpus = 2, .margin_mib = -1, .share_permille = 500},
     "a share is a fraction of one GPU, but 2 are requested; request one, or whole GPUs"},
    {{.gpus = 0, .margin_mib = -1, .share_permille = 500},
     "a share is a fraction of one GPU, but no GPU is requested; request one, or omit the "
     "share"},
    {{.gpus = 1, .margin_mib = -1, .share_permille = 500, .vram_mib = 65536},
     "needs 64.0 GiB + 512 MiB margin on one GPU, but the largest has 40.0 GiB; request at "
     "most 39.5 GiB"},
    {{.gpus = 1, .margin_mib = 20481, .share_permille = 500},
     "needs 20.0 GiB free beside its share of a GPU, but the largest has 40.0 GiB; request a "
     "margin of at most 20.0 GiB"},
    {{.gpus = 1, .margin_mib = 10240, .vram_mib = 32768},
     "needs 32.0 GiB + 10.0 GiB margin on one GPU, but the largest has 40.0 GiB; request at "
     "most 30.0 GiB"},
    {{.gpus = 1, .margin_mib = -1, .vram_mib = 20480, .gpu_type = "t4"},
     "needs 20.0 GiB + 512 MiB margin on one GPU, but the largest has 15.0 GiB; request at "
     "most 14.5 GiB"},
    {{.gpus = 3, .margin_mib = -1, .vram_mib = 20480},
     "needs 20.0 GiB + 512 MiB margin on each of 3 GPUs, but the 3 largest have 15.0 GiB or "
     "less; request at most 14.5 GiB"},
    {{.gpus = 4, .margin_mib = -1}, "needs 4 GPUs, but only 3 are usable; request at most 3"},
    {{.gpus = 1, .margin_mib = -1, .n_ids = 1, .ids = {3}},
     "gpu 3 does not exist here; there are 0-2"},
    {{.gpus = 1, .margin_mib = -1, .devices = 1U << 9},
     "needs 1 GPU, but gpu 9 does not exist here; there are 0-2"},
    {{.gpus = 0, .margin_mib = -1, .cpus = 9}, "needs 9 cores, but this machine has 8"},
    {{.gpus = 0, .margin_mib = -1, .mem_mib = 65536},
     "needs 64.0 GiB of host memory, but this machine has 62.5 GiB"},
};

static void
test_what_can_never_start_in_words(void **state)
{
    (void)state;
    struct ledger *l = lab_new();
    for (size_t i = 0; i < sizeof never_rows / sizeof *never_rows; i++) {
        auto_buf struct buf text = BUF_INIT;
        assert_false(place_feasible(&never_rows[i].demand, l, &text));
        assert_string_equal(buf_str(&text), never_rows[i].words);
    }
    ledger_free(l);
}

/* Whatever place_feasible accepts starts on an empty machine, and what it refuses does not. */
static void
test_feasible_is_what_an_empty_machine_takes(void **state)
{
    (void)state;
    static const int32_t vram[] = {0, 1, 14848, 14849, 40448, 40449};
    static const int32_t margins[] = {-1, 0, 512, 20480, 20481};
    static const int32_t sizes[] = {0, 15360, 15675, 40960, 41795, 41797};
    static const char *const types[] = {"", "t4", "a100", "h100"};
    struct ledger *l = lab_new();
    int agreed[2] = {0, 0};
    for (int i = 0; i < 6 * 5 * 6 * 4 * 4 * 4; i++) {
        struct demand d = want(i % 4, vram[i / 4 % 6]);
        d.share_permille = d.gpus == 1 ? i / 24 % 4 * 300 : 0;
        d.margin_mib = margins[i / 96 % 5];
        d.min_vram_mib = sizes[i / 480 % 6];
        snprintf(d.gpu_type, sizeof d.gpu_type, "%s", types[i / 2880 % 4]);
        struct placement p;
        bool feasible = place_feasible(&d, l, NULL);
        assert_int_equal(place_job(&d, l, &p, NULL), feasible);
        agreed[feasible]++;
    }
    assert_true(agreed[0] > 1000 && agreed[1] > 1000);
    ledger_free(l);
}

/* The numbers for scripts agree with the sentence. */
static void
test_numbers_behind_the_words(void **state)
{
    (void)state;
    struct ledger *l = lab_new();
    struct demand d = want_share(500, 0);
    struct placement p;
    struct blocked why;
    shares(l);
    assert_false(place_job(&d, l, &p, &why));
    assert_int_equal(why.reason, REASON_GPU_SHARE);
    assert_int_equal(why.gpu, 1);
    assert_int_equal(why.share_left, 250);
    assert_int_equal(why.n_holders, 2);
    assert_int_equal(why.holders[0].id, 4);
    assert_int_equal(why.by, BLOCKED_BY_JOB);
    assert_int_equal(why.need_mib, 20480);
    ledger_free(l);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cards_and_host_in_words),
        cmocka_unit_test(test_the_plans_reasons_in_words),
        cmocka_unit_test(test_what_can_never_start_in_words),
        cmocka_unit_test(test_feasible_is_what_an_empty_machine_takes),
        cmocka_unit_test(test_numbers_behind_the_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
