/* The kernel's own files about GPUs and drivers, in a folder that imitates /sys and /proc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "gpu/backend.h"
#include "gpu/sysfs.h"
#include "support.h"

static void
test_bus_ids(void **state)
{
    static const struct {
        const char *text;
        const char *want; /* NULL: refused */
    } cases[] = {
        {"00000000:01:00.0", "0000:01:00.0"},
        {"0000:C1:1F.7", "0000:c1:1f.7"},
        {"0001:01:00.0", "0001:01:00.0"},
        {"00010000:01:00.0", "10000:01:00.0"},
        {"", NULL},
        {"[N/A]", NULL},
        {"0000:01:00", NULL},
        {"0000:01:00.0x", NULL},
        {"000000001:01:00.0", NULL},
        {":01:00.0", NULL},
    };
    char out[CARD_BUS_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int result = sysfs_bus_id(cases[i].text, out, sizeof out);
        assert_int_equal(result, cases[i].want ? 0 : -1);
        if (cases[i].want)
            assert_string_equal(out, cases[i].want);
    }
    assert_int_equal(sysfs_bus_id("0000:01:00.0", out, 5), -1);
}

static struct backend_card
card_with_node(const char *node)
{
    struct backend_card card = {.valid = CARD_HAS_BUS_ID, .bus_id = "0000:01:00.0"};
    char *root = support_make_dir();
    auto_free char *dir = xasprintf("%s/bus/pci/devices/0000:01:00.0", root);
    struct err e;

    assert_int_equal(file_mkdirs(dir, 0755, &e), 0);
    if (node)
        support_write(dir, "numa_node", node);
    sysfs_fill_numa(root, &card);
    support_remove_dir(root);
    return card;
}

static void
test_numa_node(void **state)
{
    (void)state;
    struct backend_card card = card_with_node("1\n");
    assert_true(card.valid & CARD_HAS_NUMA);
    assert_int_equal(card.numa, 1);
    card = card_with_node("0\n");
    assert_true(card.valid & CARD_HAS_NUMA);
    assert_int_equal(card.numa, 0);
    assert_false(card_with_node("-1\n").valid & CARD_HAS_NUMA);
    assert_false(card_with_node("").valid & CARD_HAS_NUMA);
    assert_false(card_with_node(NULL).valid & CARD_HAS_NUMA);
}

static void
make_node(const char *root, const char *name, const char *cpus)
{
    auto_free char *dir = xasprintf("%s/devices/system/node/%s", root, name);
    struct err e;

    assert_int_equal(file_mkdirs(dir, 0755, &e), 0);
    support_write(dir, "cpulist", cpus);
}

/* Memory-only nodes have no CPUs, and are not listed here. */
static void
test_nodes_and_their_cpus(void **state)
{
    static struct backend_machine m;
    char *root = support_make_dir();

    (void)state;
    sysfs_find_nodes(root, &m);
    assert_int_equal(m.n_nodes, 0);
    make_node(root, "node0", "0-1,4\n");
    make_node(root, "node12", "5\n");
    make_node(root, "node2", "\n");
    make_node(root, "nodex", "7\n");
    make_node(root, "power", "8\n");
    sysfs_find_nodes(root, &m);
    support_remove_dir(root);
    assert_int_equal(m.n_nodes, 2);
    int first = m.nodes[0].node == 0 ? 0 : 1;
    assert_int_equal(m.nodes[first].node, 0);
    assert_int_equal(CPU_COUNT(&m.nodes[first].cpus), 3);
    assert_true(CPU_ISSET(4, &m.nodes[first].cpus));
    assert_int_equal(m.nodes[1 - first].node, 12);
    assert_true(CPU_ISSET(5, &m.nodes[1 - first].cpus));
}

static void
version_from(const char *text, char *out, size_t size)
{
    char *root = support_make_dir();
    auto_free char *dir = xasprintf("%s/driver/nvidia", root);
    struct err e;

    assert_int_equal(file_mkdirs(dir, 0755, &e), 0);
    if (text)
        support_write(dir, "version", text);
    sysfs_driver_version(root, out, size);
    support_remove_dir(root);
}

static void
test_driver_version(void **state)
{
    char out[64];

    (void)state;
    version_from("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22\n"
                 "GCC version:  gcc version 12.2.0 (Debian)\n",
                 out, sizeof out);
    assert_string_equal(out, "550.54.14");
    version_from("NVRM version: none\n", out, sizeof out);
    assert_string_equal(out, "");
    version_from(NULL, out, sizeof out);
    assert_string_equal(out, "");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bus_ids),
        cmocka_unit_test(test_numa_node),
        cmocka_unit_test(test_nodes_and_their_cpus),
        cmocka_unit_test(test_driver_version),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
