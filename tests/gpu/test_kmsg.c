/* Kernel log lines as drivers of several ages write them, and what their numbers mean for the
 * GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "gpu/kmsg.h"
#include "gpu/xid.h"

struct line {
    const char *message; /* after the record's head */
    enum kmsg_kind kind;
    const char *bus_id;
    int code;
    int pid;
    const char *name;
    const char *text;
};

static const struct line lines[] = {
    {"NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python, GPU has fallen off the bus.",
     KMSG_XID, "0000:3b:00", 79, 4711, "python", "GPU has fallen off the bus."},
    {"NVRM: Xid (PCI:0000:cb:00): 13, pid='<unknown>', name=<unknown>, Graphics SM Warp "
     "Exception on (GPC 7, TPC 7, SM 0): Illegal Instruction Parameter",
     KMSG_XID, "0000:cb:00", 13, 0, "",
     "Graphics SM Warp Exception on (GPC 7, TPC 7, SM 0): Illegal Instruction Parameter"},
    {"NVRM: Xid (PCI:0000:cb:00): 109, pid=1797828, name=pt_main_thread, Ch 00000008, "
     "errorString CTX SWITCH TIMEOUT, Info 0x58005",
     KMSG_XID, "0000:cb:00", 109, 1797828, "pt_main_thread",
     "Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x58005"},
    {"NVRM: Xid (PCI:0000:DC:00): 45, pid=1818990, name=python3, Ch 00000001 caused by "
     "previous Xid 149",
     KMSG_XID, "0000:dc:00", 45, 1818990, "python3", "Ch 00000001 caused by previous Xid 149"},
    {"NVRM: Xid (PCI:0000:01:00): 31, Ch 00000003, engmask 00000101, intr 10000000", KMSG_XID,
     "0000:01:00", 31, 0, "", "Ch 00000003, engmask 00000101, intr 10000000"},
    {"NVRM: Xid (0000:03:00): 14, Channel 00000001", KMSG_XID, "0000:03:00", 14, 0, "",
     "Channel 00000001"},
    {"NVRM: Xid (PCI:0019:01:00): 149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000)",
     KMSG_XID, "0019:01:00", 149, 0, "", "NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000)"},
    {"NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU "
     "Reset Required)",
     KMSG_XID, "0000:9b:00", 154, 0, "",
     "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"},
    {"NVRM: Xid (PCI:0000:81:00): 62, 322bff9a 0000b3b8 00000000 206a4b08", KMSG_XID,
     "0000:81:00", 62, 0, "", "322bff9a 0000b3b8 00000000 206a4b08"},
    {"NVRM: Xid (PCI:0000:81:00): 48", KMSG_XID, "0000:81:00", 48, 0, "", ""},
    {"NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.", KMSG_XID, "0000:3b:00", 79, 0, "",
     "GPU has fallen off the bus."},
    {"NVRM: GPU at PCI:0000:3b:00: GPU has fallen off the bus.", KMSG_XID, "0000:3b:00", 79, 0,
     "", "GPU has fallen off the bus."},
    {"NVRM: The NVIDIA GPU 0000:02:00.0\\x0aNVRM: has fallen off the bus and is not responding "
     "to commands.",
     KMSG_XID, "0000:02:00", 79, 0, "", "GPU has fallen off the bus."},
    {"NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024",
     KMSG_DRIVER, "", 0, 0, "", ""},
    {"NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build",
     KMSG_DRIVER, "", 0, 0, "", ""},
    {"NVRM: GPU at PCI:0000:01:00: GPU-1139a0a3-3982-ae1d-ccd6-8538802f3bdc", KMSG_OTHER, "", 0,
     0, "", ""},
    {"NVRM: Xid (PCI:0000:zz:00): 79, GPU has fallen off the bus.", KMSG_OTHER, "", 0, 0, "",
     ""},
    {"NVRM: Xid (PCI:0000:01:00): what", KMSG_OTHER, "", 0, 0, "", ""},
    {"NVRM: Xid (PCI:0000:01", KMSG_OTHER, "", 0, 0, "", ""},
    {"nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal", KMSG_OTHER, "", 0, 0, "",
     ""},
    {"usb 1-1: NVRM: Xid (PCI:0000:01:00): 79, by a hostile device", KMSG_OTHER, "", 0, 0, "",
     ""},
    {"", KMSG_OTHER, "", 0, 0, "", ""},
};

static void
test_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const struct line *want = &lines[i];
        char *line = xasprintf("4,%zu,5678901234,-;%s", 100 + i, want->message);
        struct kmsg_record got;
        if (kmsg_parse(line, strlen(line), &got) != 0)
            fail_msg("no record: %s", line);
        assert_int_equal(got.seq, 100 + i);
        if (got.kind != want->kind || got.code != want->code || got.pid != want->pid)
            fail_msg("kind %d code %d pid %d: %s", got.kind, got.code, got.pid, line);
        assert_string_equal(got.bus_id, want->bus_id);
        assert_string_equal(got.name, want->name);
        assert_string_equal(got.text, want->text);
        free(line);
    }
}

/* In MIG mode the driver names the instance, only the GPU instance, or neither. */
static void
test_instances(void **state)
{
    static const struct {
        const char *message;
        int gi, ci, code;
    } cases[] = {
        {"NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel", 5, -1,
         94},
        {"NVRM: Xid (PCI:0000:01:00 GPU-I:13 GPU-CI:02): 31, pid=9, name=a, MMU Fault", 13, 2,
         31},
        {"NVRM: Xid (PCI:0000:01:00): 95, pid=7062, Uncontained", -1, -1, 95},
        {"NVRM: Xid (PCI:0000:01:00 GPU-I:): 95, pid=7062, Uncontained", -1, -1, 0},
        {"NVRM: Xid (PCI:0000:01:00 GPU-X:05): 95, pid=7062, Uncontained", -1, -1, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *line = xasprintf("4,1,5678901234,-;%s", cases[i].message);
        struct kmsg_record got;
        assert_int_equal(kmsg_parse(line, strlen(line), &got), 0);
        if (got.gi != cases[i].gi || got.ci != cases[i].ci || got.code != cases[i].code)
            fail_msg("gi %d ci %d code %d: %s", got.gi, got.ci, got.code, line);
        assert_string_equal(got.bus_id, cases[i].code ? "0000:01:00" : "");
        free(line);
    }
}

static void
test_heads(void **state)
{
    static const struct {
        const char *line;
        int result;
        long long seq;
    } cases[] = {
        {"6,339,5140900,-;NET: Registered protocol family 10", 0, 339},
        {"30,340,5690716,-;udevd[80]: starting version 181", 0, 340},
        {"6,341,5690717,c,caller=T1;more fields may come", 0, 341},
        {"4,9007199254740993,1,-;", 0, 9007199254740993},
        {" SUBSYSTEM=acpi", -1, 0},
        {" DEVICE=+acpi:PNP0A03:00", -1, 0},
        {"", -1, 0},
        {"6,339,5140900,-", -1, 0},
        {"6;339;text", -1, 0},
        {"x,339,1,-;text", -1, 0},
        {"6,99999999999999999999,1,-;text", -1, 0},
        {"6,-1,1,-;text", -1, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kmsg_record got;
        if (kmsg_parse(cases[i].line, strlen(cases[i].line), &got) != cases[i].result)
            fail_msg("'%s'", cases[i].line);
        if (cases[i].result == 0)
            assert_int_equal(got.seq, cases[i].seq);
    }
}

static void
test_programs_cannot_speak_for_the_driver(void **state)
{
    static const char line[] = "12,9,1,-;NVRM: Xid (PCI:0000:01:00): 79, pid=1, name=x, no";
    struct kmsg_record got;

    (void)state;
    assert_int_equal(kmsg_parse(line, strlen(line), &got), 0);
    assert_int_equal(got.kind, KMSG_OTHER);
    assert_int_equal(got.seq, 9);
}

static void
test_long_and_strange_words_are_cut_and_made_printable(void **state)
{
    char line[1024] = "4,1,1,-;NVRM: Xid (PCI:0000:01:00): 8, pid=1, name=\033[31mred, ";
    struct kmsg_record got;

    (void)state;
    memset(line + strlen(line), 'x', 600);
    assert_int_equal(kmsg_parse(line, strlen(line), &got), 0);
    assert_string_equal(got.name, "?[31mred");
    assert_int_equal(strlen(got.text), KMSG_TEXT_MAX - 1);
}

static void
test_what_the_numbers_mean(void **state)
{
    static const struct {
        int code;
        const char *text;
        enum xid_action action;
    } cases[] = {
        {13, "Graphics Exception", XID_PROGRAM},
        {31, "MMU Fault", XID_PROGRAM},
        {43, "Ch 00000001", XID_PROGRAM},
        {45, "Ch 00000001 caused by previous Xid 79", XID_PROGRAM},
        {48, "DBE", XID_RESET},
        {63, "Row Remapper: New row marked for remapping, reset gpu to activate.", XID_NOTE},
        {64, "Row Remapper: Failure", XID_RESET},
        {79, "GPU has fallen off the bus.", XID_RESET},
        {94, "Contained", XID_PROGRAM},
        {95, "Uncontained", XID_RESET},
        {119, "Timeout waiting for RPC from GSP!", XID_RESET},
        {145, "RLW_RXPIPE Nonfatal XC0 i0 Link 13", XID_NOTE},
        {149, "NETIR Fatal XC0 i0 Link -1", XID_RESET},
        {154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
         XID_RESET},
        {154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
         XID_NOTE},
        {154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
         XID_REBOOT},
        {154, "", XID_NOTE},
        {4242, "of a driver to come", XID_NOTE},
        {0, "", XID_NOTE},
        {-1, "", XID_NOTE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (xid_action_of(cases[i].code, cases[i].text) != cases[i].action)
            fail_msg("%d: %s", cases[i].code, cases[i].text);
    }
}

/* The table is searched by bisection. */
static void
test_every_number_is_found_under_itself(void **state)
{
    int found = 0;

    (void)state;
    for (int code = 1; code < 1000; code++) {
        const struct xid *x = xid_find(code);
        assert_non_null(x->meaning);
        if (x->code == code)
            found++;
        else
            assert_int_equal(x->code, 0);
    }
    assert_true(found >= 40);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_instances),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_programs_cannot_speak_for_the_driver),
        cmocka_unit_test(test_long_and_strange_words_are_cut_and_made_printable),
        cmocka_unit_test(test_what_the_numbers_mean),
        cmocka_unit_test(test_every_number_is_found_under_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
