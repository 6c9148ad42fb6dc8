/* The NUMA nodes that a job is bound to, and the cores that bound jobs hold there. */
#include "machine.h"

/* GPUs 0 and 1 on node 0, 2 and 3 on node 1, with 8 and 4 CPUs. */
static struct ledger *
two_nodes(void)
{
    struct ledger *l = machine_new(4, CARD_MIB);
    for (int i = 0; i < 4; i++) {
        struct gpu_info info = ledger_card(l, i)->info;
        info.numa = i / 2;
        ledger_set_info(l, i, &info);
    }
    ledger_set_node(l, 0, 8);
    ledger_set_node(l, 1, 4);
    return l;
}

static struct demand
want_bound(int gpus, int cpus, enum cpu_bind bind)
{
    struct demand d = want(gpus, 1000);
    d.cpus = cpus;
    d.cpu_bind = (uint8_t)bind;
    return d;
}

static void
expect(const struct ledger *l, struct demand d, const char *gpus, enum bind_verdict verdict,
       uint64_t nodes)
{
    uint8_t list[GPU_MAX];
    uint64_t has = 99;
    int n = 0;
    for (; gpus[n]; n++)
        list[n] = (uint8_t)(gpus[n] - '0');
    assert_int_equal(ledger_bind(l, &d, list, n, &has), verdict);
    assert_int_equal(has, nodes);
}

static void
hold(struct ledger *l, uint32_t job, struct demand d, int card)
{
    uint8_t gpu = (uint8_t)card;
    ledger_hold(l, job, &d, &gpu, 1);
    assert_null(ledger_check(l));
}

static void
test_settings_and_jobs(void **state)
{
    static const struct {
        enum cpu_bind setting, job;
        int cpus;
        enum cpu_bind mode;
    } rows[] = {
        {CPU_BIND_AUTO, CPU_BIND_DEFAULT, 0, CPU_BIND_OFF},
        {CPU_BIND_AUTO, CPU_BIND_DEFAULT, 2, CPU_BIND_AUTO},
        {CPU_BIND_AUTO, CPU_BIND_NODE, 0, CPU_BIND_NODE},
        {CPU_BIND_AUTO, CPU_BIND_OFF, 2, CPU_BIND_OFF},
        {CPU_BIND_NODE, CPU_BIND_DEFAULT, 0, CPU_BIND_NODE},
        {CPU_BIND_NODE, CPU_BIND_AUTO, 0, CPU_BIND_OFF},
        {CPU_BIND_OFF, CPU_BIND_DEFAULT, 2, CPU_BIND_OFF},
        {CPU_BIND_OFF, CPU_BIND_AUTO, 2, CPU_BIND_AUTO},
    };
    (void)state;
    struct ledger *l = two_nodes();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct demand d = want_bound(1, rows[i].cpus, rows[i].job);
        ledger_set_bind(l, rows[i].setting);
        assert_int_equal(ledger_bind_mode(l, &d), rows[i].mode);
    }
    struct demand without = want_bound(0, 2, CPU_BIND_NODE);
    assert_int_equal(ledger_bind_mode(l, &without), CPU_BIND_OFF);
    struct demand away = want_bound(1, 2, CPU_BIND_NODE);
    away.engine = ENGINE_SLURM;
    assert_int_equal(ledger_bind_mode(l, &away), CPU_BIND_OFF);
    ledger_free(l);
}

static void
test_nodes_of_the_cards(void **state)
{
    (void)state;
    struct ledger *l = two_nodes();
    const struct demand d = want_bound(1, 2, CPU_BIND_DEFAULT);
    expect(l, d, "0", BIND_NEAR, 1);
    expect(l, d, "3", BIND_NEAR, 2);
    expect(l, want_bound(2, 2, CPU_BIND_DEFAULT), "01", BIND_NEAR, 1);
    expect(l, want_bound(2, 2, CPU_BIND_DEFAULT), "12", BIND_EVERYWHERE, 0);
    expect(l, want_bound(1, 0, CPU_BIND_DEFAULT), "0", BIND_NOT_WANTED, 0);
    ledger_set_node(l, 5, 4); /* a third node appears */
    expect(l, want_bound(2, 2, CPU_BIND_DEFAULT), "12", BIND_NEAR, 3);
    ledger_set_node(l, 1, 0);
    expect(l, d, "3", BIND_UNKNOWN, 0);
    ledger_free(l);
    l = machine_new(1, CARD_MIB);
    ledger_set_node(l, 0, 8);
    expect(l, d, "0", BIND_UNKNOWN, 0);
    ledger_free(l);
}

/* Bound jobs never book more cores on a node than it has, except those with
 * --cpu-bind=node. */
static void
test_cores_of_a_node(void **state)
{
    (void)state;
    struct ledger *l = two_nodes();
    hold(l, 1, want_bound(1, 6, CPU_BIND_AUTO), 0);
    assert_int_equal(ledger_bound(l, 1), 1);
    assert_int_equal(ledger_node_held(l, 0), 6);
    expect(l, want_bound(1, 2, CPU_BIND_AUTO), "1", BIND_NEAR, 1);
    expect(l, want_bound(1, 3, CPU_BIND_AUTO), "1", BIND_FULL, 0);
    expect(l, want_bound(1, 3, CPU_BIND_NODE), "1", BIND_NEAR, 1);
    hold(l, 2, want_bound(1, 3, CPU_BIND_AUTO), 1); /* runs anywhere and holds nothing there */
    assert_int_equal(ledger_bound(l, 2), 0);
    assert_int_equal(ledger_node_held(l, 0), 6);
    struct ledger *copy = ledger_clone(l);
    ledger_release(copy, 1);
    assert_null(ledger_check(copy));
    assert_int_equal(ledger_node_held(copy, 0), 0);
    assert_false(ledger_has_room_as(l, copy));
    ledger_free(copy);
    assert_int_equal(ledger_node_held(l, 0), 6);
    ledger_free(l);
}

/* Half of its cores on each node; after a restart, the node it was bound to. */
static void
test_several_nodes_and_restarts(void **state)
{
    (void)state;
    struct ledger *l = two_nodes();
    ledger_set_node(l, 2, 8);
    struct demand d = want_bound(2, 5, CPU_BIND_AUTO);
    ledger_hold(l, 1, &d, (const uint8_t[]){1, 2}, 2);
    assert_int_equal(ledger_bound(l, 1), 3);
    assert_int_equal(ledger_node_held(l, 0), 3);
    assert_int_equal(ledger_node_held(l, 1), 3);
    ledger_rebind(l, 1, 2);
    assert_null(ledger_check(l));
    assert_int_equal(ledger_node_held(l, 0), 0);
    assert_int_equal(ledger_node_held(l, 1), 5);
    ledger_rebind(l, 1, 0);
    assert_int_equal(ledger_node_held(l, 1), 0);
    ledger_rebind(l, 9, 1); /* no such job */
    ledger_release(l, 1);
    assert_null(ledger_check(l));
    assert_int_equal(ledger_bound(l, 1), 0);
    ledger_free(l);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings_and_jobs),
        cmocka_unit_test(test_nodes_of_the_cards),
        cmocka_unit_test(test_cores_of_a_node),
        cmocka_unit_test(test_several_nodes_and_restarts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
