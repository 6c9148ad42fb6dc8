/* The NVML backend against libraries of two ages that a script drives (fake_nvml.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "gpu/backend.h"
#include "support.h"

/* A machine as the script has it, opened through a library. */
struct world {
    char *dir;
    struct backend_config config;
    void *state;
    struct backend_machine m;
    struct backend_sample s;
    struct err e;
};

static int
setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    w->dir = support_make_dir();
    w->config.nvml_path = support_path("BERTH_TEST_NVML");
    w->config.sys_root = w->dir;
    w->config.proc_root = w->dir;
    *state = w;
    auto_free char *script = xasprintf("%s/script", w->dir);
    return setenv("BERTH_FAKE_NVML", script, 1);
}

static int
teardown(void **state)
{
    struct world *w = *state;

    backend_nvml.close(w->state);
    backend_sample_free(&w->s);
    support_remove_dir(w->dir);
    free(w);
    return 0;
}

static void
script(struct world *w, const char *text)
{
    support_write(w->dir, "script", text);
}

static int
discover(struct world *w)
{
    if (backend_nvml.open(&w->config, &w->state, &w->e) < 0)
        return -1;
    return backend_nvml.discover(w->state, &w->m, &w->e);
}

static void
discover_or_fail(struct world *w)
{
    if (discover(w) < 0)
        fail_msg("%s", w->e.text);
}

static void
sample_or_fail(struct world *w)
{
    if (backend_nvml.sample(w->state, &w->s, &w->e) < 0)
        fail_msg("%s", w->e.text);
}

static void
check_proc(const struct backend_usage *u, int at, int32_t pid, int64_t mib)
{
    assert_true(at < u->n_procs);
    assert_int_equal(u->procs[at].pid, pid);
    assert_int_equal(u->procs[at].mib, mib);
}

#define TWO_CARDS                                                                              \
    "driver 550.54\n"                                                                          \
    "card GPU-a 24576 300 5000\n"                                                              \
    "card GPU-b 81920 500 0\n"                                                                 \
    "load 0 93 61\n"                                                                           \
    "mode 1 3\n"

static void
test_cards(void **state)
{
    struct world *w = *state;

    script(w, TWO_CARDS);
    discover_or_fail(w);
    assert_string_equal(w->m.driver, "550.54");
    assert_int_equal(w->m.n, 2);
    const struct backend_card *a = &w->m.cards[0], *b = &w->m.cards[1];
    assert_int_equal(a->valid,
                     CARD_HAS_BUS_ID | CARD_HAS_MINOR | CARD_HAS_NUMA | CARD_HAS_COMPUTE_MODE);
    assert_string_equal(a->uuid, "GPU-a");
    assert_string_equal(a->name, "Fake GPU 0");
    assert_string_equal(a->bus_id, "0000:10:00.0");
    assert_string_equal(b->bus_id, "0000:11:00.0");
    assert_int_equal(a->minor, 7);
    assert_int_equal(a->numa, 3);
    assert_int_equal(a->total_mib, 24276);
    assert_int_equal(a->compute_mode, CARD_COMPUTE_DEFAULT);
    assert_int_equal(b->compute_mode, CARD_COMPUTE_EXCLUSIVE);
    assert_int_equal(b->index, 1);
    assert_int_equal(w->m.n_links, 0);
}

static void
test_the_kernels_numa_node_counts_first(void **state)
{
    struct world *w = *state;
    auto_free char *dir = xasprintf("%s/bus/pci/devices/0000:11:00.0", w->dir);

    script(w, TWO_CARDS);
    assert_int_equal(file_mkdirs(dir, 0755, &w->e), 0);
    support_write(dir, "numa_node", "1\n");
    discover_or_fail(w);
    assert_int_equal(w->m.cards[0].numa, 3);
    assert_int_equal(w->m.cards[1].numa, 1);
}

static void
test_use(void **state)
{
    struct world *w = *state;

    script(w, TWO_CARDS "proc 0 compute 4711 400\n"
                        "proc 0 compute 4712 -1\n"
                        "proc 0 graphics 4711 400\n"
                        "proc 0 graphics 4713 7\n"
                        "proc 0 mps 4714 9\n");
    discover_or_fail(w);
    sample_or_fail(w);
    const struct backend_usage *a = &w->s.use[0], *b = &w->s.use[1];
    assert_int_equal(a->valid,
                     CARD_HAS_USED | CARD_HAS_UTIL | CARD_HAS_TEMPERATURE | CARD_HAS_PROCS);
    assert_int_equal(a->used_mib, 5000);
    assert_int_equal(a->util, 93);
    assert_int_equal(a->temperature_c, 61);
    assert_int_equal(a->n_procs, 4);
    check_proc(a, 0, 4711, 400);
    check_proc(a, 1, 4712, -1);
    check_proc(a, 2, 4713, 7);
    check_proc(a, 3, 4714, 9);
    assert_true(b->present);
    assert_int_equal(b->valid, CARD_HAS_USED | CARD_HAS_PROCS);
    assert_int_equal(b->used_mib, 0);
    assert_int_equal(b->n_procs, 0);
}

static void
test_memory_that_went_bad(void **state)
{
    struct world *w = *state;

    script(w, "card GPU-a 24576 300 0\nremapped 0 0 0\n"
              "card GPU-b 24576 300 0\nremapped 1 1 0\n"
              "card GPU-c 24576 300 0\nremapped 2 1 1\n"
              "card GPU-d 24576 300 0\nretired 3 0\n"
              "card GPU-e 24576 300 0\nretired 4 1\n"
              "card GPU-f 24576 300 0\n");
    discover_or_fail(w);
    sample_or_fail(w);
    static const enum card_memory_health want[] = {CARD_MEMORY_FINE, CARD_MEMORY_PENDING,
                                                   CARD_MEMORY_FAILED, CARD_MEMORY_FINE,
                                                   CARD_MEMORY_PENDING};
    for (int i = 0; i < 5; i++) {
        assert_true(w->s.use[i].valid & CARD_HAS_HEALTH);
        assert_int_equal(w->s.use[i].health, want[i]);
    }
    assert_false(w->s.use[5].valid & CARD_HAS_HEALTH);
    /* It is asked for now and then, and null meanwhile. */
    sample_or_fail(w);
    assert_false(w->s.use[1].valid & CARD_HAS_HEALTH);
}

/* What the driver remembers: peaks of those that run, and of those that ended since. */
static void
test_accounts_tell_peaks_once(void **state)
{
    struct world *w = *state;

    script(w, "card GPU-a 24576 300 5000\naccounting 0 0\nproc 0 compute 4711 400\n"
              "account 0 4711 900 1\naccount 0 4000 100 0\n");
    discover_or_fail(w);
    sample_or_fail(w);
    const struct backend_usage *a = &w->s.use[0];
    check_proc(a, 0, 4711, 400);
    assert_int_equal(a->procs[0].peak_mib, 900);
    assert_int_equal(a->n_ended, 0); /* 4000 had ended before */
    script(w, "card GPU-a 24576 300 0\naccounting 0 0\n"
              "account 0 4711 1200 0\naccount 0 4000 100 0\naccount 0 4712 7 0\n");
    sample_or_fail(w);
    assert_int_equal(a->n_procs, 0);
    assert_int_equal(a->n_ended, 2);
    assert_int_equal(a->ended[0].pid, 4711);
    assert_int_equal(a->ended[0].peak_mib, 1200);
    assert_int_equal(a->ended[1].pid, 4712);
    sample_or_fail(w);
    assert_int_equal(a->n_ended, 0);
    /* A pid that is used again is another process. */
    script(w, "card GPU-a 24576 300 0\naccounting 0 0\nproc 0 compute 4711 50\n"
              "account 0 4711 60 1\n");
    sample_or_fail(w);
    assert_int_equal(a->procs[0].peak_mib, 60);
    script(w, "card GPU-a 24576 300 0\naccounting 0 0\naccount 0 4711 70 0\n");
    sample_or_fail(w);
    assert_int_equal(a->n_ended, 1);
    assert_int_equal(a->ended[0].peak_mib, 70);
}

static void
test_accounts_that_may_not_be_kept(void **state)
{
    struct world *w = *state;

    script(w, "card GPU-a 24576 300 5000\naccounting 0 2\nproc 0 compute 4711 400\n"
              "account 0 4711 900 1\n");
    discover_or_fail(w);
    sample_or_fail(w);
    assert_int_equal(w->s.use[0].procs[0].peak_mib, -1);
    assert_int_equal(w->s.use[0].n_ended, 0);
}

static void
test_old_library(void **state)
{
    struct world *w = *state;

    w->config.nvml_path = support_path("BERTH_TEST_NVML_OLD");
    script(w, TWO_CARDS "proc 0 compute 4711 400\n"
                        "proc 0 compute 4712 -1\n"
                        "proc 0 compute 4713 5\n"
                        "proc 0 graphics 4714 6\n"
                        "proc 0 mps 4715 9\n");
    discover_or_fail(w);
    assert_int_equal(w->m.n, 2);
    assert_int_equal(w->m.cards[0].valid, CARD_HAS_COMPUTE_MODE);
    assert_int_equal(w->m.cards[0].total_mib, 24576);
    sample_or_fail(w);
    assert_int_equal(w->s.use[0].used_mib, 5300);
    assert_int_equal(w->s.use[0].n_procs, 4);
    check_proc(&w->s.use[0], 1, 4712, -1);
    check_proc(&w->s.use[0], 2, 4713, 5);
    check_proc(&w->s.use[0], 3, 4714, 6);
}

static void
test_memory_falls_back_when_the_newer_function_refuses(void **state)
{
    struct world *w = *state;

    script(w, TWO_CARDS "memory2 13\n");
    discover_or_fail(w);
    assert_int_equal(w->m.cards[0].total_mib, 24576);
    sample_or_fail(w);
    assert_int_equal(w->s.use[0].used_mib, 5300);
}

static void
test_many_processes(void **state)
{
    struct world *w = *state;

    script(w, TWO_CARDS "crowd 1 700\n");
    discover_or_fail(w);
    sample_or_fail(w);
    assert_int_equal(w->s.use[1].n_procs, 700);
    check_proc(&w->s.use[1], 699, 100699, 1);
    script(w, TWO_CARDS);
    sample_or_fail(w);
    assert_int_equal(w->s.use[1].n_procs, 0);
}

static void
test_processes_not_supported_is_unknown(void **state)
{
    struct world *w = *state;

    script(w, TWO_CARDS "noprocs 0\n");
    discover_or_fail(w);
    sample_or_fail(w);
    assert_false(w->s.use[0].valid & CARD_HAS_PROCS);
    assert_true(w->s.use[0].valid & CARD_HAS_USED);
    assert_true(w->s.use[1].valid & CARD_HAS_PROCS);
}

static void
test_a_lost_card_leaves_the_others(void **state)
{
    struct world *w = *state;

    script(w, TWO_CARDS);
    discover_or_fail(w);
    script(w, TWO_CARDS "status 0 15\n");
    sample_or_fail(w);
    assert_false(w->s.use[0].present);
    assert_true(w->s.use[1].present);
    script(w, TWO_CARDS "status 1 16\n");
    sample_or_fail(w);
    assert_true(w->s.use[0].present);
    assert_false(w->s.use[1].present);
}

static void
test_a_card_lost_at_the_start_is_not_listed(void **state)
{
    struct world *w = *state;

    script(w, TWO_CARDS "status 0 15\n");
    discover_or_fail(w);
    assert_int_equal(w->m.n, 1);
    assert_int_equal(w->m.cards[0].index, 1);
    assert_string_equal(w->m.cards[0].uuid, "GPU-b");
    sample_or_fail(w);
    assert_true(w->s.use[0].present);
    assert_int_equal(w->s.use[0].used_mib, 0);
}

static void
test_all_cards_lost_at_the_start_is_an_error(void **state)
{
    struct world *w = *state;

    script(w, TWO_CARDS "status 0 15\nstatus 1 15\n");
    assert_int_equal(discover(w), -1);
    assert_non_null(strstr(w->e.text, "GPU is lost"));
}

static void
test_unknown_errors_of_a_card_are_fields_not_reported(void **state)
{
    struct world *w = *state;

    script(w, TWO_CARDS);
    discover_or_fail(w);
    script(w, TWO_CARDS "status 0 999\n");
    sample_or_fail(w);
    assert_true(w->s.use[0].present);
    assert_int_equal(w->s.use[0].valid, 0);
    assert_true(w->s.use[1].valid & CARD_HAS_USED);
}

static void
test_a_driver_that_went_away_is_an_error(void **state)
{
    struct world *w = *state;

    script(w, TWO_CARDS);
    discover_or_fail(w);
    script(w, TWO_CARDS "status 0 9\nstatus 1 9\n");
    assert_int_equal(backend_nvml.sample(w->state, &w->s, &w->e), -1);
    assert_non_null(strstr(w->e.text, "Driver Not Loaded"));
}

static void
test_version_mismatch_comes_with_advice(void **state)
{
    struct world *w = *state;
    auto_free char *dir = xasprintf("%s/driver/nvidia", w->dir);

    assert_int_equal(file_mkdirs(dir, 0755, &w->e), 0);
    support_write(dir, "version", "NVRM version: NVIDIA UNIX Kernel Module  535.1.2  Thu\n");
    script(w, TWO_CARDS "init 18\n");
    assert_int_equal(discover(w), -1);
    assert_non_null(strstr(w->e.text, "Driver/library version mismatch"));
    assert_non_null(strstr(w->e.text, "535.1.2"));
    assert_non_null(strstr(w->e.text, "reboot"));
}

static void
test_no_card_is_an_error(void **state)
{
    struct world *w = *state;

    script(w, "driver 1.2\n");
    assert_int_equal(discover(w), -1);
    assert_non_null(strstr(w->e.text, "no GPU"));
}

static void
test_a_missing_or_foreign_library_is_an_error(void **state)
{
    struct world *w = *state;

    w->config.nvml_path = "/nowhere/libnvidia-ml.so.1";
    assert_int_equal(discover(w), -1);
    assert_non_null(strstr(w->e.text, "/nowhere/libnvidia-ml.so.1"));
    backend_nvml.close(w->state);
    w->config.nvml_path = "libc.so.6";
    assert_int_equal(discover(w), -1);
    assert_non_null(strstr(w->e.text, "nvmlInit_v2"));
}

static void
test_links_between_cards(void **state)
{
    struct world *w = *state;

    script(w, "card GPU-a 100 0 0\ncard GPU-b 100 0 0\ncard GPU-c 100 0 0\n"
              "link 0 0 1\nlink 0 1 1\nlink 1 3 0\nlink 2 17 1\n");
    discover_or_fail(w);
    assert_int_equal(w->m.n_links, 2);
    assert_int_equal(w->m.links[0][0], 0);
    assert_int_equal(w->m.links[0][1], 1);
    assert_int_equal(w->m.links[1][0], 1);
    assert_int_equal(w->m.links[1][1], 2);
}

static void
test_cards_on_switches_are_joined_all_with_all(void **state)
{
    struct world *w = *state;

    script(w, "card GPU-a 100 0 0\ncard GPU-b 100 0 0\ncard GPU-c 100 0 0\ncard GPU-d 100 0 0\n"
              "link 0 0 -1\nlink 2 5 -1\nlink 3 0 -1\n");
    discover_or_fail(w);
    assert_int_equal(w->m.n_links, 3);
    assert_int_equal(w->m.links[0][1], 2);
    assert_int_equal(w->m.links[1][1], 3);
    assert_int_equal(w->m.links[2][0], 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* --- memory limits of cgroups --- */

static void
write_world(struct world *w, int set_status)
{
    auto_free char *text = xasprintf("card GPU-a 24564 564 0\ncard GPU-b 24564 564 0\n"
                                     "proc 1 compute 4711 3000\nproc 1 compute 4712 500\n"
                                     "proc 0 compute 4711 100\nlimits %s %d\n",
                                     w->dir, set_status);
    script(w, text);
    w->config.cgroup_root = w->dir;
}

static void
test_cap_is_a_hard_limit_on_the_group(void **state)
{
    struct world *w = *state;
    auto_free char *group = xasprintf("%s/job-1.1", w->dir);
    auto_free char *file = xasprintf("%s/1%s", w->dir, group);
    auto_buf struct buf text = BUF_INIT;

    for (char *s = file + strlen(w->dir) + 1; *s; s++)
        *s = *s == '/' ? ',' : *s;
    assert_int_equal(mkdir(group, 0755), 0);
    write_world(w, 0);
    discover_or_fail(w);
    assert_string_equal(w->m.cards[1].cap, "nvml");
    assert_int_equal(backend_nvml.cap(w->state, "GPU-b", group, 8800, &w->e), 0);
    assert_int_equal(file_read(file, 100, &text, &w->e), 0);
    assert_string_equal(buf_str(&text), "0 9227468800\n");
    assert_int_equal(backend_nvml.cap(w->state, "GPU-b", group, -1, &w->e), 0);
    assert_int_equal(access(file, F_OK), -1);
}

static void
test_groups_use(void **state)
{
    struct world *w = *state;
    struct backend_group g = {.card = 1, .name = w->dir, .mib = -1, .peak_mib = -1};

    write_world(w, 0);
    support_write(w->dir, "cgroup.procs", "4711\n99\n4712\n");
    discover_or_fail(w);
    backend_nvml.group_use(w->state, &g);
    assert_int_equal(g.mib, 3500);
    g.card = 0;
    backend_nvml.group_use(w->state, &g);
    assert_int_equal(g.mib, 100);
}

static void
test_cap_that_is_refused_has_the_drivers_words(void **state)
{
    struct world *w = *state;

    write_world(w, 15);
    discover_or_fail(w);
    assert_int_equal(backend_nvml.cap(w->state, "GPU-b", w->dir, 100, &w->e), -1);
    assert_string_equal(w->e.text,
                        "the driver does not limit its memory: GPU is lost (error 15)");
    assert_int_equal(backend_nvml.cap(w->state, "GPU-z", w->dir, 100, &w->e), -1);
}

/* What a driver, a card or a user lacks is said in words. */
static void
test_no_caps_say_why(void **state)
{
    struct world *w = *state;

    script(w, "card GPU-a 24564 564 0\ncard MIG-1 24564 564 0\n");
    w->config.cgroup_root = w->dir;
    discover_or_fail(w);
    assert_string_equal(w->m.cards[0].cap, "");
    assert_string_equal(w->m.cards[1].cap_why, "a MIG instance has memory of its own");
    if (geteuid() == 0)
        assert_string_equal(w->m.cards[0].cap_why,
                            "the driver does not support memory limits for this GPU");
    else
        assert_non_null(strstr(w->m.cards[0].cap_why, "root"));
    backend_nvml.close(w->state);
    w->state = NULL;
    w->config.nvml_path = support_path("BERTH_TEST_NVML_OLD");
    discover_or_fail(w);
    assert_non_null(strstr(w->m.cards[0].cap_why, "615"));
    assert_int_equal(backend_nvml.cap(w->state, "GPU-a", w->dir, 100, &w->e), -1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_cards),
        TEST(test_the_kernels_numa_node_counts_first),
        TEST(test_use),
        TEST(test_memory_that_went_bad),
        TEST(test_accounts_tell_peaks_once),
        TEST(test_accounts_that_may_not_be_kept),
        TEST(test_old_library),
        TEST(test_memory_falls_back_when_the_newer_function_refuses),
        TEST(test_many_processes),
        TEST(test_processes_not_supported_is_unknown),
        TEST(test_a_lost_card_leaves_the_others),
        TEST(test_a_card_lost_at_the_start_is_not_listed),
        TEST(test_all_cards_lost_at_the_start_is_an_error),
        TEST(test_unknown_errors_of_a_card_are_fields_not_reported),
        TEST(test_a_driver_that_went_away_is_an_error),
        TEST(test_version_mismatch_comes_with_advice),
        TEST(test_no_card_is_an_error),
        TEST(test_a_missing_or_foreign_library_is_an_error),
        TEST(test_links_between_cards),
        TEST(test_cards_on_switches_are_joined_all_with_all),
        TEST(test_cap_is_a_hard_limit_on_the_group),
        TEST(test_groups_use),
        TEST(test_cap_that_is_refused_has_the_drivers_words),
        TEST(test_no_caps_say_why),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
