/* berth-probe as the daemon sees it: lines on pipes, with each of its backends. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "drm_tree.h"
#include "support.h"

static char *dir;
static struct drm_tree tree;

static int
setup(void **state)
{
    (void)state;
    dir = support_make_dir();
    auto_free char *script = xasprintf("%s/script", dir);
    unsetenv("BERTH_NVML");
    setenv("BERTH_NVIDIA_SMI", "/nowhere/nvidia-smi", 1);
    setenv("FAKE_SMI_DIR", dir, 1);
    setenv("BERTH_SYS", dir, 1); /* not the machine's own GPUs */
    return setenv("BERTH_FAKE_NVML", script, 1);
}

static int
teardown(void **state)
{
    (void)state;
    support_remove_dir(dir);
    return 0;
}

static struct child
start(const char *backend, const char *extra)
{
    const char *argv[] = {support_path("BERTH_TEST_PROBE"), "--backend", backend, extra, NULL};

    return child_start(argv);
}

static struct child
start_sim(const char *spec)
{
    const char *argv[] = {
        support_path("BERTH_TEST_PROBE"), "--sim", spec, "--sim-dir", dir, NULL};

    return child_start(argv);
}

static void
test_sim_speaks_the_protocol(void **state)
{
    struct child c = start_sim("1x8G,1x80G");

    (void)state;
    json_t *v = child_json(&c);
    check_int(v, "hello", 1);
    check_str(v, "backend", "sim");
    check_size(v, "gpus", 2);
    check_int(v, "gpus.0.total_mib", 8192);
    check_int(v, "gpus.1.total_mib", 81920);
    check_str(v, "gpus.1.compute_mode", "default");
    check_size(v, "links", 0);
    json_decref(v);
    assert_true(child_is_silent(&c, 50));
    child_say(&c, "sample 5\n");
    v = child_json(&c);
    check_int(v, "sample", 5);
    check_size(v, "gpus", 2);
    check_int(v, "gpus.0.used_mib", 0);
    check_int(v, "gpus.0.util", 0);
    check_int(v, "gpus.0.temperature_c", 35);
    check_size(v, "gpus.0.procs", 0);
    json_decref(v);
    assert_int_equal(child_end(&c), 0);
}

static void
test_requests_in_pieces_in_heaps_and_unknown_ones(void **state)
{
    struct child c = start_sim("1");

    (void)state;
    json_decref(child_json(&c));
    child_say(&c, "sample 1\nsample 2\nfuture words\nsample x\nsample 9007199254740993\nsam");
    for (long long want = 1; want <= 3; want++) {
        json_t *v = child_json(&c);
        check_int(v, "sample", want < 3 ? want : 9007199254740993);
        json_decref(v);
    }
    assert_true(child_is_silent(&c, 50));
    child_say(&c, "ple 4\r\n");
    json_t *v = child_json(&c);
    check_int(v, "sample", 4);
    json_decref(v);
    assert_int_equal(child_end(&c), 0);
}

static void
test_a_request_without_end_is_an_error(void **state)
{
    struct child c = start_sim("1");

    (void)state;
    json_decref(child_json(&c));
    /* Exactly one byte too many: the probe may exit before more is written. */
    for (int i = 0; i < 4097; i += 10)
        child_say(&c, "0123456789");
    json_t *v = child_json(&c);
    check_str(v, "error", "a request longer than 4096 bytes");
    json_decref(v);
    assert_int_equal(child_end(&c), 1);
}

static void
test_no_gpu_says_what_was_tried_and_what_would_work(void **state)
{
    static const char *const expected[] = {"nvml: cannot load", "libnvidia-ml",
                                           "/nowhere/nvidia-smi", "drm: there is no GPU of",
                                           "--sim 2"};

    (void)state;
    setenv("BERTH_NVML", "/nowhere/libnvidia-ml.so.1", 1);
    struct child c = start("auto", NULL);
    json_t *v = child_json(&c);
    const char *words = json_string_value(json_object_get(v, "error"));
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        if (!words || !strstr(words, expected[i]))
            fail_msg("no '%s' in: %s", expected[i], words);
    }
    json_decref(v);
    assert_int_equal(child_end(&c), 1);
}

static void
test_bad_options(void **state)
{
    (void)state;
    struct child c = start("amd", NULL);
    json_t *v = child_json(&c);
    check_str(v, "error", "unknown backend 'amd'; use auto, nvml, nvidia-smi, drm or sim");
    json_decref(v);
    assert_int_equal(child_end(&c), 1);
    c = start("auto", "--what");
    assert_int_equal(child_end(&c), 2);
    c = start("sim", NULL);
    v = child_json(&c);
    check_str(v, "error", "simulated GPUs need a folder: --sim-dir DIR");
    json_decref(v);
    assert_int_equal(child_end(&c), 1);
}

static struct child
start_sim_after(const char *after)
{
    const char *argv[] = {support_path("BERTH_TEST_PROBE"),
                          "--sim",
                          "2",
                          "--sim-dir",
                          dir,
                          "--log-after",
                          after,
                          NULL};

    return child_start(argv);
}

/* Existing log lines count only after the record that the daemon has seen. */
static void
test_the_kernels_log_is_read_from_where_the_daemon_stood(void **state)
{
    static const struct {
        const char *after;
        int seqs; /* XIDs reported */
    } cases[] = {{"-1", 0}, {"6", 1}, {"5", 2}, {"9", 0}};

    (void)state;
    support_write(dir, "kmsg",
                  "6,5,0,-;usb 1-1: new device\n SUBSYSTEM=usb\n"
                  "3,6,0,-;NVRM: Xid (PCI:0000:01:00): 31, pid=4711, name=python, MMU Fault\n"
                  "3,7,0,-;NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus.\n"
                  "3,8,0,-;NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus.\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct child c = start_sim_after(cases[i].after);
        json_t *v = child_json(&c);
        check_int(v, "kernel_log", cases[i].seqs || i == 0 ? 8 : 9);
        json_decref(v);
        child_say(&c, "sample 1\n");
        v = child_json(&c);
        if (cases[i].seqs > 0) {
            check_int(v, "kernel_log", 8);
            check_size(v, "faults", (size_t)cases[i].seqs);
            json_decref(v);
            v = child_json(&c);
        }
        check_int(v, "sample", 1);
        json_decref(v);
        assert_int_equal(child_end(&c), 0);
    }
}

/* A difference that decides the GPU's fate makes it no repetition. */
static void
test_errors_that_repeat_others_in_part_are_told(void **state)
{
    auto_buf struct buf log = BUF_INIT;
    struct child c;
    int told = 0, last = 0;

    (void)state;
    buf_adds(&log, "3,1,0,-;NVRM: Xid (PCI:0000:01:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 3\n"
                   "3,2,0,-;NVRM: Xid (PCI:0000:01:00): 145, RLW_REMAP Fatal XC0 i0 Link 3\n"
                   "3,3,0,-;NVRM: Xid (PCI:0000:01:00): 48, DBE\n"
                   "3,4,0,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15\n"
                   "3,5,0,-;NVRM: Xid (PCI:0000:01:00): 48, DBE\n");
    for (int i = 0; i < 70; i++)
        buf_addf(&log, "3,%d,0,-;NVRM: Xid (PCI:0000:01:00): 45, pid=%d, name=a, Ch 1\n", 6 + i,
                 1000 + i);
    buf_adds(&log, "3,76,0,-;NVRM: Xid (PCI:0000:01:00): 95, pid=7, name=a, Uncontained\n");
    support_write(dir, "kmsg", buf_str(&log));
    c = start_sim_after("0");
    json_decref(child_json(&c));
    child_say(&c, "sample 1\n");
    for (;;) {
        json_t *v = child_json(&c);
        const json_t *faults = json_object_get(v, "faults");
        size_t n = json_array_size(faults);
        told += (int)n;
        if (n > 0)
            last =
                (int)json_integer_value(json_object_get(json_array_get(faults, n - 1), "xid"));
        json_decref(v);
        if (n == 0)
            break;
    }
    assert_int_equal(told, 76);
    assert_int_equal(last, 95);
    assert_int_equal(child_end(&c), 0);
}

static void
test_errors_come_before_the_sample_that_may_hang(void **state)
{
    struct child c = start_sim("2");

    (void)state;
    json_decref(child_json(&c));
    support_write(dir, "fault", "hang\n");
    support_write(dir, "kmsg",
                  "3,1,0,-;NVRM: Xid (PCI:0000:02:00): 79, pid=4711, name=python, GPU has "
                  "fallen off the bus.\n");
    child_say(&c, "sample 1\n");
    json_t *v = child_json(&c);
    check_int(v, "faults.0.xid", 79);
    check_str(v, "faults.0.bus_id", "0000:02:00");
    check_int(v, "faults.0.pid", 4711);
    check_str(v, "faults.0.process", "python");
    json_decref(v);
    assert_true(child_is_silent(&c, 50));
    kill(c.pid, SIGKILL);
    assert_int_equal(child_end(&c), 128 + SIGKILL);
}

/* A log that can be polled, as /dev/kmsg can: new lines are reported unasked. */
static void
test_errors_are_told_as_they_come(void **state)
{
    auto_free char *log = xasprintf("%s/kmsg", dir);

    (void)state;
    assert_int_equal(mkfifo(log, 0600), 0);
    int fd = open(log, O_RDWR | O_CLOEXEC);
    struct child c = start_sim("2");
    json_decref(child_json(&c));
    dprintf(fd, "3,1,0,-;NVRM: Xid (PCI:0000:01:00): 63, pid=1, name=x, Row Remapper\n");
    json_t *v = child_json(&c);
    check_int(v, "faults.0.xid", 63);
    json_decref(v);
    close(fd);
    assert_int_equal(child_end(&c), 0);
}

static void
write_script(const char *text)
{
    setenv("BERTH_NVML", support_path("BERTH_TEST_NVML"), 1);
    support_write(dir, "script", text);
}

static void
test_nvml_says_whose_the_processes_are(void **state)
{
    auto_free char *script = xasprintf("driver 550.54\ncard GPU-a 24576 76 500\nload 0 12 40\n"
                                       "proc 0 compute %d 400\nproc 0 compute 2147483000 -1\n",
                                       getpid());

    (void)state;
    write_script(script);
    struct child c = start("auto", NULL);
    json_t *v = child_json(&c);
    check_str(v, "backend", "nvml");
    check_str(v, "driver", "550.54");
    check_int(v, "gpus.0.total_mib", 24500);
    check_str(v, "gpus.0.bus_id", "0000:10:00.0");
    check_int(v, "gpus.0.minor", 7);
    json_decref(v);
    child_say(&c, "sample 0\n");
    v = child_json(&c);
    check_int(v, "gpus.0.used_mib", 500);
    check_int(v, "gpus.0.util", 12);
    check_int(v, "gpus.0.procs.0.mib", 400);
    check_int(v, "gpus.0.procs.0.uid", getuid());
    check_null(v, "gpus.0.procs.1.mib");
    check_null(v, "gpus.0.procs.1.uid");
    json_decref(v);
    assert_int_equal(child_end(&c), 0);
}

static void
test_nvml_that_hangs_dies_with_its_probe(void **state)
{
    (void)state;
    write_script("card GPU-a 24576 76 500\n");
    struct child c = start("nvml", NULL);
    json_decref(child_json(&c));
    write_script("card GPU-a 24576 76 500\nhang\n");
    child_say(&c, "sample 1\n");
    assert_true(child_is_silent(&c, 200));
    kill(c.pid, SIGKILL);
    assert_int_equal(child_end(&c), 128 + SIGKILL);
}

static void
test_a_driver_that_goes_away_ends_the_probe(void **state)
{
    (void)state;
    write_script("card GPU-a 24576 76 500\n");
    struct child c = start("nvml", NULL);
    json_decref(child_json(&c));
    write_script("card GPU-a 24576 76 500\nstatus 0 9\n");
    child_say(&c, "sample 1\n");
    json_t *v = child_json(&c);
    check_str(v, "error", "NVML cannot read the GPUs: Driver Not Loaded (error 9)");
    json_decref(v);
    assert_int_equal(child_end(&c), 1);
}

/* --- AMD and Intel --- */

#define AMD_PROCESS                                                                            \
    "drm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-pdev:\t0000:41:00.0\n"                        \
    "drm-resident-vram:\t2 GiB\n"

static int
setup_tree(void **state)
{
    setup(state);
    drm_tree_make(&tree);
    drm_tree_add_mi210(&tree, 0, "0000:41:00.0", "0c1e8a2b5f3d4960\n");
    drm_tree_add_kfd(&tree, 0, "0000:41:00.0", 416, 61209);
    drm_tree_add_card(&tree, 1, "0000:00:02.0", "i915", "8086:A780");
    drm_tree_add_fd(&tree, getpid(), 3, "renderD128", AMD_PROCESS);
    setenv("BERTH_SYS", tree.sys, 1);
    setenv("BERTH_PROC", tree.proc, 1);
    return setenv("BERTH_CGROUP", tree.cgroup, 1);
}

static int
teardown_tree(void **state)
{
    drm_tree_remove(&tree);
    unsetenv("BERTH_PROC");
    unsetenv("BERTH_CGROUP");
    return teardown(state);
}

static void
test_drm_is_the_third_choice(void **state)
{
    (void)state;
    setenv("BERTH_NVML", "/nowhere/libnvidia-ml.so.1", 1);
    drm_tree_put(&tree, "drm/0000:41:00.0/vram 68702699520\n", "cgroup/dmem.capacity");
    struct child c = start("auto", NULL);
    json_t *v = child_json(&c);
    check_str(v, "backend", "drm");
    check_str(v, "driver", "amdgpu");
    check_size(v, "gpus", 1);
    check_str(v, "gpus.0.uuid", "GPU-0c1e8a2b5f3d4960");
    check_str(v, "gpus.0.vendor", "amd");
    check_int(v, "gpus.0.order", 0);
    check_int(v, "gpus.0.dri.0", 0);
    check_int(v, "gpus.0.dri.1", 128);
    check_null(v, "gpus.0.minor");
    check_str(v, "gpus.0.cap", "dmem");
    check_str(v, "gpus.0.cap_key", "drm/0000:41:00.0/vram");
    check_str(v, "left_out.0",
              "0000:00:02.0 (i915) is left out: it is integrated and has no memory of its own");
    json_decref(v);
    child_say(&c, "sample 1\n");
    v = child_json(&c);
    check_int(v, "gpus.0.used_mib", 11);
    check_int(v, "gpus.0.procs.0.mib", 2048);
    check_int(v, "gpus.0.procs.0.uid", getuid());
    json_decref(v);
    assert_int_equal(child_end(&c), 0);
}

/* The kernel's accounting gives the size of a card whose driver does not. */
static void
test_sizes_by_dmem(void **state)
{
    (void)state;
    drm_tree_add_a770(&tree, 2, "0000:03:00.0", "i915");
    drm_tree_add_a770(&tree, 3, "0000:04:00.0", "xe");
    drm_tree_add_a770(&tree, 4, "0000:05:00.0", "i915");
    drm_tree_put(&tree,
                 "drm/0000:03:00.0/vram0 17095983104\ndrm/0000:04:00.0/vram0 16777216000\n"
                 "drm/0000:04:00.0/stolen 67108864\n",
                 "cgroup/dmem.capacity");
    struct child c = start("drm", NULL);
    json_t *v = child_json(&c);
    check_size(v, "gpus", 4);
    check_int(v, "gpus.0.total_mib", 16304);
    check_str(v, "gpus.0.vendor", "intel");
    check_int(v, "gpus.1.total_mib", 16000);
    check_str(v, "gpus.1.cap", "dmem");
    check_null(v, "gpus.2.total_mib");
    check_null(v, "gpus.2.cap");
    check_int(v, "gpus.3.total_mib", 65520);
    json_decref(v);
    assert_int_equal(child_end(&c), 0);
}

static void
test_cards_of_two_backends(void **state)
{
    auto_free char *script = xasprintf("driver 550.54\ncard GPU-a 24576 76 500\n"
                                       "card GPU-b 24576 76 600\nproc 1 compute %d 400\n",
                                       getpid());

    (void)state;
    write_script(script);
    struct child c = start("auto", NULL);
    json_t *v = child_json(&c);
    check_str(v, "backend", "nvml+drm");
    check_str(v, "driver", "550.54, amdgpu");
    check_size(v, "gpus", 3);
    check_str(v, "gpus.1.vendor", "nvidia");
    check_int(v, "gpus.2.index", 2);
    check_str(v, "gpus.2.vendor", "amd");
    check_size(v, "left_out", 1);
    json_decref(v);
    for (int i = 0; i < 2; i++) { /* the second reuses the first's memory */
        child_say(&c, "sample 5\n");
        v = child_json(&c);
        check_size(v, "gpus", 3);
        check_int(v, "gpus.0.used_mib", 500);
        check_int(v, "gpus.1.used_mib", 600);
        check_int(v, "gpus.1.procs.0.mib", 400);
        check_str(v, "gpus.2.uuid", "GPU-0c1e8a2b5f3d4960");
        check_int(v, "gpus.2.procs.0.mib", 2048);
        json_decref(v);
    }
    assert_int_equal(child_end(&c), 0);
}

/* Also together with NVIDIA's. */
static void
test_a_card_with_another_number_is_another_hello(void **state)
{
    static const char *const names[] = {"drm", "auto"};

    (void)state;
    write_script("card GPU-a 24576 76 500\n");
    for (int i = 0; i < 2; i++) {
        struct child c = start(names[i], NULL);
        json_t *v = child_json(&c);
        check_int(v, i ? "gpus.1.dri.0" : "gpus.0.dri.0", i ? 2 : 0);
        json_decref(v);
        drm_tree_move_card(&tree, i ? 2 : 0, NULL);
        drm_tree_put(&tree, "226:2\n", "sys/class/drm/card%d/dev", i ? 3 : 2);
        drm_tree_move_card(&tree, i ? 3 : 2, "0000:41:00.0");
        child_say(&c, "sample 1\n");
        v = child_json(&c);
        check_int(v, "hello", 1);
        check_int(v, i ? "gpus.1.dri.0" : "gpus.0.dri.0", i ? 3 : 2);
        json_decref(v);
        child_say(&c, "sample 2\n");
        v = child_json(&c);
        check_int(v, "sample", 2);
        check_str(v, i ? "gpus.1.uuid" : "gpus.0.uuid", "GPU-0c1e8a2b5f3d4960");
        json_decref(v);
        assert_int_equal(child_end(&c), 0);
    }
}

static void
test_a_file_that_hangs(void **state)
{
    auto_free char *path =
        xasprintf("%s/bus/pci/devices/0000:41:00.0/mem_info_vram_used", tree.sys);

    (void)state;
    struct child c = start("drm", NULL);
    json_decref(child_json(&c));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    child_say(&c, "sample 1\n");
    assert_true(child_is_silent(&c, 200));
    kill(c.pid, SIGKILL);
    assert_int_equal(child_end(&c), 128 + SIGKILL);
}

static void
use_fake_smi(const char *gpus, const char *procs)
{
    setenv("BERTH_NVML", "/nowhere/libnvidia-ml.so.1", 1);
    setenv("BERTH_NVIDIA_SMI", support_path("BERTH_TEST_SMI"), 1);
    support_write(dir, "gpus", gpus);
    support_write(dir, "procs", procs);
}

#define SMI_A "0, GPU-a, 24564, 512, 93, 61, RTX, 00000000:01:00.0, Default\n"
#define SMI_B "1, GPU-b, 24564, 0, [N/A], 30, RTX, 00000000:02:00.0, Default\n"

static void
test_nvidia_smi_is_the_second_choice(void **state)
{
    (void)state;
    use_fake_smi(SMI_A SMI_B, "GPU-a, 1, 500\n");
    struct child c = start("auto", NULL);
    json_t *v = child_json(&c);
    check_str(v, "backend", "nvidia-smi");
    check_size(v, "gpus", 2);
    check_str(v, "gpus.1.bus_id", "0000:02:00.0");
    check_null(v, "gpus.0.minor");
    json_decref(v);
    child_say(&c, "sample 3\n");
    v = child_json(&c);
    check_int(v, "sample", 3);
    check_int(v, "gpus.0.used_mib", 512);
    check_int(v, "gpus.0.procs.0.pid", 1);
    check_int(v, "gpus.0.procs.0.mib", 500);
    check_null(v, "gpus.1.util");
    check_size(v, "gpus.1.procs", 0);
    json_decref(v);
    assert_int_equal(child_end(&c), 0);
}

/* Like berthd, which has no children to wait for. */
static void
test_nvidia_smi_under_a_parent_that_ignores_children(void **state)
{
    (void)state;
    use_fake_smi(SMI_A, "");
    signal(SIGCHLD, SIG_IGN);
    struct child c = start("nvidia-smi", NULL);
    signal(SIGCHLD, SIG_DFL);
    json_t *v = child_json(&c);
    check_size(v, "gpus", 1);
    json_decref(v);
    assert_int_equal(child_end(&c), 0);
}

static void
test_nvidia_smi_with_a_lost_card_and_without_lists(void **state)
{
    (void)state;
    use_fake_smi(SMI_A SMI_B, "");
    struct child c = start("nvidia-smi", NULL);
    json_decref(child_json(&c));
    use_fake_smi(
        "Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.\n" SMI_B, "");
    support_write(dir, "gpus.status", "15\n");
    support_write(dir, "procs.status", "15\n");
    child_say(&c, "sample 1\n");
    json_t *v = child_json(&c);
    check_size(v, "gpus", 1);
    check_str(v, "gpus.0.uuid", "GPU-b");
    check_int(v, "gpus.0.temperature_c", 30);
    check_null(v, "gpus.0.procs");
    json_decref(v);
    assert_int_equal(child_end(&c), 0);
}

static void
check_smi_error(const char *gpus, const char *status, const char *words)
{
    use_fake_smi(gpus, "");
    support_write(dir, "gpus.status", status);
    struct child c = start("nvidia-smi", NULL);
    json_t *v = child_json(&c);
    const char *have = json_string_value(json_object_get(v, "error"));
    if (!have || !strstr(have, words))
        fail_msg("no '%s' in: %s", words, have);
    json_decref(v);
    assert_int_equal(child_end(&c), 1);
}

static void
test_nvidia_smi_that_fails(void **state)
{
    (void)state;
    check_smi_error("NVIDIA-SMI has failed because it couldn't communicate\n", "9\n",
                    "status 9: NVIDIA-SMI has failed");
    check_smi_error("Failed to initialize NVML: Driver/library version mismatch\n", "18\n",
                    "reboot");
    check_smi_error("No devices were found\n", "6\n", "No devices were found");
    check_smi_error("No devices were found\n", "0\n", "lists no GPU");
    check_smi_error("", "127\n", "status 127");
}

static void
test_faults_of_simulated_cards(void **state)
{
    struct child c = start_sim("2");

    (void)state;
    json_decref(child_json(&c));
    support_write(dir, "fault", "lost 0\nsilent-procs\n");
    child_say(&c, "sample 1\n");
    json_t *v = child_json(&c);
    check_size(v, "gpus", 1);
    check_int(v, "gpus.0.used_mib", 0);
    check_null(v, "gpus.0.procs");
    json_decref(v);
    support_write(dir, "fault", "error\n");
    child_say(&c, "sample 2\n");
    v = child_json(&c);
    assert_non_null(json_object_get(v, "error"));
    json_decref(v);
    assert_int_equal(child_end(&c), 1);
}

static void
test_simulated_death_and_hanging(void **state)
{
    (void)state;
    support_write(dir, "fault", "die\n");
    struct child c = start_sim("1");
    json_decref(child_json(&c));
    child_say(&c, "sample 1\n");
    assert_int_equal(child_end(&c), 128 + SIGKILL);
    support_write(dir, "fault", "hang\n");
    c = start_sim("1");
    json_decref(child_json(&c));
    child_say(&c, "sample 1\n");
    assert_true(child_is_silent(&c, 200));
    kill(c.pid, SIGTERM);
    assert_int_equal(child_end(&c), 128 + SIGTERM);
}

/* Its standard input stays open here, so only its parent's death can end it. */
static void
test_the_probe_dies_with_its_parent(void **state)
{
    const char *argv[] = {
        support_path("BERTH_TEST_PROBE"), "--sim", "1", "--sim-dir", dir, NULL};
    int in[2], out[2];
    char byte;

    (void)state;
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    pid_t parent = fork();
    if (parent == 0) {
        if (fork() == 0) {
            if (dup2(in[0], 0) == 0 && dup2(out[1], 1) == 1)
                execv(argv[0], (char *const *)(uintptr_t)argv);
            _exit(1);
        }
        for (;;)
            pause();
    }
    close(out[1]);
    struct child probe = {.pid = 0, .in = in[1], .out = out[0]};
    json_decref(child_json(&probe));
    assert_true(child_is_silent(&probe, 50));
    kill(parent, SIGKILL);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    assert_false(child_is_silent(&probe, 20000));
    assert_int_equal(read(out[0], &byte, 1), 0);
    close(in[0]);
    close(in[1]);
    close(out[0]);
}

static void
test_once(void **state)
{
    const char *argv[] = {
        support_path("BERTH_TEST_PROBE"), "--sim", "2", "--sim-dir", dir, "--once", NULL};

    (void)state;
    struct child c = child_start(argv);
    json_t *v = child_json(&c);
    check_size(v, "gpus", 2);
    json_decref(v);
    v = child_json(&c);
    check_int(v, "sample", 0);
    json_decref(v);
    assert_int_equal(child_end(&c), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TREE(name) cmocka_unit_test_setup_teardown(name, setup_tree, teardown_tree)

/* The probe says hello again with the new GPUs, and continues with them. */
static void
test_a_new_partition_is_another_hello(void **state)
{
    (void)state;
    support_write(dir, "script",
                  "card GPU-a 81920 500 0\nmig 0 1\ninstance 0 7 0 MIG-7 1g.10gb 9728 0 10\n");
    setenv("BERTH_NVML", support_path("BERTH_TEST_NVML"), 1);
    struct child c = start("nvml", NULL);
    json_t *v = child_json(&c);
    check_size(v, "gpus", 1);
    check_str(v, "gpus.0.mig.gpu", "GPU-a");
    check_int(v, "gpus.0.mig.gi", 7);
    check_str(v, "mig_gpus.0", "GPU-a");
    json_decref(v);
    child_say(&c, "sample 1\n");
    v = child_json(&c);
    check_int(v, "sample", 1);
    check_int(v, "gpus.0.used_mib", 10);
    json_decref(v);
    support_write(dir, "script",
                  "card GPU-a 81920 500 0\nmig 0 1\ninstance 0 1 0 MIG-1 3g.40gb 40448 0 20\n"
                  "instance 0 2 0 MIG-2 3g.40gb 40448 0 30\n");
    child_say(&c, "group MIG-7 job-1.1\nsample 2\n");
    v = child_json(&c);
    check_int(v, "hello", 1);
    check_size(v, "gpus", 2);
    check_str(v, "gpus.1.uuid", "MIG-2");
    json_decref(v);
    child_say(&c, "sample 3\n");
    v = child_json(&c);
    check_int(v, "sample", 3);
    check_int(v, "gpus.1.used_mib", 30);
    json_decref(v);
    assert_int_equal(child_end(&c), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_sim_speaks_the_protocol),
        TEST(test_requests_in_pieces_in_heaps_and_unknown_ones),
        TEST(test_a_request_without_end_is_an_error),
        TEST(test_no_gpu_says_what_was_tried_and_what_would_work),
        TEST(test_bad_options),
        TEST(test_the_kernels_log_is_read_from_where_the_daemon_stood),
        TEST(test_errors_that_repeat_others_in_part_are_told),
        TEST(test_errors_come_before_the_sample_that_may_hang),
        TEST(test_errors_are_told_as_they_come),
        TEST(test_nvml_says_whose_the_processes_are),
        TEST(test_nvml_that_hangs_dies_with_its_probe),
        TEST(test_a_driver_that_goes_away_ends_the_probe),
        TEST(test_nvidia_smi_is_the_second_choice),
        TEST(test_nvidia_smi_under_a_parent_that_ignores_children),
        TEST(test_nvidia_smi_with_a_lost_card_and_without_lists),
        TEST(test_nvidia_smi_that_fails),
        TEST(test_faults_of_simulated_cards),
        TEST(test_a_new_partition_is_another_hello),
        TEST(test_simulated_death_and_hanging),
        TEST(test_the_probe_dies_with_its_parent),
        TEST(test_once),
        TREE(test_drm_is_the_third_choice),
        TREE(test_sizes_by_dmem),
        TREE(test_cards_of_two_backends),
        TREE(test_a_card_with_another_number_is_another_hello),
        TREE(test_a_file_that_hangs),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
