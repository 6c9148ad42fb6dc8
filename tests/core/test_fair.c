/* Accounts of recent use, and which limits apply to whom. */
#include <math.h>

#include "core/plan/fair.h"
#include "core/plan/limits.h"
#include "machine.h"

#define S      INT64_C(1000000)
#define HOUR_S 3600

static void
assert_near(double have, double want)
{
    if (fabs(have - want) > 1e-6 * (fabs(want) + 1))
        fail_msg("%.9g instead of %.9g", have, want);
}

static void
test_part_of_a_card(void **state)
{
    (void)state;
    static const struct {
        int gpus, vram, share;
        bool exclusive;
        double part;
    } cases[] = {
        {1, 0, 0, false, 1},        {4, 0, 0, false, 4},     {1, 6144, 0, false, 0.25},
        {2, 6144, 0, false, 0.5},   {1, 6144, 0, true, 1},   {1, 0, 500, false, 0.5},
        {1, 6144, 300, false, 0.3}, {1, 30000, 0, false, 1}, {0, 0, 0, false, 0.125},
    };
    static const uint8_t gpus[] = {0, 1, 2, 3};
    struct ledger *l = machine_new(4, CARD_MIB);
    ledger_set_host(l, 16, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct demand d = want(cases[i].gpus, cases[i].vram);
        d.share_permille = cases[i].share;
        d.exclusive = cases[i].exclusive;
        d.cpus = cases[i].gpus ? 0 : 2;
        assert_near(fair_part(l, &d, gpus, d.gpus), cases[i].part);
    }
    ledger_free(l);
}

static void
test_use_halves_with_every_half_life(void **state)
{
    (void)state;
    struct fair *f = fair_new(HOUR_S * 1000);
    fair_restore(f, 7, 800, 0);
    assert_near(fair_usage(f, 7, 0), 800);
    assert_near(fair_usage(f, 7, HOUR_S * S), 400);
    assert_near(fair_usage(f, 7, 3 * HOUR_S * S), 100);
    assert_near(fair_usage(f, 8, 0), 0);
    fair_free(f);
}

/* Charging in pieces or at once, in either order, gives the same. */
static void
test_charges_add_up(void **state)
{
    (void)state;
    struct fair *once = fair_new(HOUR_S * 1000), *pieces = fair_new(HOUR_S * 1000);
    fair_charge(once, 1, 2, 100 * S, 5000 * S);
    fair_charge(pieces, 1, 2, 900 * S, 5000 * S);
    fair_charge(pieces, 1, 2, 100 * S, 300 * S);
    fair_charge(pieces, 1, 2, 300 * S, 900 * S);
    assert_near(fair_usage(pieces, 1, 9000 * S), fair_usage(once, 1, 9000 * S));
    assert_near(fair_usage(once, 1, 5000 * S), fair_integral(once, 2, 100 * S, 5000 * S));
    fair_charge(once, 1, 2, 300 * S, 200 * S);
    assert_near(fair_usage(once, 1, 5000 * S), fair_usage(pieces, 1, 5000 * S));
    fair_free(once);
    fair_free(pieces);
}

static void
test_without_half_life_nothing_is_forgotten(void **state)
{
    (void)state;
    struct fair *f = fair_new(0);
    fair_charge(f, 1, 0.5, 0, 100 * S);
    fair_charge(f, 1, 1, 1000 * S, 1010 * S);
    assert_near(fair_usage(f, 1, INT64_C(1000000) * S), 60);
    fair_free(f);
}

/* A GPU held for ever counts as no more than the account's mean life. */
static void
test_use_is_bounded(void **state)
{
    (void)state;
    struct fair *f = fair_new(HOUR_S * 1000);
    assert_near(fair_integral(f, 1, 0, 1000 * HOUR_S * S), HOUR_S / M_LN2);
    assert_near(fair_integral(f, 1, 0, 1 * S), 1 - M_LN2 / HOUR_S / 2);
    fair_free(f);
}

static void
test_clone_goes_its_own_way(void **state)
{
    (void)state;
    struct fair *f = fair_new(0);
    fair_set_weight(f, 5, 2);
    fair_charge(f, 5, 1, 0, 10 * S);
    struct fair *copy = fair_clone(f);
    fair_charge(copy, 5, 1, 0, 10 * S);
    fair_charge(copy, 3, 1, 0, 10 * S);
    assert_near(fair_usage(f, 5, 10 * S), 10);
    assert_near(fair_usage(f, 3, 10 * S), 0);
    assert_near(fair_usage(copy, 5, 10 * S), 20);
    assert_near(fair_weight(copy, 5), 2);
    assert_near(fair_weight(copy, 3), 1);
    fair_free(f);
    fair_free(copy);
}

static void
test_limits_of_a_user(void **state)
{
    (void)state;
    struct user_limit rows[] = {{10, {.running = 1}}, {20, {.running = 2}}, {30, {0}}};
    struct limits l = {.each = {.running = 9}, .users = rows, .n_users = 3};
    assert_int_equal(limits_of(&l, 10)->running, 1);
    assert_int_equal(limits_of(&l, 20)->running, 2);
    assert_int_equal(limits_of(&l, 30)->running, 0);
    assert_int_equal(limits_of(&l, 5)->running, 9);
    assert_int_equal(limits_of(&l, 25)->running, 9);
    assert_int_equal(limits_of(&l, 31)->running, 9);
    l.n_users = 0;
    assert_int_equal(limits_of(&l, 10)->running, 9);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_part_of_a_card),
        cmocka_unit_test(test_use_halves_with_every_half_life),
        cmocka_unit_test(test_charges_add_up),
        cmocka_unit_test(test_without_half_life_nothing_is_forgotten),
        cmocka_unit_test(test_use_is_bounded),
        cmocka_unit_test(test_clone_goes_its_own_way),
        cmocka_unit_test(test_limits_of_a_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
