/* The NVML backend with libraries of two ages, driven by a script (fake_nvml.c). */
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

/* A machine as the script describes it, opened through a library. */
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
test_compute_capability(void **state)
{
    struct world *w = *state;

    script(w, TWO_CARDS "cc 1 8 9\n");
    discover_or_fail(w);
    assert_false(w->m.cards[0].valid & CARD_HAS_CC);
    assert_true(w->m.cards[1].valid & CARD_HAS_CC);
    assert_int_equal(w->m.cards[1].cc, 89);
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
    for (int i = 0; i < a->n_procs; i++)
        assert_int_equal(a->procs[i].only_draws, a->procs[i].pid == 4713);
    assert_true(b->present);
    assert_int_equal(b->valid, CARD_HAS_USED | CARD_HAS_PROCS);
    assert_int_equal(b->used_mib, 0);
    assert_int_equal(b->n_procs, 0);
}

static void
test_energy_is_the_whole_gpus(void **state)
{
    struct world *w = *state;

    script(w, "card GPU-a 24576 300 0\nenergy 0 123456\ncard GPU-b 24576 300 0\n"
              "card GPU-c 81920 0 0\nmig 2 1\nenergy 2 999\nenergy 8 5\n"
              "instance 2 1 0 MIG-a 1g.10gb 9728 0 0\n");
    discover_or_fail(w);
    sample_or_fail(w);
    assert_true(w->s.use[0].valid & CARD_HAS_ENERGY);
    assert_int_equal(w->s.use[0].energy_mj, 123456);
    assert_false(w->s.use[1].valid & CARD_HAS_ENERGY);
    assert_string_equal(w->m.cards[2].uuid, "MIG-a");
    assert_false(w->s.use[2].valid & CARD_HAS_ENERGY);
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
    /* It is read only now and then, and null meanwhile. */
    sample_or_fail(w);
    assert_false(w->s.use[1].valid & CARD_HAS_HEALTH);
}

/* The driver's accounts: peaks of running processes, and of those that ended since. */
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
    /* A reused pid is another process. */
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

/* GB10: the GPU shares the machine's memory. */
static void
test_a_card_without_memory_of_its_own(void **state)
{
    struct world *w = *state;

    script(w, TWO_CARDS "memory 0 3\nproc 0 compute 4711 400\n");
    discover_or_fail(w);
    assert_int_equal(w->m.n, 2);
    assert_string_equal(w->m.cards[0].uuid, "GPU-a");
    assert_int_equal(w->m.cards[0].total_mib, 0);
    sample_or_fail(w);
    assert_true(w->s.use[0].present);
    assert_false(w->s.use[0].valid & CARD_HAS_USED);
    assert_int_equal(w->s.use[0].n_procs, 1);
    check_proc(&w->s.use[0], 0, 4711, 400);
}

static void
test_a_card_whose_memory_fails_at_the_start_is_not_listed(void **state)
{
    struct world *w = *state;

    script(w, TWO_CARDS "memory 0 999\n");
    discover_or_fail(w);
    assert_int_equal(w->m.n, 1);
    assert_string_equal(w->m.cards[0].uuid, "GPU-b");
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
test_long_records_of_processes(void **state)
{
    struct world *w = *state;

    script(w, TWO_CARDS "long\nproc 0 compute 4711 400\nproc 1 compute 4712 7\n"
                        "proc 1 compute 4713 8\nproc 1 compute 4714 -1\n");
    discover_or_fail(w);
    sample_or_fail(w);
    assert_int_equal(w->s.use[0].n_procs, 1);
    check_proc(&w->s.use[0], 0, 4711, 400);
    assert_int_equal(w->s.use[1].n_procs, 3);
    check_proc(&w->s.use[1], 0, 4712, 7);
    check_proc(&w->s.use[1], 1, 4713, 8);
    check_proc(&w->s.use[1], 2, 4714, -1);
    script(w, TWO_CARDS "proc 1 compute 4712 7\nproc 1 compute 4713 8\n");
    sample_or_fail(w);
    check_proc(&w->s.use[1], 1, 4713, 8);
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
add_to_proc(struct world *w, const char *bus_id, const char *information)
{
    auto_free char *dir = xasprintf("%s/driver/nvidia/gpus/%s", w->dir, bus_id);

    assert_int_equal(file_mkdirs(dir, 0755, &w->e), 0);
    support_write(dir, "information", information);
}

static void
test_cards_that_do_not_answer_at_the_start_are_named(void **state)
{
    struct world *w = *state;

    add_to_proc(w, "0000:10:00.0", "Model: A\n");
    add_to_proc(w, "0000:11:00.0", "Model: B\n");
    script(w, TWO_CARDS "status 0 999\n");
    discover_or_fail(w);
    assert_int_equal(w->m.n, 1);
    assert_int_equal(w->m.n_unanswered, 1);
    assert_string_equal(w->m.unanswered[0].bus_id, "0000:10:00.0");
    assert_false(w->m.unanswered[0].is_lost);
    assert_string_equal(w->m.unanswered[0].text,
                        "GPU 0 (0000:10:00.0) does not answer: Unknown Error (error 999)");
    backend_nvml.close(w->state);
    w->state = NULL;
    script(w, TWO_CARDS "status 1 15\n");
    discover_or_fail(w);
    assert_int_equal(w->m.n_unanswered, 1);
    assert_string_equal(w->m.unanswered[0].bus_id, "0000:11:00.0");
    assert_true(w->m.unanswered[0].is_lost);
    backend_nvml.close(w->state);
    w->state = NULL;
    script(w, TWO_CARDS "status 1 4\n"); /* no permission */
    discover_or_fail(w);
    assert_int_equal(w->m.n_unanswered, 0);
    assert_int_equal(w->m.n_left_out, 1);
    assert_string_equal(w->m.left_out[0],
                        "GPU 1 (0000:11:00.0) is left out: this user may not use it");
}

static void
test_cards_that_nvml_does_not_list_are_named(void **state)
{
    struct world *w = *state;

    add_to_proc(w, "0000:10:00.0", "Model: A\n");
    add_to_proc(w, "0000:11:00.0", "Model: B\n");
    add_to_proc(w, "0000:12:00.0", "Model: C\nGPU Excluded:\t No\n");
    add_to_proc(w, "0000:13:00.0", "Model: D\nGPU Excluded:\t Yes\n");
    add_to_proc(w, "0000:14:00.0", "Model: E\nDevice Minor: \t 251\n");
    script(w, TWO_CARDS);
    discover_or_fail(w);
    assert_int_equal(w->m.n, 2);
    assert_int_equal(w->m.n_unanswered, 1);
    assert_string_equal(w->m.unanswered[0].bus_id, "0000:12:00.0");
    assert_string_equal(w->m.unanswered[0].text,
                        "the driver has a GPU at 0000:12:00.0 that NVML does not list");
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
test_a_card_that_only_fails_is_unreadable(void **state)
{
    struct world *w = *state;

    script(w, TWO_CARDS);
    discover_or_fail(w);
    script(w, TWO_CARDS "status 0 999\n");
    sample_or_fail(w);
    assert_true(w->s.use[0].present);
    assert_true(w->s.use[0].is_unreadable);
    assert_false(w->s.use[1].is_unreadable);
    assert_true(w->s.use[1].valid & CARD_HAS_USED);
    /* Not if one of the two functions answers, or neither may be called. */
    script(w, TWO_CARDS "memory 0 999\n");
    sample_or_fail(w);
    assert_false(w->s.use[0].is_unreadable);
    assert_int_equal(w->s.use[0].valid & (CARD_HAS_USED | CARD_HAS_PROCS), CARD_HAS_PROCS);
    script(w, TWO_CARDS "memory 0 999\nnoprocs 0\n");
    sample_or_fail(w);
    assert_false(w->s.use[0].is_unreadable);
    script(w, TWO_CARDS "status 0 4\n");
    sample_or_fail(w);
    assert_false(w->s.use[0].is_unreadable);
    assert_true(w->s.use[0].present);
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
    if (geteuid() != 0) {
        assert_string_equal(w->m.cards[1].cap, "");
        assert_int_equal(backend_nvml.cap(w->state, "GPU-b", group, 8800, &w->e), -1);
        assert_non_null(strstr(w->e.text, "(error 4)")); /* no permission */
        assert_int_equal(access(file, F_OK), -1);
        return;
    }
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

/* A feature missing in the driver, card or permissions is named in words. */
static void
test_no_caps_say_why(void **state)
{
    struct world *w = *state;

    script(w, "card GPU-a 24564 564 0\ncard MIG-1 24564 564 0\n");
    w->config.cgroup_root = w->dir;
    discover_or_fail(w);
    assert_string_equal(w->m.cards[0].cap, "");
    assert_string_equal(w->m.cards[1].cap_why,
                        "the driver limits no memory within a MIG instance");
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

/* --- MIG --- */

#define DIVIDED                                                                                \
    "card GPU-a 81920 500 0\nload 0 93 61\nremapped 0 1 0\nmig 0 1\n"                          \
    "card GPU-b 81920 500 0\nmig 1 0\n"
#define TWO_PARTS                                                                              \
    "instance 0 7 0 MIG-7 1g.10gb 9728 0 1000\n"                                               \
    "instance 0 1 0 MIG-1 3g.40gb 40448 48 0\n"

static void
test_instances_are_the_cards_of_a_divided_gpu(void **state)
{
    struct world *w = *state;
    auto_free char *gi = xasprintf("%s/driver/nvidia/capabilities/gpu7/mig/gi7", w->dir);
    auto_free char *ci = xasprintf("%s/ci0", gi);

    assert_int_equal(file_mkdirs(ci, 0755, &w->e), 0);
    support_write(gi, "access", "DeviceFileMinor: 66\nDeviceFileMode: 292\n");
    support_write(ci, "access", "DeviceFileMinor: 67\nDeviceFileMode: 292\n");
    support_write(w->dir, "devices",
                  "Character devices:\n195 nvidia\n507 nvidia-caps-imex-channels\n"
                  "508 nvidia-caps\n\nBlock devices:\n  8 sd\n");
    script(w, DIVIDED TWO_PARTS);
    discover_or_fail(w);
    assert_int_equal(w->m.n, 3);
    const struct backend_card *a = &w->m.cards[0], *b = &w->m.cards[1], *c = &w->m.cards[2];
    assert_string_equal(a->uuid, "MIG-7");
    assert_string_equal(a->name, "Fake GPU 0 MIG 1g.10gb");
    assert_string_equal(a->bus_id, "0000:10:00.0");
    assert_int_equal(a->minor, 7);
    assert_int_equal(a->total_mib, 9728);
    assert_string_equal(a->mig_gpu, "GPU-a");
    assert_int_equal(a->mig_gi, 7);
    assert_int_equal(a->mig_gi_cap, 66);
    assert_int_equal(a->mig_ci_cap, 67);
    assert_int_equal(w->m.mig_major, 508);
    assert_string_equal(b->uuid, "MIG-1");
    assert_int_equal(b->total_mib, 40400);
    assert_int_equal(b->mig_gi_cap, -1);
    assert_string_equal(c->uuid, "GPU-b");
    assert_string_equal(c->mig_gpu, "");
    assert_int_equal(a->index, 0);
    assert_int_equal(b->index, 1);
    assert_int_equal(c->index, 2);
    assert_int_equal(w->m.n_mig_gpus, 1);
    assert_string_equal(w->m.mig_gpus[0], "GPU-a");
    assert_int_equal(w->m.n_left_out, 0);
}

/* Memory and processes are per instance; temperature and health are its GPU's. */
static void
test_use_of_instances(void **state)
{
    struct world *w = *state;

    script(w, DIVIDED TWO_PARTS "proc 8 compute 4711 900\nproc 9 compute 4712 -1\n"
                                "proc 0 compute 4713 5\n");
    discover_or_fail(w);
    sample_or_fail(w);
    const struct backend_usage *a = &w->s.use[0], *b = &w->s.use[1];
    assert_int_equal(a->valid,
                     CARD_HAS_USED | CARD_HAS_TEMPERATURE | CARD_HAS_PROCS | CARD_HAS_HEALTH);
    assert_int_equal(a->used_mib, 1000);
    assert_int_equal(a->temperature_c, 61);
    assert_int_equal(a->health, CARD_MEMORY_PENDING);
    assert_int_equal(a->n_procs, 1);
    check_proc(a, 0, 4711, 900);
    assert_int_equal(b->used_mib, 0);
    assert_int_equal(b->health, CARD_MEMORY_PENDING);
    check_proc(b, 0, 4712, -1);
    assert_true(w->s.use[2].present);
    assert_false(w->s.use[2].valid & CARD_HAS_HEALTH);
}

/* Compute instances in one GPU instance share one memory, of which each counts a part. */
static void
test_compute_instances_share_a_memory(void **state)
{
    struct world *w = *state;

    script(w, "card GPU-a 81920 500 0\nmig 0 1\n"
              "instance 0 1 0 MIG-x 1c.3g.40gb 40500 0 7000\n"
              "instance 0 1 1 MIG-y 2/3 40500 0 7000\n"
              "proc 8 compute 4711 3000\nproc 8 graphics 4712 1000\n"
              "proc 9 compute 4713 -1\n");
    discover_or_fail(w);
    assert_int_equal(w->m.cards[0].total_mib, 13500);
    assert_int_equal(w->m.cards[1].total_mib, 27000);
    assert_string_equal(w->m.cards[0].name, "Fake GPU 0 MIG 1c.3g.40gb");
    assert_string_equal(w->m.cards[1].name, "Fake GPU 0 MIG 2c.3g.40gb");
    sample_or_fail(w);
    assert_int_equal(w->s.use[0].used_mib, 4000);
    /* One instance without a size makes all sizes unknown. */
    assert_false(w->s.use[1].valid & CARD_HAS_USED);
}

static void
test_names_that_the_driver_does_not_make(void **state)
{
    struct world *w = *state;
    static const struct {
        int gpu_mib, mib;
        const char *name;
    } cases[] = {
        {40960, 4864, "Fake GPU 0 MIG 1g.5gb"},   {81920, 9728, "Fake GPU 0 MIG 1g.10gb"},
        {81920, 40448, "Fake GPU 0 MIG 1g.40gb"}, {143771, 16384, "Fake GPU 0 MIG 1g.18gb"},
        {81920, 80896, "Fake GPU 0 MIG 1g.80gb"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        auto_free char *text = xasprintf("card GPU-a %d 0 0\nmig 0 1\ninstance 0 7 0 MIG-7 1/1 "
                                         "%d 0 0\n",
                                         cases[i].gpu_mib, cases[i].mib);
        script(w, text);
        discover_or_fail(w);
        assert_string_equal(w->m.cards[0].name, cases[i].name);
        backend_nvml.close(w->state);
        w->state = NULL;
    }
}

static void
check_changed(struct world *w, const char *text, bool want)
{
    script(w, text);
    if (backend_nvml.has_changed(w->state) != want)
        fail_msg("%s: %s", want ? "no change" : "a change", text);
}

/* An administrator can change it at any time: nvidia-smi -c. */
static void
test_a_new_compute_mode_is_seen(void **state)
{
    struct world *w = *state;

    script(w, TWO_CARDS);
    discover_or_fail(w);
    check_changed(w, TWO_CARDS "mode 0 0\n", false);
    check_changed(w, TWO_CARDS "mode 0 2\n", true);
    check_changed(w, TWO_CARDS "mode 1 0\n", true);
    /* A lost GPU keeps its last mode. */
    check_changed(w, TWO_CARDS "mode 1 0\nstatus 1 15\n", false);
    backend_nvml.close(w->state);
    w->state = NULL;
    /* An instance has the mode of its GPU. */
    script(w, DIVIDED TWO_PARTS);
    discover_or_fail(w);
    check_changed(w, DIVIDED TWO_PARTS "mode 0 2\n", true);
}

static void
test_a_divided_gpu_without_instances_is_no_card(void **state)
{
    struct world *w = *state;

    script(w, DIVIDED);
    discover_or_fail(w);
    assert_int_equal(w->m.n, 1);
    assert_string_equal(w->m.cards[0].uuid, "GPU-b");
    assert_int_equal(w->m.cards[0].index, 0);
    assert_non_null(
        strstr(w->m.left_out[0], "0000:10:00.0 is in MIG mode and has no instances"));
    backend_nvml.close(w->state);
    w->state = NULL;
    /* Nor is it an error: instances may be created soon. */
    script(w, "card GPU-a 81920 500 0\nmig 0 1\n");
    discover_or_fail(w);
    assert_int_equal(w->m.n, 0);
    assert_non_null(strstr(w->m.left_out[0], "nvidia-smi mig -cgi"));
    sample_or_fail(w);
    check_changed(w, "card GPU-a 81920 500 0\nmig 0 1\n", false);
    check_changed(w, "card GPU-a 81920 500 0\nmig 0 1\ninstance 0 1 0 MIG-1 1g.10gb 9728 0 0\n",
                  true);
}

static void
test_a_new_partition_is_seen(void **state)
{
    struct world *w = *state;

    script(w, DIVIDED TWO_PARTS);
    discover_or_fail(w);
    check_changed(w, DIVIDED TWO_PARTS "proc 8 compute 4711 900\n", false);
    check_changed(w, DIVIDED, true);
    check_changed(w, DIVIDED TWO_PARTS "instance 0 2 0 MIG-2 1g.10gb 9728 0 0\n", true);
    check_changed(w, DIVIDED "instance 0 1 0 MIG-1 3g.40gb 40448 48 0\n", true);
    /* The same UUID with another size. */
    check_changed(w,
                  DIVIDED "instance 0 7 0 MIG-7 2g.20gb 19968 0 0\n"
                          "instance 0 1 0 MIG-1 3g.40gb 40448 48 0\n",
                  true);
    check_changed(w, "card GPU-a 81920 500 0\nmig 0 0\ncard GPU-b 81920 500 0\nmig 1 0\n",
                  true);
    check_changed(w, DIVIDED TWO_PARTS "mig 1 1\n", true);
    /* A lost GPU has not been repartitioned. */
    check_changed(w, DIVIDED TWO_PARTS "status 0 15\n", false);
    sample_or_fail(w);
    assert_false(w->s.use[0].present);
    assert_false(w->s.use[1].present);
    assert_true(w->s.use[2].present);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_cards),
        TEST(test_the_kernels_numa_node_counts_first),
        TEST(test_compute_capability),
        TEST(test_use),
        TEST(test_energy_is_the_whole_gpus),
        TEST(test_memory_that_went_bad),
        TEST(test_accounts_tell_peaks_once),
        TEST(test_accounts_that_may_not_be_kept),
        TEST(test_old_library),
        TEST(test_memory_falls_back_when_the_newer_function_refuses),
        TEST(test_a_card_without_memory_of_its_own),
        TEST(test_a_card_whose_memory_fails_at_the_start_is_not_listed),
        TEST(test_many_processes),
        TEST(test_long_records_of_processes),
        TEST(test_processes_not_supported_is_unknown),
        TEST(test_a_lost_card_leaves_the_others),
        TEST(test_a_card_lost_at_the_start_is_not_listed),
        TEST(test_cards_that_do_not_answer_at_the_start_are_named),
        TEST(test_cards_that_nvml_does_not_list_are_named),
        TEST(test_all_cards_lost_at_the_start_is_an_error),
        TEST(test_a_card_that_only_fails_is_unreadable),
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
        TEST(test_instances_are_the_cards_of_a_divided_gpu),
        TEST(test_use_of_instances),
        TEST(test_compute_instances_share_a_memory),
        TEST(test_names_that_the_driver_does_not_make),
        TEST(test_a_divided_gpu_without_instances_is_no_card),
        TEST(test_a_new_partition_is_seen),
        TEST(test_a_new_compute_mode_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
