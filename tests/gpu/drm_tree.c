/* See drm_tree.h. */
#include "drm_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "support.h"

void
drm_tree_make(struct drm_tree *t)
{
    t->root = support_make_dir();
    t->sys = xasprintf("%s/sys", t->root);
    t->proc = xasprintf("%s/proc", t->root);
    t->cgroup = xasprintf("%s/cgroup", t->root);
    drm_tree_put(t, "0.5\n", "proc/uptime");
    drm_tree_put(t, "", "sys/class/drm/version");
}

void
drm_tree_remove(struct drm_tree *t)
{
    free(t->sys);
    free(t->proc);
    free(t->cgroup);
    support_remove_dir(t->root);
}

__attribute__((format(printf, 2, 0))) static char *
path_of(const struct drm_tree *t, const char *fmt, va_list ap)
{
    auto_buf struct buf path = BUF_INIT;

    buf_addf(&path, "%s/", t->root);
    buf_addv(&path, fmt, ap);
    return buf_take(&path);
}

static void
put_at(const char *path, const char *text)
{
    auto_free char *dir = xstrndup(path, (size_t)(strrchr(path, '/') - path));
    struct err e;

    if (file_mkdirs(dir, 0755, &e) < 0)
        fail_msg("%s", e.text);
    support_write(dir, strrchr(path, '/') + 1, text);
}

void
drm_tree_put(const struct drm_tree *t, const char *text, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    auto_free char *path = path_of(t, fmt, ap);
    va_end(ap);
    put_at(path, text);
}

void
drm_tree_delete(const struct drm_tree *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    auto_free char *path = path_of(t, fmt, ap);
    va_end(ap);
    assert_int_equal(unlink(path), 0);
}

void
drm_tree_rename(const struct drm_tree *t, const char *name, const char *other)
{
    auto_free char *from = xasprintf("%s/%s", t->root, name);
    auto_free char *to = xasprintf("%.*s/%s", (int)(strrchr(from, '/') - from), from, other);

    assert_int_equal(rename(from, to), 0);
}

void
drm_tree_put_card(const struct drm_tree *t, const char *bus_id, const char *name,
                  const char *text)
{
    drm_tree_put(t, text, "sys/bus/pci/devices/%s/%s", bus_id, name);
}

void
drm_tree_add_card(const struct drm_tree *t, int n, const char *bus_id, const char *driver,
                  const char *pci_id)
{
    auto_free char *uevent =
        xasprintf("DRIVER=%s\nPCI_CLASS=38000\nPCI_ID=%s\nPCI_SUBSYS_ID=1002:0C34\n"
                  "PCI_SLOT_NAME=%s\nMODALIAS=pci:v00001002d0000740F\n",
                  driver, pci_id, bus_id);

    drm_tree_put_card(t, bus_id, "uevent", uevent);
    drm_tree_put(t, "226:0\n", "sys/bus/pci/devices/%s/drm/card%d/dev", bus_id, n);
    drm_tree_put(t, "226:128\n", "sys/bus/pci/devices/%s/drm/renderD%d/dev", bus_id, 128 + n);
    drm_tree_put(t, "226:0\n", "sys/class/drm/card%d/dev", n);
    drm_tree_put(t, "connected\n", "sys/class/drm/card%d-DP-1/status", n);
    drm_tree_put(t, "226:128\n", "sys/class/drm/renderD%d/dev", 128 + n);
    drm_tree_move_card(t, n, bus_id);
}

void
drm_tree_move_card(const struct drm_tree *t, int n, const char *bus_id)
{
    auto_free char *link = xasprintf("%s/class/drm/card%d/device", t->sys, n);
    auto_free char *target = bus_id ? xasprintf("../../../bus/pci/devices/%s", bus_id) : NULL;

    (void)unlink(link);
    if (target)
        assert_int_equal(symlink(target, link), 0);
}

void
drm_tree_add_mi210(const struct drm_tree *t, int n, const char *bus_id, const char *unique_id)
{
    drm_tree_add_card(t, n, bus_id, "amdgpu", "1002:740F");
    drm_tree_put_card(t, bus_id, "mem_info_vram_total", "68702699520\n");
    drm_tree_put_card(t, bus_id, "mem_info_vram_used", "11202560\n");
    drm_tree_put_card(t, bus_id, "gpu_busy_percent", "0\n");
    drm_tree_put_card(t, bus_id, "product_name", "AMD Instinct MI210\n");
    drm_tree_put_card(t, bus_id, "numa_node", "1\n");
    drm_tree_put_card(t, bus_id, "power/runtime_status", "active\n");
    /* No edge sensor: the first one is the junction's. */
    drm_tree_put_card(t, bus_id, "hwmon/hwmon4/temp2_input", "38000\n");
    drm_tree_put_card(t, bus_id, "hwmon/hwmon4/temp3_input", "45000\n");
    if (unique_id)
        drm_tree_put_card(t, bus_id, "unique_id", unique_id);
}

void
drm_tree_add_rx7900(const struct drm_tree *t, int n, const char *bus_id, const char *unique_id)
{
    drm_tree_add_card(t, n, bus_id, "amdgpu", "1002:744C");
    drm_tree_put_card(t, bus_id, "mem_info_vram_total", "25753026560\n");
    drm_tree_put_card(t, bus_id, "mem_info_vram_used", "1073741825\n");
    drm_tree_put_card(t, bus_id, "gpu_busy_percent", "37\n");
    drm_tree_put_card(t, bus_id, "product_name", "\n");
    drm_tree_put_card(t, bus_id, "numa_node", "-1\n");
    drm_tree_put_card(t, bus_id, "power/runtime_status", "active\n");
    drm_tree_put_card(t, bus_id, "hwmon/hwmon2/temp1_input", "51000\n");
    drm_tree_put_card(t, bus_id, "hwmon/hwmon2/in0_label", "vddgfx\n");
    if (unique_id)
        drm_tree_put_card(t, bus_id, "unique_id", unique_id);
}

void
drm_tree_add_apu(const struct drm_tree *t, int n, const char *bus_id)
{
    drm_tree_add_card(t, n, bus_id, "amdgpu", "1002:15BF");
    drm_tree_put_card(t, bus_id, "mem_info_vram_total", "536870912\n");
    drm_tree_put_card(t, bus_id, "mem_info_vram_used", "268435456\n");
    drm_tree_put_card(t, bus_id, "gpu_busy_percent", "3\n");
    drm_tree_put_card(t, bus_id, "hwmon/hwmon6/temp1_input", "41000\n");
    drm_tree_put_card(t, bus_id, "hwmon/hwmon6/in1_label", "vddnb\n");
}

void
drm_tree_add_a770(const struct drm_tree *t, int n, const char *bus_id, const char *driver)
{
    drm_tree_add_card(t, n, bus_id, driver, "8086:56A0");
    drm_tree_put_card(t, bus_id, "numa_node", "-1\n");
    if (strcmp(driver, "xe") == 0)
        drm_tree_put_card(t, bus_id, "tile0/physical_vram_size_bytes", "17179869184\n");
    drm_tree_put_card(t, bus_id, "hwmon/hwmon3/temp2_input", "44000\n");
    drm_tree_put_card(t, bus_id, "hwmon/hwmon3/energy1_input", "123456789012\n");
}

void
drm_tree_add_kfd(const struct drm_tree *t, int node, const char *bus_id, int simds,
                 unsigned gpu_id)
{
    unsigned domain = 0, bus = 0, device = 0;
    char id[32];

    if (bus_id)
        assert_int_equal(sscanf(bus_id, "%x:%x:%x", &domain, &bus, &device), 3);
    auto_free char *text = xasprintf(
        "cpu_cores_count %d\nsimd_count %d\nmem_banks_count 1\nlocation_id %u\ndomain %u\n"
        "drm_render_minor %d\nhive_id 0\n",
        simds ? 0 : 32, simds, bus << 8 | device << 3, domain, simds ? 127 + node : 0);
    snprintf(id, sizeof id, "%u\n", gpu_id);
    drm_tree_put(t, text, "sys/class/kfd/kfd/topology/nodes/%d/properties", node);
    drm_tree_put(t, id, "sys/class/kfd/kfd/topology/nodes/%d/gpu_id", node);
}

void
drm_tree_add_fd(const struct drm_tree *t, int pid, int fd, const char *node, const char *text)
{
    auto_free char *link = xasprintf("%s/%d/fd/%d", t->proc, pid, fd);
    auto_free char *target = xasprintf("/dev/dri/%s", node);

    drm_tree_put(t, text, "proc/%d/fdinfo/%d", pid, fd);
    drm_tree_put(t, "", "proc/%d/fd/.keep", pid);
    assert_int_equal(symlink(target, link), 0);
}
