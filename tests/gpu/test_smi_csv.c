/* nvidia-smi's tables: complete ones, ones with gaps, and error texts instead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "gpu/backend.h"
#include "gpu/smi_csv.h"

struct world {
    struct backend_machine m;
    struct backend_sample s;
    struct err e;
};

static int
setup(void **state)
{
    *state = calloc(1, sizeof(struct world));
    return *state ? 0 : -1;
}

static int
teardown(void **state)
{
    struct world *w = *state;

    backend_sample_free(&w->s);
    free(w);
    return 0;
}

static int
gpus(struct world *w, const char *text)
{
    return smi_csv_gpus(text, strlen(text), &w->m, &w->s, &w->e);
}

static int
procs(struct world *w, const char *text)
{
    return smi_csv_procs(text, strlen(text), &w->m, &w->s, &w->e);
}

#define TWO_CARDS                                                                              \
    "0, GPU-aaaa, 24564, 512, 93, 61, NVIDIA GeForce RTX 4090, 00000000:01:00.0, Default\n"    \
    "1, GPU-bbbb, 81559, 0, 0, 30, NVIDIA H100, 0000000A:41:00.0, Exclusive_Process\n"

static void
test_two_cards(void **state)
{
    struct world *w = *state;
    const uint32_t card = CARD_HAS_BUS_ID | CARD_HAS_COMPUTE_MODE;
    const uint32_t use = CARD_HAS_USED | CARD_HAS_UTIL | CARD_HAS_TEMPERATURE;

    assert_int_equal(gpus(w, TWO_CARDS), 0);
    assert_int_equal(w->m.n, 2);
    assert_int_equal(w->m.cards[0].valid, card);
    assert_string_equal(w->m.cards[0].uuid, "GPU-aaaa");
    assert_string_equal(w->m.cards[0].name, "NVIDIA GeForce RTX 4090");
    assert_string_equal(w->m.cards[0].bus_id, "0000:01:00.0");
    assert_int_equal(w->m.cards[0].total_mib, 24564);
    assert_int_equal(w->m.cards[1].index, 1);
    assert_string_equal(w->m.cards[1].bus_id, "000a:41:00.0");
    assert_int_equal(w->m.cards[1].compute_mode, CARD_COMPUTE_EXCLUSIVE);
    assert_int_equal(w->s.use[0].valid, use);
    assert_int_equal(w->s.use[0].used_mib, 512);
    assert_int_equal(w->s.use[0].util, 93);
    assert_int_equal(w->s.use[0].temperature_c, 61);
    assert_int_equal(w->s.use[1].valid, use);
    assert_int_equal(w->s.use[1].used_mib, 0);
    assert_true(w->s.use[1].present);
}

static void
test_what_is_not_reported_has_no_bit(void **state)
{
    struct world *w = *state;

    assert_int_equal(gpus(w, "0, GPU-a, 8192, [N/A], [Not Supported], [Unknown Error], Tesla, "
                             "[N/A], [Not Supported]\r\n"),
                     0);
    assert_int_equal(w->m.n, 1);
    assert_int_equal(w->m.cards[0].valid, 0);
    assert_int_equal(w->s.use[0].valid, 0);
    assert_true(w->s.use[0].present);
    assert_string_equal(w->m.cards[0].name, "Tesla");
}

static void
test_units_and_commas_in_names(void **state)
{
    struct world *w = *state;

    assert_int_equal(gpus(w, "7, GPU-a, 8192 MiB, 10 MiB, 5 %, 40, Card, big, one, "
                             "00000000:01:00.0, Prohibited\n"),
                     0);
    assert_string_equal(w->m.cards[0].name, "Card, big, one");
    assert_int_equal(w->m.cards[0].index, 7);
    assert_int_equal(w->m.cards[0].compute_mode, CARD_COMPUTE_PROHIBITED);
    assert_int_equal(w->s.use[0].used_mib, 10);
    assert_int_equal(w->s.use[0].util, 5);
}

static void
test_a_card_that_cannot_be_identified_or_read_is_left_out(void **state)
{
    struct world *w = *state;

    assert_int_equal(
        gpus(w, "0, [Unknown Error], 8192, 0, 0, 0, A, 00000000:01:00.0, Default\n"
                "1, GPU-b, [Unknown Error], 0, 0, 0, B, 00000000:02:00.0, Default\n"
                "[Unknown Error], GPU-c, 8192, 0, 0, 0, C, 00000000:03:00.0, Default\n"
                "Unable to determine the device handle for GPU 0000:04:00.0: GPU is lost.\n"
                "3, GPU-d, 8192, 1, 2, 3, D, 00000000:05:00.0, Default\n"),
        0);
    assert_int_equal(w->m.n, 1);
    assert_string_equal(w->m.cards[0].uuid, "GPU-d");
    assert_int_equal(w->s.use[0].util, 2);
}

/* GB10: the GPU shares the machine's memory. */
static void
test_a_card_without_memory_of_its_own(void **state)
{
    struct world *w = *state;

    assert_int_equal(gpus(w, "0, GPU-a, [N/A], [N/A], 7, 41, NVIDIA GB10, 0000000F:01:00.0, "
                             "Default\n"
                             "1, GPU-b, [Not Supported], [Not Supported], 0, 0, B, "
                             "00000000:02:00.0, Default\n"),
                     0);
    assert_int_equal(w->m.n, 2);
    assert_string_equal(w->m.cards[0].name, "NVIDIA GB10");
    assert_int_equal(w->m.cards[0].total_mib, 0);
    assert_int_equal(w->m.cards[1].total_mib, 0);
    assert_false(w->s.use[0].valid & CARD_HAS_USED);
    assert_int_equal(w->s.use[0].util, 7);
}

static void
test_no_devices(void **state)
{
    struct world *w = *state;

    assert_int_equal(gpus(w, "No devices were found\n"), 0);
    assert_int_equal(w->m.n, 0);
    assert_int_equal(gpus(w, ""), 0);
    assert_int_equal(w->m.n, 0);
}

static void
test_words_instead_of_a_table(void **state)
{
    struct world *w = *state;

    assert_int_equal(gpus(w, "Failed to initialize NVML: Unknown Error\n"), -1);
    assert_non_null(strstr(w->e.text, "Failed to initialize NVML: Unknown Error"));
    assert_int_equal(gpus(w, TWO_CARDS), 0);
    assert_int_equal(procs(w, "Something, else\n"), -1);
    assert_non_null(strstr(w->e.text, "Something, else"));
}

static void
test_more_cards_than_a_machine_has(void **state)
{
    struct world *w = *state;
    char text[(GPU_MAX + 1) * 64] = "";
    size_t n = 0;

    for (int i = 0; i <= GPU_MAX; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%d,U%d,1,0,0,0,N,B,Default\n", i, i);
    assert_int_equal(gpus(w, text), -1);
    assert_non_null(strstr(w->e.text, "more than 64"));
}

static void
test_compute_capabilities(void **state)
{
    struct world *w = *state;
    static const char text[] = "GPU-bbbb, 8.6\nGPU-aaaa, [N/A]\nGPU-gone, 9.0\nGPU-aaaa\n";

    assert_int_equal(gpus(w, TWO_CARDS), 0);
    smi_csv_cc(text, strlen(text), &w->m);
    assert_false(w->m.cards[0].valid & CARD_HAS_CC);
    assert_true(w->m.cards[1].valid & CARD_HAS_CC);
    assert_int_equal(w->m.cards[1].cc, 86);
}

static void
test_processes(void **state)
{
    struct world *w = *state;

    assert_int_equal(gpus(w, TWO_CARDS), 0);
    assert_int_equal(procs(w, "GPU-bbbb, 4711, 600\n"
                              "GPU-bbbb, 4712, [N/A]\n"
                              "GPU-gone, 4713, 10\n"
                              "GPU-aaaa, [Not Found], 10\n"
                              "GPU-bbbb, 99999999999999999999, 5\n"
                              "GPU-bbbb, 4711, 700 MiB\n"),
                     0);
    assert_true(w->s.use[0].valid & CARD_HAS_PROCS);
    assert_int_equal(w->s.use[0].n_procs, 0);
    assert_int_equal(w->s.use[1].n_procs, 2);
    assert_int_equal(w->s.use[1].procs[0].pid, 4711);
    assert_int_equal(w->s.use[1].procs[0].mib, 700);
    assert_int_equal(w->s.use[1].procs[1].mib, -1);
}

static void
test_no_process_is_known_but_not_supported_is_not(void **state)
{
    struct world *w = *state;

    assert_int_equal(gpus(w, TWO_CARDS), 0);
    assert_int_equal(procs(w, "[Not Supported]\n"), 0);
    assert_false(w->s.use[0].valid & CARD_HAS_PROCS);
    assert_int_equal(procs(w, "\n"), 0);
    assert_true(w->s.use[0].valid & CARD_HAS_PROCS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* A GPU with instances is not listed; a GPU without any, and lines about anything else, change
 * nothing. */
static void
test_divided_gpus_are_left_out(void **state)
{
    struct world *w = *state;

    assert_int_equal(gpus(w, TWO_CARDS), 0);
    smi_csv_leave_out_divided("GPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-aaaa)\n"
                              "  a line that is no instance\n"
                              "GPU 1: NVIDIA H100 (UUID: GPU-bbbb)\n"
                              "  MIG 3g.40gb     Device  0: (UUID: MIG-1)\n"
                              "  MIG 3g.40gb     Device  1: (UUID: MIG-2)",
                              &w->m);
    assert_int_equal(w->m.n, 1);
    assert_string_equal(w->m.cards[0].uuid, "GPU-aaaa");
    assert_int_equal(w->m.n_left_out, 1);
    assert_string_equal(w->m.left_out[0], "GPU-bbbb is in MIG mode: nvidia-smi does not report "
                                          "its instances, and NVML could not be loaded");
    smi_csv_leave_out_divided("", &w->m);
    smi_csv_leave_out_divided("  MIG 1g.5gb\nGPU 7: (UUID: GPU-cccc)\n  MIG 1g.5gb\n", &w->m);
    assert_int_equal(w->m.n, 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_two_cards),
        TEST(test_what_is_not_reported_has_no_bit),
        TEST(test_units_and_commas_in_names),
        TEST(test_a_card_that_cannot_be_identified_or_read_is_left_out),
        TEST(test_a_card_without_memory_of_its_own),
        TEST(test_no_devices),
        TEST(test_words_instead_of_a_table),
        TEST(test_more_cards_than_a_machine_has),
        TEST(test_compute_capabilities),
        TEST(test_processes),
        TEST(test_no_process_is_known_but_not_supported_is_not),
        TEST(test_divided_gpus_are_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
