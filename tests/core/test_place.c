/* Placing one job: the chosen GPUs, or the reason and the sentence. */
#include "machine.h"

/* "0,1" if it is placed there, else the reason's name. */
static const char *
where(const struct ledger *l, struct demand d)
{
    static char text[128];
    struct placement p;
    struct blocked why;
    if (!place_job(&d, l, &p, &why))
        return reason_name(why.reason);
    text[0] = '\0';
    for (int i = 0; i < p.n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i ? "," : "",
                 p.gpus[i]);
    return text;
}

static void
expect_words(const struct ledger *l, struct demand d, const char *words)
{
    auto_buf struct buf text = BUF_INIT;
    struct placement p;
    struct blocked why;
    assert_false(place_job(&d, l, &p, &why));
    blocked_text(&why, &d, &text);
    assert_string_equal(buf_str(&text), words);
}

static void
expect_infeasible(const struct ledger *l, struct demand d, const char *words)
{
    auto_buf struct buf text = BUF_INIT;
    assert_false(place_feasible(&d, l, &text));
    assert_false(place_feasible(&d, l, NULL));
    assert_string_equal(buf_str(&text), words);
}

/* GPUs with 24,000 and 8,000 MiB of headroom; 6,000 takes the 8,000. */
static void
test_smallest_sufficient_headroom(void **state)
{
    (void)state;
    struct ledger *l = machine_new(2, 24000);
    book(l, 1, 1, 16000);
    assert_int_equal(ledger_card(l, 1)->headroom_mib, 8000);
    assert_string_equal(where(l, want(1, 6000)), "1");
    assert_string_equal(where(l, want(1, 7488)), "1");
    assert_string_equal(where(l, want(1, 7489)), "0");
    assert_string_equal(where(l, want(1, 23488)), "0");
    assert_string_equal(where(l, want(1, 23489)), "GpuMemory");
    ledger_free(l);
}

static void
test_ties_take_the_lowest_index(void **state)
{
    (void)state;
    struct ledger *l = machine_new(4, CARD_MIB);
    assert_string_equal(where(l, want(1, 1000)), "0");
    assert_string_equal(where(l, want(1, 0)), "0");
    assert_string_equal(where(l, want(2, 1000)), "0,1");
    ledger_free(l);
}

/* Two jobs of 8G share GPU 0, 20G goes to GPU 1. */
static void
test_three_jobs_on_two_cards(void **state)
{
    (void)state;
    struct ledger *l = machine_new(2, CARD_MIB);
    assert_string_equal(where(l, want(1, 8192)), "0");
    book(l, 1, 0, 8192);
    assert_string_equal(where(l, want(1, 8192)), "0");
    book(l, 2, 0, 8192);
    assert_string_equal(where(l, want(1, 20480)), "1");
    ledger_free(l);
}

static void
test_two_of_14g_never_share_24g(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    book(l, 1, 0, 14336);
    assert_string_equal(where(l, want(1, 14336)), "GpuMemory");
    ledger_free(l);
}

static void
test_small_stranger_does_not_block_a_card(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    machine_stranger(l, 0, 99, 642, 2);
    assert_string_equal(where(l, want(1, 0)), "0");
    machine_stranger(l, 0, 99, 930, 3);
    assert_string_equal(where(l, want(1, 0)), "0"); /* 1,023 with the buffer */
    machine_stranger(l, 0, 99, 931, 4);
    assert_string_equal(where(l, want(1, 0)), "GpuBusy");
    ledger_free(l);
}

static void
test_growing_stranger_stops_placing(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    machine_stranger(l, 0, 99, 4000, 2);
    assert_string_equal(where(l, want(1, 18000)), "0");
    machine_stranger(l, 0, 99, 6000, 3);
    assert_string_equal(where(l, want(1, 18000)), "GpuMemory");
    expect_words(l, want(1, 18000),
                 "GpuMemory: needs 17.6 GiB + 512 MiB margin on one GPU; gpu 0 has 17.6 GiB "
                 "free (536 MiB short), 6.4 GiB in use outside Berth (pid 99)");
    ledger_free(l);
}

static void
test_whole_jobs_are_alone(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    book(l, 1, 0, 0);
    assert_string_equal(where(l, want(1, 0)), "GpuBusy");
    assert_string_equal(where(l, want(1, 100)), "GpuBusy");
    ledger_release(l, 1);
    book(l, 2, 0, 100);
    assert_string_equal(where(l, want(1, 0)), "GpuBusy");
    assert_string_equal(where(l, want(1, 100)), "0");
    ledger_free(l);
}

static void
test_exclusive_counts_strangers_by_memory_only(void **state)
{
    (void)state;
    struct ledger *l = machine_new(2, CARD_MIB);
    struct demand d = want(1, 8000);
    d.exclusive = 1;
    book(l, 1, 0, 1000);
    machine_stranger(l, 1, 99, 5000, 2);
    assert_string_equal(where(l, d), "1");
    uint8_t gpu = 1;
    ledger_hold(l, 2, &d, &gpu, 1);
    assert_string_equal(where(l, d), "GpuBusy");
    assert_string_equal(where(l, want(1, 100)), "0");
    ledger_free(l);
}

static void
test_exact_ids_in_their_order(void **state)
{
    (void)state;
    struct ledger *l = machine_new(4, CARD_MIB);
    struct demand d = want(2, 8000);
    d.n_ids = 2;
    d.ids[0] = 3;
    d.ids[1] = 1;
    assert_string_equal(where(l, d), "3,1");
    book(l, 1, 1, 20000);
    assert_string_equal(where(l, d), "Resources");
    expect_words(l, d,
                 "Resources: needs 7.8 GiB + 512 MiB margin on each of gpus 3,1; 1 of them has "
                 "room; gpu 1 has 4.5 GiB free (3.8 GiB short), held by job 1");
    ledger_free(l);
}

static void
test_devices_bound_the_choice(void **state)
{
    (void)state;
    struct ledger *l = machine_new(4, CARD_MIB);
    struct demand d = want(1, 8000);
    d.devices = 1U << 2 | 1U << 3;
    assert_string_equal(where(l, d), "2");
    book(l, 1, 2, 0);
    book(l, 2, 3, 0);
    assert_string_equal(where(l, d), "GpuBusy");
    ledger_free(l);
}

static void
test_several_cards_pack(void **state)
{
    (void)state;
    struct ledger *l = machine_new(4, CARD_MIB);
    book(l, 1, 1, 4000);
    book(l, 2, 3, 8000);
    assert_string_equal(where(l, want(2, 10240)), "1,3");
    assert_string_equal(where(l, want(3, 10240)), "0,1,3");
    assert_string_equal(where(l, want(2, 0)), "0,2");
    assert_string_equal(where(l, want(3, 0)), "Resources");
    ledger_free(l);
}

static void
test_spread_takes_the_largest(void **state)
{
    (void)state;
    struct ledger_policy policy;
    ledger_policy_init(&policy);
    policy.spread = true;
    struct ledger *l = ledger_new(&policy);
    for (int i = 0; i < 3; i++) {
        struct gpu_info info = {.index = i, .numa = -1, .total_mib = CARD_MIB};
        ledger_add_card(l, &info);
        machine_sample(l, i, 0, NULL, 0, 1);
    }
    book(l, 1, 0, 1000);
    assert_string_equal(where(l, want(1, 1000)), "1");
    book(l, 2, 1, 2000);
    assert_string_equal(where(l, want(2, 1000)), "0,2");
    ledger_free(l);
}

static void
test_a_request_may_name_the_rule(void **state)
{
    (void)state;
    struct ledger *l = machine_new(3, CARD_MIB);
    struct demand d = want(1, 1000);
    book(l, 1, 1, 2000);
    book(l, 2, 2, 1000);
    assert_string_equal(where(l, d), "1");
    d.placement = PLACING_SPREAD;
    assert_string_equal(where(l, d), "0");
    book(l, 3, 0, 4000);
    assert_string_equal(where(l, d), "2");
    d.placement = PLACING_FIRST;
    assert_string_equal(where(l, d), "0");
    d.placement = PLACING_PACK;
    assert_string_equal(where(l, d), "0");
    ledger_free(l);
}

static void
test_a_request_may_say_what_idle_is(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    struct demand d = want(1, 0);
    machine_sample(l, 0, 200, NULL, 0, 1);
    assert_string_equal(where(l, d), "0");
    d.idle_mib = 200;
    assert_string_equal(where(l, d), "GpuBusy");
    d.idle_mib = 201;
    assert_string_equal(where(l, d), "0");
    ledger_free(l);
}

static void
test_joined_cards_are_preferred(void **state)
{
    (void)state;
    struct ledger *l = machine_new(6, CARD_MIB);
    ledger_link(l, 1, 4);
    ledger_link(l, 2, 3);
    ledger_link(l, 2, 5);
    ledger_link(l, 3, 5);
    assert_string_equal(where(l, want(1, 1000)), "0");
    assert_string_equal(where(l, want(2, 1000)), "1,4");
    assert_string_equal(where(l, want(3, 1000)), "2,3,5");
    assert_string_equal(where(l, want(5, 1000)), "1,2,3,4,5");
    book(l, 1, 4, 0);
    assert_string_equal(where(l, want(2, 1000)), "2,3");
    ledger_free(l);
}

static void
test_numa_comes_after_links(void **state)
{
    (void)state;
    struct ledger *l = machine_new(4, CARD_MIB);
    static const int numa[] = {0, 1, 0, 1};
    for (int i = 0; i < 4; i++) {
        struct gpu_info info = ledger_card(l, i)->info;
        info.numa = numa[i];
        ledger_set_info(l, i, &info);
    }
    assert_string_equal(where(l, want(2, 1000)), "0,2");
    book(l, 1, 1, 500);
    assert_string_equal(where(l, want(2, 1000)), "1,3");
    ledger_link(l, 2, 3);
    assert_string_equal(where(l, want(2, 1000)), "2,3");
    ledger_free(l);
}

/* GPUs on these NUMA nodes, one digit per GPU. */
static struct ledger *
machine_on_nodes(const char *nodes)
{
    struct ledger *l = machine_new((int)strlen(nodes), CARD_MIB);
    for (int i = 0; nodes[i]; i++) {
        struct gpu_info info = ledger_card(l, i)->info;
        info.numa = nodes[i] - '0';
        ledger_set_info(l, i, &info);
    }
    return l;
}

static void
test_fewest_nodes(void **state)
{
    (void)state;
    struct ledger *l = machine_on_nodes("01200112");
    assert_string_equal(where(l, want(3, 0)), "0,3,4");   /* all of node 0 */
    assert_string_equal(where(l, want(4, 0)), "0,2,3,4"); /* two nodes, using up node 0 */
    book(l, 1, 3, 0);
    assert_string_equal(where(l, want(3, 0)), "1,5,6");
    assert_string_equal(where(l, want(4, 0)), "0,2,4,7"); /* two whole nodes */
    ledger_free(l);
}

/* Of choices equally good for the job, the one that leaves most for others is taken. */
static void
test_what_is_left(void **state)
{
    (void)state;
    struct ledger *l = machine_new(6, CARD_MIB);
    for (int i = 0; i < 6; i += 2)
        ledger_link(l, i, i + 1);
    assert_string_equal(where(l, want(1, 0)), "0");
    book(l, 1, 4, 0);
    assert_string_equal(where(l, want(1, 0)), "5"); /* its pair is already split */
    assert_string_equal(where(l, want(1, 1000)), "5");
    assert_string_equal(where(l, want(3, 0)), "0,1,5");
    struct demand first = want(1, 0);
    first.placement = PLACING_FIRST;
    assert_string_equal(where(l, first), "0"); /* as the job asked */
    first.placement = PLACING_SPREAD;
    assert_string_equal(where(l, first), "0");
    book(l, 2, 1, 2000);
    assert_string_equal(where(l, want(1, 1000)), "1"); /* pack comes first where jobs share */
    ledger_free(l);
    l = machine_on_nodes("000111");
    assert_string_equal(where(l, want(1, 0)), "0");
    book(l, 1, 4, 0);
    assert_string_equal(where(l, want(1, 0)), "3");
    assert_string_equal(where(l, want(2, 0)), "3,5");
    ledger_free(l);
}

static struct demand
want_cores(int gpus, int cpus)
{
    struct demand d = want(gpus, 0);
    d.cpus = cpus;
    return d;
}

/* GPUs near free cores, so that the job can be bound to them. */
static void
test_free_cores_decide(void **state)
{
    (void)state;
    struct ledger *l = machine_on_nodes("000111");
    ledger_set_node(l, 0, 8);
    ledger_set_node(l, 1, 8);
    struct demand six = want_cores(1, 6);
    ledger_hold(l, 1, &six, (const uint8_t[]){0}, 1);
    assert_string_equal(where(l, want_cores(1, 2)), "1");
    assert_string_equal(where(l, want_cores(1, 3)), "3");
    assert_string_equal(where(l, want_cores(2, 3)), "3,4");
    assert_string_equal(where(l, want_cores(2, 9)), "1,2"); /* as without cores */
    struct demand d = want_cores(1, 3);
    d.cpu_bind = CPU_BIND_OFF;
    assert_string_equal(where(l, d), "1");
    d.cpu_bind = CPU_BIND_AUTO;
    ledger_link(l, 1, 2);
    assert_string_equal(where(l, want_cores(2, 3)), "1,2"); /* NVLink comes first */
    d.placement = PLACING_FIRST;
    assert_string_equal(where(l, d), "1");
    ledger_free(l);
}

/* GPUs 0-3 with 8.0, 8.6, 9.0 and none. */
static struct ledger *
machine_of_ages(void)
{
    static const int cc[] = {80, 86, 90, 0};
    struct ledger *l = machine_new(4, CARD_MIB);
    for (int i = 0; i < 4; i++) {
        struct gpu_info info = ledger_card(l, i)->info;
        info.cc = cc[i];
        snprintf(info.name, sizeof info.name, "%s", i < 2 ? "Old" : "New");
        ledger_set_info(l, i, &info);
    }
    return l;
}

static struct demand
want_cc(int gpus, int cc)
{
    struct demand d = want(gpus, 1000);
    d.min_cc = (uint8_t)cc;
    return d;
}

static void
test_compute_capability(void **state)
{
    (void)state;
    struct ledger *l = machine_of_ages();
    assert_string_equal(where(l, want_cc(1, 80)), "0");
    assert_string_equal(where(l, want_cc(1, 81)), "1");
    assert_string_equal(where(l, want_cc(1, 90)), "2");
    assert_string_equal(where(l, want_cc(3, 75)), "0,1,2");
    assert_string_equal(where(l, want(4, 1000)), "0,1,2,3");
    expect_infeasible(l, want_cc(1, 100),
                      "no GPU here has compute capability 10.0; the highest, of gpu 2, is 9.0");
    expect_infeasible(l, want_cc(4, 80),
                      "needs 4 GPUs, but only 3 of compute capability 8.0 or more are usable; "
                      "request at most 3");
    struct demand d = want_cc(1, 90);
    memcpy(d.gpu_type, "old", 4);
    expect_infeasible(l, d,
                      "no GPU here called 'old' has compute capability 9.0; the highest, of "
                      "gpu 1, is 8.6");
    d = want_cc(1, 86);
    d.n_ids = 1;
    expect_infeasible(l, d, "gpu 0 has compute capability 8.0, not 8.6");
    d.ids[0] = 3;
    expect_infeasible(l, d,
                      "gpu 3 reports no compute capability, which only NVIDIA's GPUs have");
    ledger_free(l);
    l = machine_new(2, CARD_MIB);
    expect_infeasible(
        l, want_cc(1, 80),
        "no GPU here reports a compute capability, which only NVIDIA's GPUs have");
    ledger_free(l);
}

/* 64 GPUs all linked, any number wanted: must not take exponential time. */
static void
test_many_cards(void **state)
{
    (void)state;
    struct ledger *l = machine_new(64, CARD_MIB);
    for (int a = 0; a < 64; a++) {
        for (int b = a + 1; b < 64; b++)
            ledger_link(l, a, b);
    }
    struct demand d = want(0, 1000);
    for (d.gpus = 1; d.gpus <= 64; d.gpus++) {
        struct placement p;
        assert_true(place_job(&d, l, &p, NULL));
        assert_int_equal(p.n, d.gpus);
        for (int i = 0; i < p.n; i++)
            assert_int_equal(p.gpus[i], i);
    }
    ledger_free(l);
}

/* Fractions of a GPU add up to one, whatever memory they name, and need no margin. */
static void
test_shares_add_up_to_one_card(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    book_share(l, 1, 0, 500, 0);
    assert_string_equal(where(l, want_share(500, 0)), "0");
    assert_string_equal(where(l, want_share(501, 100)), "GpuShare");
    assert_string_equal(where(l, want(1, 0)), "GpuBusy");
    book_share(l, 2, 0, 250, 0);
    assert_string_equal(where(l, want_share(250, 0)), "0");
    assert_string_equal(where(l, want_share(251, 0)), "GpuShare");
    assert_string_equal(where(l, want(1, 5632)), "0"); /* no share, so a margin on top */
    assert_string_equal(where(l, want(1, 5633)), "GpuMemory");
    book(l, 3, 0, 5632);
    assert_string_equal(where(l, want_share(250, 0)), "GpuMemory");
    assert_null(ledger_check(l));
    ledger_free(l);
}

static void
test_a_share_keeps_whole_and_exclusive_jobs_out(void **state)
{
    (void)state;
    struct ledger *l = machine_new(2, CARD_MIB);
    struct demand alone = want(1, 100);
    alone.exclusive = 1;
    book_share(l, 1, 0, 100, 100);
    assert_string_equal(where(l, want(1, 0)), "1");
    assert_string_equal(where(l, alone), "1");
    book(l, 2, 1, 0);
    assert_string_equal(where(l, want(1, 0)), "GpuBusy");
    assert_string_equal(where(l, alone), "GpuBusy");
    assert_string_equal(where(l, want_share(900, 0)), "0");
    assert_string_equal(where(l, want_share(901, 0)), "GpuShare");
    ledger_free(l);
}

/* As for a job that wants the whole GPU: another program below the idle threshold is
 * ignored. */
static void
test_small_strangers_do_not_break_a_share(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    book_share(l, 1, 0, 500, 0);
    machine_stranger(l, 0, 99, 930, 2); /* 1,023 with the buffer */
    assert_string_equal(where(l, want_share(500, 0)), "0");
    machine_stranger(l, 0, 99, 931, 3);
    assert_string_equal(where(l, want_share(500, 0)), "GpuMemory");
    assert_string_equal(where(l, want_share(450, 0)), "0");
    struct demand d = want_share(450, 0);
    d.margin_mib = 300;
    assert_string_equal(where(l, d), "GpuMemory");
    ledger_free(l);
}

/* A job with its own idle threshold, like those of the drop-in schedulers, takes its fraction
 * beside a program that uses more than its own. */
static void
test_a_share_beside_one_that_exceeds_its_own(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    book_share(l, 1, 0, 500, 0);
    struct gpu_proc p = {.pid = 10, .mib = 15000, .job = 1};
    machine_sample(l, 0, 15000, &p, 1, 2);
    assert_string_equal(where(l, want_share(500, 0)), "GpuMemory");
    struct demand d = want_share(500, 0);
    d.idle_mib = 1000;
    assert_string_equal(where(l, d), "GpuMemory");
    d.idle_mib = VRAM_MAX_MIB;
    assert_string_equal(where(l, d), "0");
    d.max_used_permille = 600;
    assert_string_equal(where(l, d), "GpuBusy");
    ledger_free(l);
}

/* The smallest sufficient rest of compute, so that large fractions find room. */
static void
test_shares_pack(void **state)
{
    (void)state;
    struct ledger *l = machine_new(3, CARD_MIB);
    book_share(l, 1, 2, 500, 1000);
    book(l, 2, 1, 10000);
    assert_string_equal(where(l, want_share(500, 1000)), "2");
    assert_string_equal(where(l, want_share(501, 1000)), "1");
    assert_string_equal(where(l, want_share(501, 0)), "1");
    assert_string_equal(where(l, want_share(700, 0)), "0");
    ledger_free(l);
}

static void
test_shares_where_memory_is_not_known(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, 0);
    book_share(l, 1, 0, 500, 0);
    assert_string_equal(where(l, want_share(500, 0)), "0");
    assert_string_equal(where(l, want_share(501, 0)), "GpuShare");
    assert_string_equal(where(l, want_share(500, 1000)), "GpuBusy");
    assert_string_equal(where(l, want(1, 1000)), "GpuBusy");
    struct gpu_info info = ledger_card(l, 0)->info;
    info.total_mib = 8000;
    ledger_set_info(l, 0, &info);
    assert_int_equal(ledger_card(l, 0)->headroom_mib, 4000);
    assert_null(ledger_check(l));
    ledger_free(l);
}

/* Guards compare measured values: a value below passes, and so does an unreported one. */
static void
test_guards(void **state)
{
    (void)state;
    static const struct {
        int64_t used_mib;
        int32_t util, max_used, max_load;
        const char *where;
    } rows[] = {
        {4999, 0, 500, 0, "0"},
        {5000, 0, 500, 0, "GpuBusy"},
        {-1, 0, 500, 0, "0"},
        {0, 79, 0, 800, "0"},
        {0, 80, 0, 800, "GpuBusy"},
        {0, -1, 0, 800, "0"},
        {4999, 80, 500, 800, "GpuBusy"},
        {4999, 79, 500, 800, "0"},
        {4999, 100, 500, 0, "0"},
        {5000, 79, 0, 800, "0"},
        {4999, 100, 0, 1000, "GpuBusy"},
    };
    struct ledger *l = machine_new(1, 10000);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gpu_sample s = {rows[i].used_mib, rows[i].util, 40, NULL, 0, NULL, 0, 0};
        struct demand d = want(1, 1000);
        d.max_used_permille = rows[i].max_used;
        d.max_load_permille = rows[i].max_load;
        ledger_sample(l, 0, &s, 2, NULL, NULL);
        assert_string_equal(where(l, d), rows[i].where);
    }
    ledger_free(l);
}

static void
test_a_margin_of_the_jobs_own(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, 10000);
    struct demand d = want(1, 8000);
    static const struct {
        int margin;
        const char *where;
    } rows[] = {{-1, "0"}, {0, "0"}, {2000, "0"}, {2001, "GpuMemory"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        d.margin_mib = rows[i].margin;
        assert_string_equal(where(l, d), rows[i].where);
    }
    d = want(1, 9700);
    assert_string_equal(where(l, d), "GpuMemory"); /* the policy's margin of 512 */
    d.margin_mib = 0;
    assert_string_equal(where(l, d), "0");
    ledger_free(l);
}

static void
test_kinds_of_cards(void **state)
{
    (void)state;
    struct ledger *l = machine_new(3, 24000);
    static const char *const names[] = {"NVIDIA A100-SXM4-40GB", "Tesla T4", ""};
    static const int64_t sizes[] = {40536, 15360, 0};
    for (int i = 0; i < 3; i++) {
        struct gpu_info info = ledger_card(l, i)->info;
        snprintf(info.name, sizeof info.name, "%s", names[i]);
        info.total_mib = sizes[i];
        ledger_set_info(l, i, &info);
    }
    static const struct {
        const char *type;
        int32_t least;
        uint64_t cards;
    } rows[] = {
        {"", 0, 7},     {"a100", 0, 1},     {"t4", 0, 2},     {"tesla t", 0, 2},
        {"h100", 0, 0}, {"", 40960, 1 | 4}, /* sold as 40 GB, reports 39.6 GiB */
        {"", 41370, 4}, {"", 15360, 7},     {"t4", 20480, 0}, {"nvidia", 15360, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct demand d = want(1, 0);
        snprintf(d.gpu_type, sizeof d.gpu_type, "%s", rows[i].type);
        d.min_vram_mib = rows[i].least;
        assert_int_equal(place_cards_of(&d, l), rows[i].cards);
    }
    struct demand d = want(1, 0);
    d.devices = 6;
    d.min_vram_mib = 15361;
    assert_int_equal(place_cards_of(&d, l), 6); /* 2% less is accepted */
    d.min_vram_mib = 16000;
    assert_int_equal(place_cards_of(&d, l), 4);
    ledger_free(l);
}

static void
test_within_cards_and_beside_a_reservation(void **state)
{
    (void)state;
    struct ledger *l = machine_new(4, CARD_MIB);
    struct placement p;
    struct blocked why;
    struct demand d = want(1, 8000), two = want(2, 8000);
    assert_true(place_job_within(&d, l, 1U << 2 | 1U << 3, NULL, &p, &why));
    assert_int_equal(p.gpus[0], 2);
    assert_false(place_job_within(&two, l, 1U << 2, NULL, &p, &why));
    assert_int_equal(why.reason, REASON_RESERVATION);
    assert_int_equal(why.n_room, 1);
    struct ledger *later = ledger_clone(l);
    struct demand wide = want(3, 20000);
    ledger_hold(later, 9, &wide, (const uint8_t[]){0, 1, 2}, 3);
    assert_true(place_job_within(&d, l, UINT64_MAX, later, &p, &why));
    assert_int_equal(p.gpus[0], 3);
    d.vram_mib = 4000; /* fits beside the 20,000 */
    assert_true(place_job_within(&d, l, UINT64_MAX, later, &p, &why));
    assert_int_equal(p.gpus[0], 0);
    assert_false(place_job_within(&two, l, UINT64_MAX, later, &p, &why));
    assert_int_equal(why.reason, REASON_RESERVATION);
    book(l, 1, 3, 20000);
    book(l, 2, 2, 20000);
    book(l, 3, 1, 20000);
    assert_false(place_job_within(&two, l, UINT64_MAX, later, &p, &why));
    assert_int_equal(why.reason, REASON_RESOURCES);
    ledger_free(later);
    ledger_free(l);
}

static void
test_host_memory_beside_a_reservation(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    struct placement p;
    struct blocked why;
    ledger_set_host(l, 8, 64000);
    struct ledger *later = ledger_clone(l);
    struct demand d = want(0, 0);
    d.cpus = 6;
    ledger_hold(later, 9, &d, NULL, 0);
    assert_false(place_job_within(&d, l, UINT64_MAX, later, &p, &why));
    assert_int_equal(why.reason, REASON_RESERVATION);
    d.cpus = 2;
    assert_true(place_job_within(&d, l, UINT64_MAX, later, &p, &why));
    ledger_free(later);
    ledger_free(l);
}

static void
test_states_keep_work_away(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    ledger_set_admin(l, 0, GPU_PAUSED, 1);
    expect_words(l, want(1, 0), "GpuPaused: wants an idle GPU; gpu 0 is paused");
    ledger_set_admin(l, 0, GPU_DRAINING, 1);
    assert_string_equal(where(l, want(1, 0)), "GpuPaused");
    ledger_set_health(l, 0, GPU_LOST, 1);
    expect_words(l, want(1, 0), "GpuSick: wants an idle GPU; gpu 0 is lost");
    ledger_set_health(l, 0, GPU_SICK, 1);
    assert_string_equal(where(l, want(1, 0)), "GpuSick");
    ledger_set_health(l, 0, GPU_UNKNOWN, 1);
    expect_words(l, want(1, 0), "Probe: no recent data from gpu 0");
    assert_string_equal(where(l, want(0, 0)), "");
    ledger_free(l);
}

static void
test_unread_machine_waits_for_the_probe(void **state)
{
    (void)state;
    struct ledger *l = ledger_new(NULL);
    struct demand d = want(1, 1000);
    expect_words(l, d, "Probe: the GPUs have not been read yet");
    assert_true(place_feasible(&d, l, NULL));
    ledger_set_known(l);
    assert_false(place_feasible(&d, l, NULL));
    ledger_free(l);
}

static void
test_unknown_memory_is_placed_by_count(void **state)
{
    (void)state;
    struct ledger *l = machine_new(2, 0);
    assert_string_equal(where(l, want(1, 8000)), "0");
    book(l, 1, 0, 8000);
    assert_string_equal(where(l, want(1, 8000)), "1");
    book(l, 2, 1, 8000);
    assert_string_equal(where(l, want(1, 1)), "GpuBusy");
    ledger_free(l);
    l = machine_new(1, CARD_MIB);
    machine_sample(l, 0, -1, NULL, -1, 2);
    assert_string_equal(where(l, want(1, 30000)), "GpuMemory");
    assert_string_equal(where(l, want(1, 8000)), "0");
    book(l, 1, 0, 8000);
    assert_string_equal(where(l, want(1, 8000)), "GpuBusy");
    ledger_free(l);
}

static void
test_compute_modes(void **state)
{
    (void)state;
    struct ledger *l = machine_new(2, CARD_MIB);
    struct gpu_info info = ledger_card(l, 0)->info;
    info.compute = GPU_COMPUTE_PROHIBITED;
    ledger_set_info(l, 0, &info);
    assert_string_equal(where(l, want(1, 1000)), "1");
    info = ledger_card(l, 1)->info;
    info.compute = GPU_COMPUTE_EXCLUSIVE;
    ledger_set_info(l, 1, &info);
    assert_string_equal(where(l, want(1, 1000)), "1");
    book(l, 1, 1, 1000);
    assert_string_equal(where(l, want(1, 1000)), "GpuBusy");
    ledger_release(l, 1);
    machine_stranger(l, 1, 99, 10, 2);
    assert_string_equal(where(l, want(1, 0)), "GpuBusy");
    ledger_free(l);
}

/* The compute mode concerns compute contexts; a display's context is exempt. */
static void
test_a_display_keeps_none_off_an_exclusive_gpu(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    struct gpu_info info = ledger_card(l, 0)->info;
    info.compute = GPU_COMPUTE_EXCLUSIVE;
    ledger_set_info(l, 0, &info);
    struct gpu_proc procs[] = {{.pid = 7, .mib = 40, .uid = -1, .only_draws = true},
                               {.pid = 8, .mib = 4, .uid = -1, .only_draws = true}};
    machine_sample(l, 0, 44, procs, 2, 2);
    assert_string_equal(where(l, want(1, 1000)), "0");
    assert_string_equal(where(l, want(1, 0)), "0");
    procs[1].only_draws = false; /* it computes as well now */
    machine_sample(l, 0, 44, procs, 2, 3);
    expect_words(l, want(1, 0),
                 "GpuBusy: wants an idle GPU; gpu 0 has 49 MiB in use outside Berth (pid 8)");
    /* Listed twice, as a graphics and a compute process. */
    struct gpu_proc both[] = {{.pid = 7, .mib = 40, .uid = -1},
                              {.pid = 7, .mib = 40, .uid = -1, .only_draws = true}};
    machine_sample(l, 0, 80, both, 2, 4);
    assert_string_equal(where(l, want(1, 0)), "GpuBusy");
    ledger_free(l);
}

/* The mode can be changed back, as a paused GPU can be resumed, so a job waits for that. */
static void
test_a_prohibited_gpu_is_waited_for(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    struct gpu_info info = ledger_card(l, 0)->info;
    struct demand exact = want(1, 0);
    exact.n_ids = 1;
    info.compute = GPU_COMPUTE_PROHIBITED;
    ledger_set_info(l, 0, &info);
    assert_true(place_feasible(&exact, l, NULL));
    struct demand any = want(1, 1000);
    assert_true(place_feasible(&any, l, NULL));
    expect_words(l, any,
                 "GpuPaused: needs 1000 MiB + 512 MiB margin on one GPU; gpu 0 accepts no "
                 "processes (compute mode 'prohibited')");
    expect_infeasible(l, want(2, 0), "needs 2 GPUs, but only 1 is usable; request at most 1");
    info.compute = GPU_COMPUTE_DEFAULT;
    ledger_set_info(l, 0, &info);
    assert_string_equal(where(l, any), "0");
    assert_string_equal(where(l, exact), "0");
    ledger_free(l);
}

static void
test_cards_of_several_vendors(void **state)
{
    (void)state;
    struct ledger *l = machine_new(5, CARD_MIB);
    for (int i = 0; i < 5; i++) {
        struct gpu_info info = ledger_card(l, i)->info;
        info.vendor = i < 2 ? GPU_VENDOR_NVIDIA : GPU_VENDOR_AMD;
        snprintf(info.name, sizeof info.name, "%s", i < 2 ? "RTX 4090" : "Instinct MI210");
        ledger_set_info(l, i, &info);
    }
    struct demand two = want(2, 0), three = want(3, 0), amd = want(2, 0), mixed = want(2, 0);
    snprintf(amd.gpu_type, sizeof amd.gpu_type, "mi210");
    mixed.n_ids = 2;
    mixed.ids[0] = 1;
    mixed.ids[1] = 2;
    assert_string_equal(where(l, two), "0,1");
    assert_string_equal(where(l, three), "2,3,4");
    assert_string_equal(where(l, amd), "2,3");
    assert_string_equal(where(l, mixed), "1,2");
    expect_infeasible(l, want(4, 0),
                      "needs 4 GPUs, but only 3 of one vendor are usable; request at most 3");
    /* One GPU may be of any vendor; two are always of the same vendor. */
    book(l, 1, 0, 0);
    assert_string_equal(where(l, want(1, 0)), "1");
    book(l, 2, 1, 0);
    assert_string_equal(where(l, want(1, 0)), "2");
    assert_string_equal(where(l, two), "2,3");
    book(l, 3, 2, 0);
    assert_string_equal(where(l, two), "3,4");
    book(l, 4, 3, 0);
    ledger_release(l, 1);
    expect_words(l, two,
                 "Resources: wants 2 idle GPUs; 1 of them has room; gpu 1 is held by job 2");
    ledger_free(l);
}

/* The first vendor has enough GPUs, but not enough suitable ones. */
static void
test_vendor_whose_cards_will_do(void **state)
{
    (void)state;
    struct ledger *l = machine_new(4, 64000);
    for (int i = 0; i < 4; i++) {
        struct gpu_info info = ledger_card(l, i)->info;
        info.vendor = i < 2 ? GPU_VENDOR_NVIDIA : GPU_VENDOR_AMD;
        info.total_mib = i < 2 ? 24000 : 64000;
        ledger_set_info(l, i, &info);
    }
    struct demand two = want(2, 0), large = want(2, 40000);
    assert_true(place_feasible(&large, l, NULL));
    assert_string_equal(where(l, large), "2,3");
    expect_infeasible(
        l, want(2, 70000),
        "needs 68.4 GiB + 512 MiB margin on each of 2 GPUs, but the 2 largest have "
        "23.4 GiB or less; request at most 22.9 GiB");
    struct gpu_info info = ledger_card(l, 0)->info;
    info.compute = GPU_COMPUTE_PROHIBITED;
    ledger_set_info(l, 0, &info);
    assert_true(place_feasible(&two, l, NULL));
    assert_string_equal(where(l, two), "2,3");
    ledger_free(l);
}

/* GPUs 0 and 1 are instances of one GPU, 2 and 3 are whole. */
static void
test_a_job_gets_one_mig_instance_or_none(void **state)
{
    (void)state;
    struct ledger *l = machine_new(4, CARD_MIB);
    for (int i = 0; i < 2; i++) {
        struct gpu_info info = ledger_card(l, i)->info;
        snprintf(info.mig_gpu, sizeof info.mig_gpu, "GPU-a");
        snprintf(info.name, sizeof info.name, "A100 MIG 1g.10gb");
        ledger_set_info(l, i, &info);
    }
    struct demand type = want(1, 0), two_ids = want(2, 0);
    snprintf(type.gpu_type, sizeof type.gpu_type, "1g.10gb");
    two_ids.n_ids = 2;
    two_ids.ids[0] = 2;
    two_ids.ids[1] = 1;
    assert_string_equal(where(l, want(1, 0)), "0");
    assert_string_equal(where(l, want(2, 0)), "2,3");
    assert_string_equal(where(l, type), "0");
    expect_infeasible(
        l, want(3, 0),
        "needs 3 GPUs, but only 2 are no MIG instance, and a CUDA program can use "
        "only one MIG instance; request at most 2");
    expect_infeasible(l, two_ids,
                      "gpu 1 is a MIG instance, beside which a CUDA program can use no other "
                      "GPU; request it alone");
    type.gpus = 2;
    expect_infeasible(
        l, type,
        "needs 2 GPUs, but only 0 are no MIG instance, and a CUDA program can use "
        "only one MIG instance; request one");
    ledger_free(l);
}

static void
test_a_card_that_is_gone_is_no_ones(void **state)
{
    (void)state;
    struct ledger *l = machine_new(3, CARD_MIB);
    struct gpu_info info = ledger_card(l, 0)->info;
    struct demand id = want(1, 0);
    uint64_t generation = ledger_generation(l);
    id.n_ids = 1;
    id.ids[0] = 0;
    ledger_link(l, 0, 1);
    ledger_set_gone(l, 0);
    assert_true(ledger_generation(l) > generation); /* pending jobs are examined again */
    assert_string_equal(where(l, want(1, 0)), "1");
    expect_infeasible(l, id, "gpu 0 is gone: it was divided by MIG");
    expect_infeasible(l, want(3, 0), "needs 3 GPUs, but only 2 are usable; request at most 2");
    /* A GPU described again is back; a replaced one is another, without the old one's
     * links. */
    ledger_set_info(l, 0, &info);
    machine_sample(l, 0, 0, NULL, 0, 2);
    assert_string_equal(where(l, id), "0");
    ledger_set_gone(l, 0);
    snprintf(info.uuid, sizeof info.uuid, "MIG-1");
    info.total_mib = 9000;
    ledger_replace_card(l, &info);
    assert_int_equal(ledger_find_uuid(l, "MIG-1"), 0);
    assert_int_equal(ledger_card(l, 0)->health, GPU_UNKNOWN);
    assert_int_equal(ledger_card(l, 1)->links, 0);
    assert_string_equal(where(l, id), "Probe");
    machine_sample(l, 0, 0, NULL, 0, 3);
    assert_string_equal(where(l, id), "0");
    assert_null(ledger_check(l));
    ledger_free(l);
}

static void
test_cores_and_host_memory(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    ledger_set_host(l, 8, 64000);
    struct demand d = want(0, 0), all = want(0, 0);
    d.cpus = 6;
    d.mem_mib = 60000;
    assert_string_equal(where(l, d), "");
    ledger_hold(l, 1, &d, NULL, 0);
    expect_words(l, d, "Cpus: needs 6 cores; 2 are free");
    d.cpus = 1;
    expect_words(l, d, "Memory: needs 58.6 GiB of host memory; 3.9 GiB are free");
    all.cpus = 9;
    expect_infeasible(l, all, "needs 9 cores, but this machine has 8");
    d.mem_mib = 64001;
    assert_false(place_feasible(&d, l, NULL));
    ledger_free(l);
}

static void
test_words_for_waiting(void **state)
{
    (void)state;
    struct ledger *l = machine_new(2, CARD_MIB);
    book(l, 3, 0, 0);
    book(l, 7, 1, 12000);
    expect_words(l, want(1, 0), "GpuBusy: wants an idle GPU; gpu 0 is held by job 3");
    expect_words(l, want(2, 0), "GpuBusy: wants 2 idle GPUs; gpu 0 is held by job 3");
    expect_words(l, want(1, 18432),
                 "GpuMemory: needs 18.0 GiB + 512 MiB margin on one GPU; gpu 1 has 12.3 GiB "
                 "free (6.2 GiB short), held by job 7");
    ledger_release(l, 3);
    expect_words(l, want(2, 18432),
                 "Resources: needs 18.0 GiB + 512 MiB margin on each of 2 GPUs; 1 of them has "
                 "room; gpu 1 has 12.3 GiB free (6.2 GiB short), held by job 7");
    machine_stranger(l, 0, 4711, 2000, 2);
    expect_words(l, want(1, 0),
                 "GpuBusy: wants an idle GPU; gpu 0 has 2.1 GiB in use outside Berth (pid "
                 "4711)");
    ledger_free(l);
}

static void
test_infeasible_says_what_would_fit(void **state)
{
    (void)state;
    struct ledger *l = machine_new(2, 24000);
    struct demand d = want(1, 30720), pair = want(2, 20000);
    expect_infeasible(l, d,
                      "needs 30.0 GiB + 512 MiB margin on one GPU, but the largest has "
                      "23.4 GiB; request at most 22.9 GiB");
    d = want(1, 23488);
    assert_true(place_feasible(&d, l, NULL));
    d = want(1, 23489);
    assert_false(place_feasible(&d, l, NULL));
    expect_infeasible(l, want(4, 0), "needs 4 GPUs, but only 2 are usable; request at most 2");
    d = want(1, 1000);
    d.devices = 1U << 5;
    expect_infeasible(l, d, "needs 1 GPU, but gpu 5 does not exist here; there are 0-1");
    d = want(2, 1000);
    d.devices = 1U << 1;
    expect_infeasible(
        l, d,
        "needs 2 GPUs, but only 1 among the requested devices is usable; request at most 1");
    d = want(1, 1000);
    d.n_ids = 1;
    d.ids[0] = 7;
    expect_infeasible(l, d, "gpu 7 does not exist here; there are 0-1");
    d.n_ids = 2;
    d.ids[0] = d.ids[1] = 1;
    expect_infeasible(l, d, "gpu 1 is named twice");
    machine_stranger(l, 0, 99, 20000, 2);
    assert_true(place_feasible(&pair, l, NULL));
    ledger_set_health(l, 0, GPU_LOST, 2);
    assert_true(place_feasible(&pair, l, NULL));
    ledger_free(l);
    l = ledger_new(NULL);
    ledger_set_known(l);
    expect_infeasible(l, want(1, 0),
                      "needs 1 GPU, but this machine has no usable GPU; gpus=0 requests none");
    ledger_free(l);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smallest_sufficient_headroom),
        cmocka_unit_test(test_ties_take_the_lowest_index),
        cmocka_unit_test(test_three_jobs_on_two_cards),
        cmocka_unit_test(test_two_of_14g_never_share_24g),
        cmocka_unit_test(test_small_stranger_does_not_block_a_card),
        cmocka_unit_test(test_growing_stranger_stops_placing),
        cmocka_unit_test(test_whole_jobs_are_alone),
        cmocka_unit_test(test_exclusive_counts_strangers_by_memory_only),
        cmocka_unit_test(test_exact_ids_in_their_order),
        cmocka_unit_test(test_devices_bound_the_choice),
        cmocka_unit_test(test_several_cards_pack),
        cmocka_unit_test(test_spread_takes_the_largest),
        cmocka_unit_test(test_a_request_may_name_the_rule),
        cmocka_unit_test(test_a_request_may_say_what_idle_is),
        cmocka_unit_test(test_joined_cards_are_preferred),
        cmocka_unit_test(test_numa_comes_after_links),
        cmocka_unit_test(test_fewest_nodes),
        cmocka_unit_test(test_what_is_left),
        cmocka_unit_test(test_free_cores_decide),
        cmocka_unit_test(test_compute_capability),
        cmocka_unit_test(test_many_cards),
        cmocka_unit_test(test_shares_add_up_to_one_card),
        cmocka_unit_test(test_a_share_keeps_whole_and_exclusive_jobs_out),
        cmocka_unit_test(test_small_strangers_do_not_break_a_share),
        cmocka_unit_test(test_a_share_beside_one_that_exceeds_its_own),
        cmocka_unit_test(test_shares_pack),
        cmocka_unit_test(test_shares_where_memory_is_not_known),
        cmocka_unit_test(test_guards),
        cmocka_unit_test(test_a_margin_of_the_jobs_own),
        cmocka_unit_test(test_kinds_of_cards),
        cmocka_unit_test(test_within_cards_and_beside_a_reservation),
        cmocka_unit_test(test_host_memory_beside_a_reservation),
        cmocka_unit_test(test_states_keep_work_away),
        cmocka_unit_test(test_unread_machine_waits_for_the_probe),
        cmocka_unit_test(test_unknown_memory_is_placed_by_count),
        cmocka_unit_test(test_compute_modes),
        cmocka_unit_test(test_a_display_keeps_none_off_an_exclusive_gpu),
        cmocka_unit_test(test_a_prohibited_gpu_is_waited_for),
        cmocka_unit_test(test_cards_of_several_vendors),
        cmocka_unit_test(test_vendor_whose_cards_will_do),
        cmocka_unit_test(test_a_job_gets_one_mig_instance_or_none),
        cmocka_unit_test(test_a_card_that_is_gone_is_no_ones),
        cmocka_unit_test(test_cores_and_host_memory),
        cmocka_unit_test(test_words_for_waiting),
        cmocka_unit_test(test_infeasible_says_what_would_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
