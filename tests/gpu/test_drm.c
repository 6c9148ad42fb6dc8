/* AMD and Intel GPUs, from folders that imitate /sys and /proc. */
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

#include "base/cleanup.h"
#include "base/err.h"
#include "drm_tree.h"
#include "gpu/backend.h"
#include "support.h"

struct world {
    struct drm_tree t;
    struct backend_config config;
    void *drm;
    struct backend_machine m;
    struct backend_sample s;
    struct err e;
    char *names; /* the list of PCI devices */
};

static int
setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    drm_tree_make(&w->t);
    drm_tree_put(&w->t,
                 "# a comment\n1001  Somebody\n\t744c  Another\n"
                 "1002  Advanced Micro Devices, Inc. [AMD/ATI]\n\t73bf  Navi 21\n"
                 "\t744c  Navi 31 [Radeon RX 7900 XT/7900 XTX]\n\t\t1002 0001  A board\n"
                 "8086  Intel Corporation\n\t56a0  DG2 [Arc A770]\n",
                 "pci.ids");
    w->names = xasprintf("%s/pci.ids", w->t.root);
    w->config = (struct backend_config){
        .sys_root = w->t.sys, .proc_root = w->t.proc, .pci_ids = w->names};
    *state = w;
    return 0;
}

static int
teardown(void **state)
{
    struct world *w = *state;

    backend_drm.close(w->drm);
    backend_sample_free(&w->s);
    drm_tree_remove(&w->t);
    free(w->names);
    free(w);
    return 0;
}

static int
discover(struct world *w)
{
    backend_drm.close(w->drm);
    w->drm = NULL;
    assert_int_equal(backend_drm.open(&w->config, &w->drm, &w->e), 0);
    return backend_drm.discover(w->drm, &w->m, &w->e);
}

static const struct backend_usage *
sample(struct world *w, int card)
{
    if (backend_drm.sample(w->drm, &w->s, &w->e) < 0)
        fail_msg("%s", w->e.text);
    return &w->s.use[card];
}

/* -2: not listed. */
static int64_t
mib_of(const struct backend_usage *u, int pid)
{
    for (int i = 0; i < u->n_procs; i++) {
        if (u->procs[i].pid == pid)
            return u->procs[i].mib;
    }
    return -2;
}

#define AMD_FDINFO(client, bus, vram)                                                          \
    "pos:\t0\nflags:\t02100002\nmnt_id:\t26\nino:\t1087\ndrm-driver:\tamdgpu\n"                \
    "drm-client-id:\t" client "\ndrm-pdev:\t" bus "\npasid:\t32770\n"                          \
    "drm-total-vram:\t9999999 KiB\ndrm-shared-vram:\t0\ndrm-resident-vram:\t" vram "\n"        \
    "drm-total-gtt:\t16 MiB\ndrm-resident-gtt:\t16 MiB\ndrm-memory-vram:\t" vram "\n"          \
    "drm-memory-gtt: \t16384 KiB\namd-evicted-vram:\t0 KiB\ndrm-engine-gfx:\t123456 ns\n"

/* --- AMD --- */

static void
test_mi210(void **state)
{
    struct world *w = *state;
    const uint32_t has = CARD_HAS_BUS_ID | CARD_HAS_NUMA | CARD_HAS_ORDER | CARD_HAS_DRI;

    drm_tree_add_mi210(&w->t, 1, "0000:83:00.0", "de5d8cf5c5b2d9a1\n");
    drm_tree_add_mi210(&w->t, 2, "0000:03:00.0", "0c1e8a2b5f3d4960\n");
    /* Here ROCm's order differs from the addresses', and two of its nodes are CPUs. */
    drm_tree_add_kfd(&w->t, 0, NULL, 0, 0);
    drm_tree_add_kfd(&w->t, 1, NULL, 0, 0);
    drm_tree_add_kfd(&w->t, 2, "0000:83:00.0", 416, 51140);
    drm_tree_add_kfd(&w->t, 3, "0000:03:00.0", 416, 61209);
    assert_int_equal(discover(w), 0);
    assert_string_equal(w->m.driver, "amdgpu");
    assert_int_equal(w->m.n, 2);
    const struct backend_card *a = &w->m.cards[0], *b = &w->m.cards[1];
    assert_int_equal(a->index, 0);
    assert_int_equal(b->index, 1);
    assert_int_equal(a->valid, has);
    assert_int_equal(a->vendor, CARD_AMD);
    assert_string_equal(a->bus_id, "0000:03:00.0");
    assert_string_equal(a->uuid, "GPU-0c1e8a2b5f3d4960");
    assert_string_equal(a->name, "AMD Instinct MI210");
    assert_int_equal(a->total_mib, 65520);
    assert_int_equal(a->numa, 1);
    assert_int_equal(a->dri_card, 2);
    assert_int_equal(a->dri_render, 130);
    assert_int_equal(a->order, 1);
    assert_int_equal(b->order, 0);
    assert_string_equal(b->uuid, "GPU-de5d8cf5c5b2d9a1");
    const struct backend_usage *u = sample(w, 0);
    assert_true(u->present);
    assert_int_equal(u->valid,
                     CARD_HAS_USED | CARD_HAS_UTIL | CARD_HAS_TEMPERATURE | CARD_HAS_PROCS);
    assert_int_equal(u->used_mib, 11);
    assert_int_equal(u->util, 0);
    assert_int_equal(u->temperature_c, 38);
    assert_int_equal(u->n_procs, 0);
}

static void
test_rx7900(void **state)
{
    struct world *w = *state;

    drm_tree_add_rx7900(&w->t, 0, "0000:0a:00.0", NULL);
    assert_int_equal(discover(w), 0);
    const struct backend_card *c = &w->m.cards[0];
    assert_string_equal(c->name, "AMD Radeon RX 7900 XT/7900 XTX");
    assert_string_equal(c->uuid, "PCI-0000:0a:00.0");
    assert_int_equal(c->total_mib, 24560);
    assert_false(c->valid & CARD_HAS_NUMA);
    assert_false(c->valid & CARD_HAS_ORDER); /* without KFD there is no ROCm */
    const struct backend_usage *u = sample(w, 0);
    assert_int_equal(u->used_mib, 1025); /* rounded up */
    assert_int_equal(u->util, 37);
    assert_int_equal(u->temperature_c, 51);
    /* An ID of zeros means none; the name of an unknown device is its number. */
    drm_tree_put_card(&w->t, "0000:0a:00.0", "unique_id", "0\n");
    w->config.pci_ids = "/nowhere/pci.ids";
    assert_int_equal(discover(w), 0);
    assert_string_equal(w->m.cards[0].uuid, "PCI-0000:0a:00.0");
    assert_string_equal(w->m.cards[0].name, "AMD GPU 744c");
}

static void
test_clients_count_once(void **state)
{
    struct world *w = *state;

    drm_tree_add_rx7900(&w->t, 0, "0000:0a:00.0", "1111111111111111\n");
    drm_tree_add_rx7900(&w->t, 1, "0000:0b:00.0", "2222222222222222\n");
    /* Two clients of one process, the first open twice. */
    drm_tree_add_fd(&w->t, 4711, 3, "renderD128",
                    AMD_FDINFO("8", "0000:0a:00.0", "1048576 KiB"));
    drm_tree_add_fd(&w->t, 4711, 4, "renderD128",
                    AMD_FDINFO("8", "0000:0a:00.0", "1048576 KiB"));
    drm_tree_add_fd(&w->t, 4711, 9, "card0", AMD_FDINFO("9", "0000:0a:00.0", "512 MiB"));
    /* The same client number on another GPU is another client. */
    drm_tree_add_fd(&w->t, 4711, 10, "renderD129", AMD_FDINFO("8", "0000:0b:00.0", "100 KiB"));
    /* Descriptors outside /dev/dri are not read. */
    drm_tree_put(&w->t, "pos:\t0\n", "proc/4711/fdinfo/1");
    assert_int_equal(discover(w), 0);
    const struct backend_usage *u = sample(w, 0);
    assert_int_equal(u->n_procs, 1);
    assert_int_equal(mib_of(u, 4711), 1536);
    assert_int_equal(mib_of(&w->s.use[1], 4711), 1);
    /* A child that inherited the descriptor has no memory of its own. */
    drm_tree_add_fd(&w->t, 4712, 3, "renderD128",
                    AMD_FDINFO("8", "0000:0a:00.0", "1048576 KiB"));
    u = sample(w, 0);
    int64_t parent = mib_of(u, 4711), child = mib_of(u, 4712);
    assert_true((parent == 1536 && child == -2) || (parent == 512 && child == 1024));
    /* A program that has the GPU open but uses no memory is not listed. */
    drm_tree_add_fd(&w->t, 90, 5, "renderD128", AMD_FDINFO("12", "0000:0a:00.0", "0"));
    assert_int_equal(mib_of(sample(w, 0), 90), -2);
}

/* Many files of one process, each another client; and impossible figures. */
static void
test_a_crowd_of_files(void **state)
{
    struct world *w = *state;
    char text[400];

    drm_tree_add_rx7900(&w->t, 0, "0000:0a:00.0", "1111111111111111\n");
    for (int fd = 0; fd < 200; fd++) {
        snprintf(text, sizeof text,
                 "drm-driver:\tamdgpu\ndrm-client-id:\t%d\ndrm-pdev:\t0000:0a:00.0\n"
                 "drm-memory-vram:\t1024 KiB\n",
                 fd);
        drm_tree_add_fd(&w->t, 4711, fd, "renderD128", text);
    }
    drm_tree_add_fd(&w->t, 4712, 3, "renderD128",
                    "drm-driver:\tamdgpu\ndrm-client-id:\t9001\ndrm-pdev:\t0000:0a:00.0\n"
                    "drm-memory-vram:\t18446744073709551615 GiB\ndrm-engine-gfx:\t"
                    "99999999999999999999999999 ns\n");
    drm_tree_add_fd(&w->t, 4713, 3, "renderD128",
                    "drm-driver:\tamdgpu\ndrm-client-id:\t9002\ndrm-pdev:\t0000:0a:00.0\n"
                    "drm-memory-vram:\t1099511627777 KiB\ndrm-memory-vram9:\t1 furlong\n");
    assert_int_equal(discover(w), 0);
    const struct backend_usage *u = sample(w, 0);
    assert_int_equal(mib_of(u, 4711), 200);
    assert_int_equal(mib_of(u, 4712), -1); /* not reported */
    assert_int_equal(mib_of(u, 4713), -1);
    /* They are forgotten when their process ends. */
    for (int fd = 0; fd < 200; fd++)
        drm_tree_delete(&w->t, "proc/4711/fd/%d", fd);
    u = sample(w, 0);
    assert_int_equal(u->n_procs, 2);
}

static void
test_compute_processes(void **state)
{
    struct world *w = *state;

    drm_tree_add_mi210(&w->t, 0, "0000:03:00.0", "0c1e8a2b5f3d4960\n");
    drm_tree_add_kfd(&w->t, 0, NULL, 0, 0);
    drm_tree_add_kfd(&w->t, 1, "0000:03:00.0", 416, 61209);
    drm_tree_put(&w->t, "34359738368\n", "sys/class/kfd/kfd/proc/800/vram_61209");
    drm_tree_put(&w->t, "32771\n", "sys/class/kfd/kfd/proc/800/pasid");
    drm_tree_put(&w->t, "999\n", "sys/class/kfd/kfd/proc/801/vram_7"); /* another GPU's */
    /* Older drivers count in the open file only memory that was not allocated through KFD. */
    drm_tree_add_fd(&w->t, 800, 6, "renderD128", AMD_FDINFO("3", "0000:03:00.0", "2 MiB"));
    assert_int_equal(discover(w), 0);
    const struct backend_usage *u = sample(w, 0);
    assert_int_equal(u->n_procs, 1);
    assert_int_equal(mib_of(u, 800), 32768);
}

static void
test_old_kernels_keys(void **state)
{
    struct world *w = *state;

    drm_tree_add_rx7900(&w->t, 0, "0000:0a:00.0", NULL);
    drm_tree_add_fd(&w->t, 50, 3, "renderD128",
                    "pasid:\t32770\ndrm-driver:\tamdgpu\ndrm-pdev:\t0000:0a:00.0\n"
                    "drm-client-id:\t7\ndrm-memory-vram:\t2049 KiB\n"
                    "drm-memory-gtt: \t0 KiB\ndrm-memory-cpu: \t0 KiB\n");
    /* Kernels before 5.19 report no memory at all; older ones no address either. */
    drm_tree_add_fd(&w->t, 51, 3, "renderD128",
                    "drm-driver:\tamdgpu\ndrm-pdev:\t0000:0a:00.0\ndrm-client-id:\t8\n");
    drm_tree_add_fd(&w->t, 52, 3, "renderD128", "drm-driver:\tamdgpu\n");
    assert_int_equal(discover(w), 0);
    const struct backend_usage *u = sample(w, 0);
    assert_int_equal(mib_of(u, 50), 3);
    assert_int_equal(mib_of(u, 51), -1);
    assert_int_equal(mib_of(u, 52), -2);
}

static void
test_partitions_are_left_out(void **state)
{
    struct world *w = *state;

    drm_tree_add_mi210(&w->t, 0, "0000:03:00.0", "0c1e8a2b5f3d4960\n");
    drm_tree_add_mi210(&w->t, 1, "0000:04:00.0", "0c1e8a2b5f3d4961\n");
    drm_tree_add_kfd(&w->t, 0, "0000:03:00.0", 416, 1);
    drm_tree_add_kfd(&w->t, 1, "0000:03:00.1", 416, 2);
    drm_tree_add_kfd(&w->t, 2, "0000:04:00.0", 416, 3);
    assert_int_equal(discover(w), 0);
    assert_int_equal(w->m.n, 1);
    assert_string_equal(w->m.cards[0].bus_id, "0000:04:00.0");
    assert_int_equal(w->m.cards[0].order, 2);
    assert_string_equal(w->m.left_out[0],
                        "0000:03:00.0 (amdgpu) is left out: it is divided into 2 compute "
                        "partitions, which are not supported");
}

/* --- laptops --- */

static void
test_hybrid_laptop(void **state)
{
    struct world *w = *state;

    drm_tree_add_apu(&w->t, 1, "0000:c5:00.0");
    drm_tree_add_rx7900(&w->t, 0, "0000:03:00.0", "1111111111111111\n");
    drm_tree_put_card(&w->t, "0000:03:00.0", "power/runtime_status", "suspended\n");
    drm_tree_put_card(&w->t, "0000:03:00.0", "mem_info_vram_used", "0\n");
    /* Reading this would wake the GPU, and give a wrong value. */
    drm_tree_put_card(&w->t, "0000:03:00.0", "gpu_busy_percent", "99\n");
    drm_tree_add_kfd(&w->t, 0, NULL, 0, 0);
    drm_tree_add_kfd(&w->t, 1, "0000:c5:00.0", 24, 10);
    drm_tree_add_kfd(&w->t, 2, "0000:03:00.0", 192, 20);
    assert_int_equal(discover(w), 0);
    assert_int_equal(w->m.n, 1);
    assert_string_equal(w->m.cards[0].bus_id, "0000:03:00.0");
    assert_int_equal(w->m.cards[0].order, 1); /* ROCm counts the other one */
    assert_int_equal(w->m.n_left_out, 1);
    assert_string_equal(w->m.left_out[0], "0000:c5:00.0 (amdgpu) is left out: it is integrated "
                                          "and has no memory of its own");
    const struct backend_usage *u = sample(w, 0);
    assert_true(u->present);
    assert_int_equal(u->util, 0);
    assert_int_equal(u->used_mib, 0);
    assert_false(u->valid & CARD_HAS_TEMPERATURE);
}

/* Known from the format of its metrics, if the voltages do not show it. */
static void
test_apu_by_its_metrics(void **state)
{
    struct world *w = *state;

    drm_tree_add_rx7900(&w->t, 0, "0000:03:00.0", NULL);
    drm_tree_put_card(&w->t, "0000:03:00.0", "gpu_metrics", "xx\x01\x03yyyy");
    drm_tree_add_rx7900(&w->t, 1, "0000:04:00.0", NULL);
    drm_tree_put_card(&w->t, "0000:04:00.0", "gpu_metrics", "xx\x02\x03yyyy");
    assert_int_equal(discover(w), 0);
    assert_int_equal(w->m.n, 1);
    assert_string_equal(w->m.cards[0].bus_id, "0000:03:00.0");
}

static void
test_no_card(void **state)
{
    struct world *w = *state;

    drm_tree_add_card(&w->t, 0, "0000:01:00.0", "nvidia", "10DE:2684");
    drm_tree_add_card(&w->t, 1, "0000:06:00.0", "ast", "1A03:2000");
    assert_int_equal(discover(w), -1);
    assert_string_equal(w->e.text, "there is no GPU of the drivers amdgpu, xe or i915 to use");
    drm_tree_add_card(&w->t, 2, "0000:00:02.0", "i915", "8086:A780");
    assert_int_equal(discover(w), -1);
    assert_non_null(strstr(w->e.text, "to use: 0000:00:02.0 (i915) is left out: it is "
                                      "integrated"));
}

/* --- Intel --- */

#define XE_FDINFO(rcs, ccs, clock, vram)                                                       \
    "drm-driver:\txe\ndrm-client-id:\t3\ndrm-pdev:\t0000:03:00.0\ndrm-total-system:\t0\n"      \
    "drm-total-gtt:\t192 KiB\ndrm-resident-gtt:\t192 KiB\ndrm-total-vram0:\t23992 MiB\n"       \
    "drm-resident-vram0:\t" vram "\ndrm-total-stolen:\t0\ndrm-cycles-rcs:\t" rcs "\n"          \
    "drm-total-cycles-rcs:\t" clock "\ndrm-cycles-ccs:\t" ccs                                  \
    "\ndrm-total-cycles-ccs:\t" clock "\ndrm-engine-capacity-ccs:\t4\n"

static void
test_a770_by_xe(void **state)
{
    struct world *w = *state;

    drm_tree_add_card(&w->t, 0, "0000:00:02.0", "i915", "8086:A780");
    drm_tree_add_a770(&w->t, 1, "0000:03:00.0", "xe");
    drm_tree_add_fd(&w->t, 70, 3, "renderD129", XE_FDINFO("100", "100", "1000", "300 MiB"));
    assert_int_equal(discover(w), 0);
    assert_int_equal(w->m.n, 1);
    const struct backend_card *c = &w->m.cards[0];
    assert_string_equal(c->name, "Intel Arc A770");
    assert_string_equal(c->uuid, "PCI-0000:03:00.0");
    assert_int_equal(c->vendor, CARD_INTEL);
    assert_int_equal(c->total_mib, 16384);
    assert_int_equal(c->order, 1); /* after the integrated one */
    /* Used is the sum over processes; load needs two samples. */
    const struct backend_usage *u = sample(w, 0);
    assert_int_equal(u->valid,
                     CARD_HAS_USED | CARD_HAS_TEMPERATURE | CARD_HAS_PROCS | CARD_HAS_ENERGY);
    assert_int_equal(u->energy_mj, 123456789); /* the kernel reports microjoules */
    assert_int_equal(u->used_mib, 300);
    assert_int_equal(u->temperature_c, 44);
    assert_int_equal(mib_of(u, 70), 300);
    drm_tree_put(&w->t, XE_FDINFO("350", "900", "2000", "8 GiB"), "proc/70/fdinfo/3");
    u = sample(w, 0);
    assert_true(u->valid & CARD_HAS_UTIL);
    assert_int_equal(u->util, 25); /* rcs 250 of 1000; ccs 800 of four times 1000 */
    assert_int_equal(u->used_mib, 8192);
    /* A counter that restarts gives no load. */
    drm_tree_put(&w->t, XE_FDINFO("0", "0", "10", "0"), "proc/70/fdinfo/3");
    u = sample(w, 0);
    assert_int_equal(u->util, 0);
    assert_int_equal(u->used_mib, 0);
    assert_int_equal(u->n_procs, 0);
}

static void
test_a770_by_i915(void **state)
{
    struct world *w = *state;
    const char *before = "drm-driver:\ti915\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t5\n"
                         "drm-engine-render:\t0 ns\ndrm-engine-capacity-video:\t2\n"
                         "drm-total-system0:\t64 MiB\ndrm-total-local0:\t2 GiB\n"
                         "drm-resident-local0:\t1 GiB\ndrm-resident-stolen-local0:\t4 MiB\n";
    const char *after = "drm-driver:\ti915\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t5\n"
                        "drm-engine-render:\t900000000000000000 ns\n"
                        "drm-total-local0:\t2 GiB\n";

    drm_tree_add_a770(&w->t, 0, "0000:03:00.0", "i915");
    drm_tree_add_fd(&w->t, 70, 3, "renderD128", before);
    assert_int_equal(discover(w), 0);
    assert_int_equal(w->m.cards[0].total_mib, 0); /* no file has it */
    const struct backend_usage *u = sample(w, 0);
    assert_int_equal(u->used_mib, 1024);
    assert_false(u->valid & CARD_HAS_UTIL);
    drm_tree_put(&w->t, after, "proc/70/fdinfo/3");
    u = sample(w, 0);
    assert_int_equal(u->util, 100);
    assert_int_equal(u->used_mib, 2048);
    drm_tree_put(&w->t, "17179869184\n",
                 "sys/bus/pci/devices/0000:03:00.0/drm/card0/lmem_total_bytes");
    assert_int_equal(discover(w), 0);
    assert_int_equal(w->m.cards[0].total_mib, 16384);
}

/* For users other than root the visible sum is not the whole use. */
static void
test_hidden_processes(void **state)
{
    struct world *w = *state;

    drm_tree_add_a770(&w->t, 0, "0000:03:00.0", "xe");
    drm_tree_add_fd(&w->t, 70, 3, "renderD128", XE_FDINFO("1", "1", "10", "300 MiB"));
    drm_tree_add_fd(&w->t, 71, 3, "renderD128", XE_FDINFO("1", "1", "10", "300 MiB"));
    auto_free char *dir = xasprintf("%s/71/fd", w->t.proc);
    assert_int_equal(chmod(dir, 0), 0);
    assert_int_equal(chmod(w->t.root, 0755), 0);
    assert_int_equal(discover(w), 0);
    bool was_root = geteuid() == 0;
    if (was_root)
        assert_int_equal(seteuid(65534), 0);
    const struct backend_usage *u = sample(w, 0);
    (void)sample(w, 0);
    if (was_root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(dir, 0755), 0);
    assert_int_equal(u->valid, CARD_HAS_TEMPERATURE | CARD_HAS_PROCS | CARD_HAS_ENERGY);
    assert_int_equal(mib_of(u, 70), 300);
}

/* --- trouble --- */

static void
test_files_that_cannot_be_read(void **state)
{
    struct world *w = *state;

    drm_tree_add_rx7900(&w->t, 0, "0000:0a:00.0", NULL);
    drm_tree_add_rx7900(&w->t, 1, "0000:0b:00.0", NULL);
    drm_tree_put_card(&w->t, "0000:0b:00.0", "mem_info_vram_total", "");
    assert_int_equal(discover(w), 0);
    assert_int_equal(w->m.n, 1);
    assert_string_equal(w->m.left_out[0],
                        "0000:0b:00.0 (amdgpu) is left out: the size of its memory cannot be "
                        "read (mem_info_vram_total)");
    drm_tree_put_card(&w->t, "0000:0a:00.0", "gpu_busy_percent", "busy\n");
    drm_tree_put_card(&w->t, "0000:0a:00.0", "mem_info_vram_used", "-1\n");
    drm_tree_put_card(&w->t, "0000:0a:00.0", "hwmon/hwmon2/temp1_input", "");
    drm_tree_add_fd(&w->t, 4, 3, "renderD128", "");
    drm_tree_add_fd(&w->t, 4, 4, "renderD128", "drm-driver\ndrm-:\n:\ndrm-driver:\n");
    drm_tree_add_fd(&w->t, 4, 5, "renderD128",
                    AMD_FDINFO("99999999999999999999999", "0000:0a:00.0", "7 parsecs"));
    const struct backend_usage *u = sample(w, 0);
    assert_true(u->present);
    assert_false(u->valid & (CARD_HAS_UTIL | CARD_HAS_USED | CARD_HAS_TEMPERATURE));
    assert_int_equal(mib_of(u, 4), 9766); /* by the readable key */
}

static void
test_a_card_that_disappears(void **state)
{
    struct world *w = *state;

    drm_tree_add_mi210(&w->t, 0, "0000:03:00.0", "1\n");
    drm_tree_add_mi210(&w->t, 1, "0000:04:00.0", "2\n");
    assert_int_equal(discover(w), 0);
    assert_true(sample(w, 1)->present);
    drm_tree_move_card(&w->t, 1, NULL);
    assert_false(sample(w, 1)->present);
    assert_true(w->s.use[0].present);
    assert_false(backend_drm.has_changed(w->drm)); /* it is lost, and may come back */
    drm_tree_move_card(&w->t, 1, "0000:04:00.0");
    assert_false(backend_drm.has_changed(w->drm));
    assert_true(sample(w, 1)->present);
}

/* Both were unbound, and bound again in the other order, one after the other. */
static void
test_cards_that_change_places(void **state)
{
    struct world *w = *state;

    drm_tree_add_mi210(&w->t, 0, "0000:03:00.0", "1\n");
    drm_tree_add_mi210(&w->t, 1, "0000:04:00.0", "2\n");
    assert_int_equal(discover(w), 0);
    assert_false(backend_drm.has_changed(w->drm));
    drm_tree_move_card(&w->t, 1, NULL);
    drm_tree_move_card(&w->t, 0, "0000:04:00.0");
    assert_false(sample(w, 0)->present);
    assert_false(w->s.use[1].present);
    assert_true(backend_drm.has_changed(w->drm));
    assert_int_equal(discover(w), 0);
    assert_int_equal(w->m.n, 1);
    assert_int_equal(w->m.cards[0].dri_card, 0);
    assert_string_equal(w->m.cards[0].uuid, "GPU-0000000000000002");
    assert_false(backend_drm.has_changed(w->drm));
    drm_tree_move_card(&w->t, 1, "0000:03:00.0");
    assert_true(backend_drm.has_changed(w->drm));
    assert_int_equal(discover(w), 0);
    assert_int_equal(w->m.n, 2);
    assert_string_equal(w->m.cards[0].uuid, "GPU-0000000000000001");
    assert_int_equal(w->m.cards[0].dri_card, 1);
    assert_false(backend_drm.has_changed(w->drm));
    assert_true(sample(w, 0)->present);
    assert_true(w->s.use[1].present);
}

/* The device filter relies on it. */
static void
test_a_card_with_another_render_node(void **state)
{
    struct world *w = *state;

    drm_tree_add_a770(&w->t, 0, "0000:00:02.0", "i915"); /* omitted, which is no change */
    drm_tree_add_a770(&w->t, 1, "0000:03:00.0", "xe");
    assert_int_equal(discover(w), 0);
    assert_int_equal(w->m.cards[0].dri_render, 129);
    assert_false(backend_drm.has_changed(w->drm));
    drm_tree_rename(&w->t, "sys/bus/pci/devices/0000:03:00.0/drm/renderD129", "renderD130");
    assert_true(backend_drm.has_changed(w->drm));
    assert_int_equal(discover(w), 0);
    assert_int_equal(w->m.cards[0].dri_render, 130);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_mi210),
        TEST(test_rx7900),
        TEST(test_clients_count_once),
        TEST(test_a_crowd_of_files),
        TEST(test_compute_processes),
        TEST(test_old_kernels_keys),
        TEST(test_partitions_are_left_out),
        TEST(test_hybrid_laptop),
        TEST(test_apu_by_its_metrics),
        TEST(test_no_card),
        TEST(test_a770_by_xe),
        TEST(test_a770_by_i915),
        TEST(test_hidden_processes),
        TEST(test_files_that_cannot_be_read),
        TEST(test_a_card_that_disappears),
        TEST(test_cards_that_change_places),
        TEST(test_a_card_with_another_render_node),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
