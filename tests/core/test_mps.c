/* MPS: which jobs get it, their share, and one user at a time per GPU. */
#include "machine.h"

#define ALICE 1001U
#define BOB   1002U

static struct demand
want_of(uint32_t user, int vram_mib)
{
    struct demand d = want(1, vram_mib);
    d.user = user;
    return d;
}

static void
describe(struct ledger *l, int card, enum gpu_vendor vendor, enum gpu_compute mode,
         const char *mig_gpu)
{
    struct gpu_info info = ledger_card(l, card)->info;
    info.vendor = vendor;
    info.compute = mode;
    snprintf(info.mig_gpu, sizeof info.mig_gpu, "%s", mig_gpu);
    ledger_set_info(l, card, &info);
}

/* MPS on GPU 0, not on GPU 1. */
static struct ledger *
machine_with_mps(void)
{
    struct ledger *l = machine_new(2, CARD_MIB);
    describe(l, 0, GPU_VENDOR_NVIDIA, GPU_COMPUTE_DEFAULT, "");
    describe(l, 1, GPU_VENDOR_NVIDIA, GPU_COMPUTE_DEFAULT, "");
    ledger_set_caps(l, VRAM_CAP_AUTO, 100);
    ledger_set_mps(l, 1);
    return l;
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
test_who_is_a_client(void **state)
{
    (void)state;
    struct ledger *l = machine_with_mps();
    const uint8_t first = 0, second = 1, both[] = {0, 1};
    struct demand part = want_of(ALICE, 8000), share = want_share(250, 0);
    struct demand whole = want(1, 0), alone = want_of(ALICE, 8000), slurm = part;
    alone.exclusive = 1;
    slurm.engine = ENGINE_SLURM;
    assert_int_equal(ledger_mps_card(l, &part, &first, 1), 0);
    assert_int_equal(ledger_mps_card(l, &share, &first, 1), 0);
    assert_int_equal(ledger_mps_card(l, &part, &second, 1), -1);
    assert_int_equal(ledger_mps_card(l, &part, both, 2), -1); /* there is one pipe folder */
    assert_int_equal(ledger_mps_card(l, &whole, &first, 1), -1);
    assert_int_equal(ledger_mps_card(l, &alone, &first, 1), -1);
    assert_int_equal(ledger_mps_card(l, &slurm, &first, 0), -1);
    assert_int_equal(ledger_mps_mib(l, &part, 0), 8800);
    assert_int_equal(ledger_mps_mib(l, &share, 0), 6759);
    part.vram_cap = VRAM_CAP_OFF;
    assert_int_equal(ledger_mps_mib(l, &part, 0), 0);
    ledger_free(l);
}

static void
test_cards_that_cannot(void **state)
{
    static const struct {
        enum gpu_vendor vendor;
        enum gpu_compute mode;
        const char *mig_gpu, *why;
    } rows[] = {
        {GPU_VENDOR_NVIDIA, GPU_COMPUTE_DEFAULT, "", NULL},
        {GPU_VENDOR_NONE, GPU_COMPUTE_UNKNOWN, "", NULL},
        {GPU_VENDOR_AMD, GPU_COMPUTE_DEFAULT, "", "NVIDIA's"},
        {GPU_VENDOR_INTEL, GPU_COMPUTE_DEFAULT, "", "NVIDIA's"},
        {GPU_VENDOR_NVIDIA, GPU_COMPUTE_DEFAULT, "GPU-1", "MIG"},
        {GPU_VENDOR_NVIDIA, GPU_COMPUTE_EXCLUSIVE, "", "nvidia-smi -c DEFAULT"},
    };
    const uint8_t first = 0;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ledger *l = machine_with_mps();
        struct demand d = want_of(ALICE, 8000);
        describe(l, 0, rows[i].vendor, rows[i].mode, rows[i].mig_gpu);
        const char *why = ledger_mps_why(l, ledger_card(l, 0), 0);
        assert_int_equal(ledger_mps_card(l, &d, &first, 1), rows[i].why ? -1 : 0);
        if (rows[i].why)
            assert_non_null(strstr(why, rows[i].why));
        else
            assert_null(why);
        assert_string_equal(ledger_mps_why(l, ledger_card(l, 1), ALICE), "");
        ledger_free(l);
    }
}

static void
test_one_user_at_a_time(void **state)
{
    (void)state;
    struct ledger *l = machine_with_mps();
    struct demand hers = want_of(ALICE, 8000), his = want_of(BOB, 8000);
    const uint8_t first = 0;
    ledger_hold(l, 1, &hers, &first, 1);
    hers.n_ids = his.n_ids = 1; /* gpu 0 */
    expect_place(l, hers, "0");
    expect_place(l, his,
                 "GpuMps: needs 7.8 GiB + 512 MiB margin on gpu 0; gpu 0 serves one user at a "
                 "time (MPS), and is held by job 1");
    his.n_ids = 0;
    expect_place(l, his, "1");
    his.n_ids = 1;
    ledger_release(l, 1);
    expect_place(l, his, "0");
    assert_null(ledger_check(l));
    ledger_free(l);
}

/* The user's jobs then run without MPS; other users still get MPS, so two users may not share
 * the GPU. */
static void
test_refused_for_a_while(void **state)
{
    (void)state;
    struct ledger *l = machine_with_mps();
    struct demand d = want_of(ALICE, 8000);
    const uint8_t first = 0;
    struct demand his = want_of(BOB, 8000);
    ledger_set_mps_refused(l, 0, ALICE, "it does not start", 1000);
    assert_int_equal(ledger_mps_card(l, &d, &first, 1), -1);
    assert_int_equal(ledger_mps_card(l, &his, &first, 1), 0);
    assert_string_equal(ledger_mps_why(l, ledger_card(l, 0), ALICE), "it does not start");
    assert_string_equal(ledger_mps_why(l, ledger_card(l, 0), 0), "it does not start");
    assert_null(ledger_mps_why(l, ledger_card(l, 0), BOB));
    ledger_hold(l, 1, &d, &first, 1);
    assert_false(ledger_mps_lets_in(l, ledger_card(l, 0), &his));
    machine_sample(l, 0, 0, NULL, 0, 1000 + 600 * INT64_C(1000000));
    assert_int_equal(ledger_mps_card(l, &d, &first, 1), -1);
    machine_sample(l, 0, 0, NULL, 0, 1001 + 600 * INT64_C(1000000));
    assert_int_equal(ledger_mps_card(l, &d, &first, 1), 0);
    ledger_free(l);
}

/* However many users MPS failed for, other users are not refused. */
static void
test_refused_to_many(void **state)
{
    (void)state;
    struct ledger *l = machine_with_mps();
    const uint8_t first = 0;
    for (uint32_t user = 1; user <= 3 * MPS_REFUSALS; user++)
        ledger_set_mps_refused(l, 0, user, "it does not start", 1000 + user);
    for (uint32_t user = 1; user <= 3 * MPS_REFUSALS + 1; user++) {
        struct demand d = want_of(user, 8000);
        bool is_refused = user > 2 * MPS_REFUSALS && user <= 3 * MPS_REFUSALS;
        assert_int_equal(ledger_mps_card(l, &d, &first, 1), is_refused ? -1 : 0);
    }
    ledger_free(l);
}

/* No server runs, so users share the GPU as without the setting. */
static void
test_not_to_be_had(void **state)
{
    (void)state;
    struct ledger *l = machine_with_mps();
    struct demand hers = want_of(ALICE, 8000), his = want_of(BOB, 8000);
    const uint8_t first = 0;
    ledger_set_mps_missing(l, "there is no nvidia-cuda-mps-control");
    assert_int_equal(ledger_mps_card(l, &hers, &first, 1), -1);
    assert_string_equal(ledger_mps_why(l, ledger_card(l, 0), BOB),
                        "there is no nvidia-cuda-mps-control");
    ledger_hold(l, 1, &hers, &first, 1);
    his.n_ids = 1;
    expect_place(l, his, "0");
    ledger_set_mps_missing(l, "");
    assert_false(ledger_mps_lets_in(l, ledger_card(l, 0), &his));
    assert_int_equal(ledger_mps_card(l, &hers, &first, 1), 0);
    ledger_free(l);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_a_client),    cmocka_unit_test(test_cards_that_cannot),
        cmocka_unit_test(test_one_user_at_a_time), cmocka_unit_test(test_refused_for_a_while),
        cmocka_unit_test(test_refused_to_many),    cmocka_unit_test(test_not_to_be_had),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
