/* The probe's output lines: every field, and null for unreported values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "gpu/backend.h"
#include "gpu/probe_message.h"
#include "support.h"

static int64_t
uid_of(int32_t pid)
{
    return pid == 1 ? 0 : -1;
}

static json_t *
parse(const struct buf *line)
{
    json_error_t why;
    json_t *v = json_loadb(line->data, line->len, 0, &why);

    if (!v)
        fail_msg("%s in %s", why.text, line->data);
    assert_int_equal(line->data[line->len - 1], '\n');
    assert_ptr_equal(strchr(line->data, '\n'), line->data + line->len - 1);
    return v;
}

static struct backend_machine *
two_cards(void)
{
    struct backend_machine *m = calloc(1, sizeof *m);

    snprintf(m->driver, sizeof m->driver, "550.54");
    m->n = 2;
    m->cards[0] = (struct backend_card){
        .valid = CARD_HAS_BUS_ID | CARD_HAS_MINOR | CARD_HAS_NUMA | CARD_HAS_COMPUTE_MODE |
                 CARD_HAS_CC,
        .index = 2,
        .uuid = "GPU-a",
        .name = "Quote \" and \n break",
        .bus_id = "0000:01:00.0",
        .minor = 5,
        .numa = 0,
        .cc = 86,
        .total_mib = 24576,
        .compute_mode = CARD_COMPUTE_PROHIBITED,
    };
    m->cards[1] = (struct backend_card){.valid = CARD_HAS_DRI | CARD_HAS_ORDER,
                                        .index = 3,
                                        .vendor = CARD_INTEL,
                                        .order = 0,
                                        .dri_card = 1,
                                        .dri_render = 129,
                                        .uuid = "GPU-b"};
    backend_machine_link(m, 1, 0);
    backend_machine_link(m, 0, 1);
    backend_machine_link(m, 1, 1);
    return m;
}

static void
test_hello(void **state)
{
    struct backend_machine *m = two_cards();
    auto_buf struct buf out = BUF_INIT;

    (void)state;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(0, &cpus);
    CPU_SET(1, &cpus);
    backend_machine_add_node(m, 3, &cpus);
    message_hello(&out, "nvml", m, 4711);
    json_t *v = parse(&out);
    check_size(v, "nodes", 1);
    check_int(v, "nodes.0.node", 3);
    check_str(v, "nodes.0.cpus", "0-1");
    check_int(v, "hello", 1);
    check_str(v, "backend", "nvml");
    check_str(v, "driver", "550.54");
    check_int(v, "kernel_log", 4711);
    check_size(v, "gpus", 2);
    check_int(v, "gpus.0.index", 2);
    check_str(v, "gpus.0.uuid", "GPU-a");
    check_str(v, "gpus.0.name", "Quote \" and \n break");
    check_int(v, "gpus.0.total_mib", 24576);
    check_str(v, "gpus.0.bus_id", "0000:01:00.0");
    check_int(v, "gpus.0.minor", 5);
    check_int(v, "gpus.0.numa", 0);
    check_str(v, "gpus.0.compute_mode", "prohibited");
    check_int(v, "gpus.0.cc", 86);
    check_null(v, "gpus.1.cc");
    check_null(v, "gpus.1.bus_id");
    check_null(v, "gpus.1.minor");
    check_null(v, "gpus.1.numa");
    check_null(v, "gpus.1.compute_mode");
    check_null(v, "gpus.0.vendor");
    check_str(v, "gpus.1.vendor", "intel");
    check_int(v, "gpus.1.order", 0);
    check_int(v, "gpus.1.dri.0", 1);
    check_int(v, "gpus.1.dri.1", 129);
    check_null(v, "gpus.1.total_mib");
    check_size(v, "links", 1);
    check_int(v, "links.0.0", 2);
    check_int(v, "links.0.1", 3);
    json_decref(v);
    free(m);
}

static void
test_hello_without_driver_says_null(void **state)
{
    struct backend_machine *m = two_cards();
    auto_buf struct buf out = BUF_INIT;

    (void)state;
    m->driver[0] = '\0';
    message_hello(&out, "nvidia-smi", m, -1);
    json_t *v = parse(&out);
    check_null(v, "driver");
    check_null(v, "kernel_log");
    json_decref(v);
    free(m);
}

static void
test_sample(void **state)
{
    struct backend_machine *m = two_cards();
    struct backend_sample *s = calloc(1, sizeof *s);
    auto_buf struct buf out = BUF_INIT;

    (void)state;
    s->use[0].present = true;
    s->use[0].valid = CARD_HAS_USED | CARD_HAS_UTIL | CARD_HAS_TEMPERATURE | CARD_HAS_PROCS;
    s->use[0].temperature_c = 61;
    backend_usage_add(&s->use[0], 1, -1);
    backend_usage_add(&s->use[0], 4711, 300);
    backend_usage_add(&s->use[0], 4711, 400);
    backend_usage_add(&s->use[0], 4711, -1);
    backend_usage_add_drawing(&s->use[0], 4711, 500);
    backend_usage_add_drawing(&s->use[0], 4712, 4);
    backend_usage_add_drawing(&s->use[0], 4713, 4);
    backend_usage_add(&s->use[0], 4713, 4);
    s->use[1].present = true;
    message_sample(&out, 77, m, s, NULL, 0, uid_of);
    json_t *v = parse(&out);
    check_int(v, "sample", 77);
    check_size(v, "gpus", 2);
    check_str(v, "gpus.0.uuid", "GPU-a");
    check_int(v, "gpus.0.used_mib", 0);
    check_int(v, "gpus.0.util", 0);
    check_int(v, "gpus.0.temperature_c", 61);
    check_size(v, "gpus.0.procs", 4);
    check_int(v, "gpus.0.procs.0.pid", 1);
    check_null(v, "gpus.0.procs.0.mib");
    check_int(v, "gpus.0.procs.0.uid", 0);
    check_int(v, "gpus.0.procs.1.mib", 500);
    check_int(v, "gpus.0.procs.2.pid", 4712);
    const json_t *gpu = json_array_get(json_object_get(v, "gpus"), 0);
    for (size_t i = 0; i < 4; i++) {
        const json_t *proc = json_array_get(json_object_get(gpu, "procs"), i);
        assert_int_equal(json_is_true(json_object_get(proc, "only_draws")), i == 2);
    }
    check_null(v, "gpus.0.procs.1.uid");
    check_null(v, "gpus.1.used_mib");
    check_null(v, "gpus.1.util");
    check_null(v, "gpus.1.temperature_c");
    check_null(v, "gpus.1.procs");
    json_decref(v);
    backend_sample_free(s);
    free(s);
    free(m);
}

static void
test_absent_card_is_left_out(void **state)
{
    struct backend_machine *m = two_cards();
    struct backend_sample *s = calloc(1, sizeof *s);
    auto_buf struct buf out = BUF_INIT;

    (void)state;
    s->use[1].present = true;
    message_sample(&out, 1, m, s, NULL, 0, uid_of);
    json_t *v = parse(&out);
    check_size(v, "gpus", 1);
    check_str(v, "gpus.0.uuid", "GPU-b");
    json_decref(v);
    free(s);
    free(m);
}

static void
test_error(void **state)
{
    auto_buf struct buf out = BUF_INIT;

    (void)state;
    message_error(&out, "no \"driver\"\n");
    json_t *v = parse(&out);
    check_str(v, "error", "no \"driver\"\n");
    json_decref(v);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hello),  cmocka_unit_test(test_hello_without_driver_says_null),
        cmocka_unit_test(test_sample), cmocka_unit_test(test_absent_card_is_left_out),
        cmocka_unit_test(test_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
