/* Which jobs are held to their declared VRAM: the interplay of settings, jobs and GPUs, and
 * the memory use of whole cgroups. */
#include "machine.h"

static struct demand
want_cap(int vram_mib, enum vram_cap cap)
{
    struct demand d = want(1, vram_mib);
    d.vram_cap = (uint8_t)cap;
    return d;
}

static void
describe(struct ledger *l, int card, enum gpu_cap cap, const char *why)
{
    struct gpu_info info = ledger_card(l, card)->info;
    info.cap = cap;
    snprintf(info.cap_why, sizeof info.cap_why, "%s", why);
    ledger_set_info(l, card, &info);
}

/* GPU 0 supports caps, GPU 1 does not. */
static struct ledger *
mixed_machine(enum vram_cap setting)
{
    struct ledger *l = machine_new(2, CARD_MIB);
    describe(l, 0, GPU_CAP_NVML, "");
    describe(l, 1, GPU_CAP_NONE, "it is old");
    ledger_set_caps(l, setting, 100);
    return l;
}

static void
test_settings_and_jobs(void **state)
{
    static const struct {
        enum vram_cap setting, job, mode;
    } rows[] = {
        {VRAM_CAP_AUTO, VRAM_CAP_DEFAULT, VRAM_CAP_AUTO},
        {VRAM_CAP_AUTO, VRAM_CAP_REQUIRE, VRAM_CAP_REQUIRE},
        {VRAM_CAP_AUTO, VRAM_CAP_OFF, VRAM_CAP_OFF},
        {VRAM_CAP_REQUIRE, VRAM_CAP_DEFAULT, VRAM_CAP_REQUIRE},
        {VRAM_CAP_REQUIRE, VRAM_CAP_OFF, VRAM_CAP_REQUIRE}, /* the neighbours rely on it */
        {VRAM_CAP_OFF, VRAM_CAP_DEFAULT, VRAM_CAP_OFF},
        {VRAM_CAP_OFF, VRAM_CAP_AUTO, VRAM_CAP_OFF},
        {VRAM_CAP_OFF, VRAM_CAP_REQUIRE, VRAM_CAP_REQUIRE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ledger *l = mixed_machine(rows[i].setting);
        struct demand d = want_cap(8000, rows[i].job);
        uint8_t gpu = 0;
        assert_int_equal(ledger_cap_mode(l, &d), rows[i].mode);
        bool held = rows[i].mode != VRAM_CAP_OFF && rows[i].setting != VRAM_CAP_OFF;
        assert_int_equal(ledger_cap_mib(l, &d, &gpu, 1), held ? 8800 : 0);
        ledger_free(l);
    }
}

/* A job with its GPUs to itself needs no cap. */
static void
test_who_shares(void **state)
{
    (void)state;
    struct ledger *l = mixed_machine(VRAM_CAP_REQUIRE);
    uint8_t gpu = 0, both[] = {0, 1};
    struct demand whole = want(1, 0), cpu = want(0, 0), share = want_share(250, 0);
    struct demand alone = want(1, 8000);
    alone.exclusive = 1;
    assert_int_equal(ledger_cap_mode(l, &whole), VRAM_CAP_OFF);
    assert_int_equal(ledger_cap_mode(l, &cpu), VRAM_CAP_OFF);
    assert_int_equal(ledger_cap_mode(l, &alone), VRAM_CAP_OFF);
    assert_int_equal(ledger_cap_mib(l, &share, &gpu, 1), 6759); /* a quarter, and a tenth */
    struct demand two = want(2, 8000);
    assert_int_equal(ledger_cap_mib(l, &two, both, 2), 0); /* not on both: no cap */
    ledger_free(l);
}

static void
expect_place(const struct ledger *l, struct demand d, const char *words)
{
    auto_buf struct buf text = BUF_INIT;
    struct placement p;
    struct blocked why;
    if (place_job(&d, l, &p, &why))
        buf_addf(&text, "%d", p.gpus[0]);
    else
        blocked_text(&why, &d, &text);
    assert_string_equal(buf_str(&text), words);
}

static void
test_require_places_where_it_can(void **state)
{
    (void)state;
    struct ledger *l = mixed_machine(VRAM_CAP_AUTO);
    book(l, 1, 0, 20000);
    expect_place(l, want_cap(8000, VRAM_CAP_AUTO), "1");
    expect_place(l, want_cap(8000, VRAM_CAP_REQUIRE),
                 "GpuMemory: needs 7.8 GiB + 512 MiB margin on one GPU; gpu 0 has 4.5 GiB free "
                 "(3.8 GiB short), held by job 1");
    ledger_release(l, 1);
    expect_place(l, want_cap(8000, VRAM_CAP_REQUIRE), "0");
    ledger_set_cap_refused(l, 0, "the driver is busy", 1000);
    expect_place(l, want_cap(8000, VRAM_CAP_REQUIRE),
                 "GpuCap: needs 7.8 GiB + 512 MiB margin on one GPU; gpu 0 cannot enforce its "
                 "VRAM now: the driver is busy");
    struct demand d = want_cap(8000, VRAM_CAP_AUTO);
    uint8_t gpu = 0;
    assert_int_equal(ledger_cap_mib(l, &d, &gpu, 1), 0);
    /* The GPU is probed for caps again after ten minutes, or when it is described again. */
    machine_sample(l, 0, 0, NULL, 0, 1000 + 600 * INT64_C(1000000));
    assert_int_equal(ledger_cap_mib(l, &d, &gpu, 1), 0);
    machine_sample(l, 0, 0, NULL, 0, 1001 + 600 * INT64_C(1000000));
    assert_int_equal(ledger_cap_mib(l, &d, &gpu, 1), 8800);
    ledger_free(l);
}

static void
expect_infeasible(const struct ledger *l, struct demand d, const char *words)
{
    auto_buf struct buf text = BUF_INIT;
    assert_false(place_feasible(&d, l, &text));
    assert_string_equal(buf_str(&text), words);
}

static void
test_require_is_refused_where_none_can(void **state)
{
    (void)state;
    struct ledger *l = mixed_machine(VRAM_CAP_AUTO);
    struct demand d = want_cap(8000, VRAM_CAP_REQUIRE);
    assert_true(place_feasible(&d, l, NULL));
    ledger_set_cap_refused(l, 0, "busy", 1);
    assert_true(place_feasible(&d, l, NULL)); /* temporary */
    d.n_ids = 1;
    d.ids[0] = 1;
    expect_infeasible(l, d,
                      "gpu 1 cannot enforce a job's VRAM: it is old; --vram-cap auto starts it "
                      "without");
    d = want_cap(8000, VRAM_CAP_REQUIRE);
    describe(l, 0, GPU_CAP_NONE, "it is old");
    expect_infeasible(
        l, d,
        "no GPU here can enforce a job's VRAM: it is old; --vram-cap auto starts it "
        "without");
    ledger_set_caps(l, VRAM_CAP_REQUIRE, 100);
    expect_infeasible(l, want(1, 8000),
                      "no GPU here can enforce a job's VRAM: it is old; the settings have "
                      "vram_cap: require, so only jobs that share no GPU can run");
    struct demand whole = want(1, 0);
    assert_true(place_feasible(&whole, l, NULL));
    describe(l, 0, GPU_CAP_NVML, "");
    describe(l, 1, GPU_CAP_NVML, "");
    ledger_set_caps(l, VRAM_CAP_OFF, 100);
    expect_infeasible(l, d,
                      "no GPU here can enforce a job's VRAM: the settings have vram_cap: off; "
                      "--vram-cap auto starts it without");
    ledger_free(l);
}

/* A share of a GPU of unknown size gives no number of MiB. */
static void
test_shares_of_an_unknown_size(void **state)
{
    (void)state;
    struct ledger *l = machine_new(2, 0);
    struct demand share = want_share(250, 0), vram = want_share(250, 8000);
    uint8_t gpu = 0, both[] = {0, 1};
    describe(l, 0, GPU_CAP_NVML, "");
    describe(l, 1, GPU_CAP_NVML, "");
    ledger_set_caps(l, VRAM_CAP_AUTO, 100);
    assert_int_equal(ledger_cap_mib(l, &share, &gpu, 1), 0);
    assert_int_equal(ledger_cap_mib(l, &vram, &gpu, 1), 8800);
    expect_place(l, share, "0");
    share.vram_cap = vram.vram_cap = VRAM_CAP_REQUIRE;
    expect_place(l, vram, "0");
    expect_infeasible(l, share,
                      "no GPU here can enforce a job's VRAM: the size of its memory is not "
                      "known, so a share of it is not; use --vram");
    share.n_ids = 1;
    share.ids[0] = 1;
    expect_infeasible(l, share,
                      "gpu 1 cannot enforce a job's VRAM: the size of its memory is not known, "
                      "so a share of it is not; use --vram");
    /* Beside a GPU whose size is known. */
    struct gpu_info info = ledger_card(l, 1)->info;
    info.total_mib = CARD_MIB;
    ledger_set_info(l, 1, &info);
    share.n_ids = 0;
    expect_place(l, share, "1");
    share.gpus = 2;
    share.vram_cap = VRAM_CAP_AUTO;
    assert_int_equal(ledger_cap_mib(l, &share, both, 2), 0);
    /* A GPU not described since a restart may have a known size. */
    describe(l, 0, GPU_CAP_NONE, "");
    share.gpus = 1;
    share.vram_cap = VRAM_CAP_REQUIRE;
    share.n_ids = 1;
    share.ids[0] = 0;
    assert_true(place_feasible(&share, l, NULL));
    ledger_free(l);
}

static void
sample(struct ledger *l, int64_t used, const struct gpu_proc *procs, int n,
       const struct gpu_group *groups, int n_groups, int64_t now_us)
{
    struct gpu_sample s = {used, 0, 40, procs, n, groups, n_groups, 0};
    ledger_sample(l, 0, &s, now_us, NULL, NULL);
    assert_null(ledger_check(l));
}

static void
test_a_groups_use_is_what_was_measured(void **state)
{
    (void)state;
    struct ledger *l = machine_new(1, CARD_MIB);
    struct gpu_proc procs[] = {{.pid = 10, .mib = 3000, .job = 1},
                               {.pid = 11, .mib = -1, .job = 1},
                               {.pid = 20, .mib = 500}};
    struct gpu_group group = {.job = 1, .mib = 5000, .peak_mib = 6000};
    book(l, 1, 0, 8000);
    const struct hold *h = ledger_find_hold(l, 0, 1);
    sample(l, 5500, procs, 3, &group, 1, 2);
    assert_int_equal(h->now_mib, 5000);
    assert_int_equal(h->peak_mib, 6000); /* between two samples */
    assert_false(h->unreported);
    assert_int_equal(ledger_card(l, 0)->external_mib,
                     550); /* the other program's, with its margin */
    /* Memory that is not charged to the group still belongs to the job. */
    procs[0].mib = 7000;
    sample(l, 7500, procs, 3, &group, 1, 3);
    assert_int_equal(h->now_mib, 7000);
    /* In a container no process is listed, so the group's figure is all there is. */
    group.mib = 5000;
    sample(l, 5000, NULL, 0, &group, 1, 4);
    assert_int_equal(h->now_mib, 5000);
    assert_int_equal(ledger_card(l, 0)->external_mib, 0);
    sample(l, 5100, NULL, -1, &group, 1, 5);
    assert_int_equal(h->now_mib, 5000);
    /* A group that cannot be read, or is not the job's, changes nothing. */
    group.mib = -1;
    sample(l, 7500, procs, 1, &group, 1, 6);
    assert_int_equal(h->now_mib, 7000);
    group = (struct gpu_group){.job = 9, .mib = 100, .peak_mib = -1};
    sample(l, 7500, procs, 1, &group, 1, 7);
    assert_int_equal(h->now_mib, 7000);
    /* After its end the job's group is not read: figures as without groups. */
    sample(l, 0, NULL, 0, NULL, 0, 8);
    assert_true(ledger_is_clear(l, 0, 1, 8));
    ledger_free(l);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings_and_jobs),
        cmocka_unit_test(test_who_shares),
        cmocka_unit_test(test_require_places_where_it_can),
        cmocka_unit_test(test_require_is_refused_where_none_can),
        cmocka_unit_test(test_shares_of_an_unknown_size),
        cmocka_unit_test(test_a_groups_use_is_what_was_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
