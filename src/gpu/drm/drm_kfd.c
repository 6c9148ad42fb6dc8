/* AMD's compute driver (KFD), below /sys/class/kfd/kfd: which GPUs it has, in which order, and
 * what each process allocated through it. See drm.h. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/parse.h"
#include "gpu/drm/drm.h"
#include "gpu/sysfs.h"

#define MIB (INT64_C(1) << 20)

static int64_t
property(const char *text, const char *key)
{
    char value[32];
    int64_t n;

    return drm_find_value(text, key, ' ', value, sizeof value) &&
                   parse_int(value, 0, INT64_MAX, &n, NULL) == 0
               ? n
               : -1;
}

/* CPUs are nodes too; ROCm skips nodes without SIMDs. The location is the bus address, in
 * whose lowest bits newer kernels count partitions. */
static bool
read_node(const char *dir, struct drm_kfd_node *out)
{
    auto_free char *path = xasprintf("%s/properties", dir);
    auto_buf struct buf text = BUF_INIT;

    if (file_read(path, 65536, &text, NULL) < 0)
        return false;
    int64_t id = sysfs_read_number(dir, "gpu_id");
    int64_t at = property(buf_str(&text), "location_id");
    int64_t domain = property(buf_str(&text), "domain");
    if (id <= 0 || at < 0 || property(buf_str(&text), "simd_count") <= 0)
        return false;
    out->id = (uint32_t)id;
    snprintf(out->bus_id, sizeof out->bus_id, "%04x:%02x:%02x.0",
             domain < 0 ? 0 : (unsigned)(domain & 0xffff), (unsigned)(at >> 8 & 0xff),
             (unsigned)(at >> 3 & 0x1f));
    return true;
}

int
drm_kfd_nodes(const char *sys_root, struct drm_kfd_node out[DRM_KFD_NODES_MAX])
{
    int n = 0;

    for (int i = 0; i < DRM_KFD_NODES_MAX; i++) {
        auto_free char *dir = xasprintf("%s/class/kfd/kfd/topology/nodes/%d", sys_root, i);
        n += read_node(dir, &out[n]);
    }
    return n;
}

/* For a process also seen through its open files, the larger figure is kept: drivers differ in
 * whether those include what was allocated through KFD. */
static void
add_process(const struct drm *drm, const char *dir, int32_t pid, struct backend_sample *out)
{
    for (int i = 0; i < drm->n; i++) {
        char name[32];
        if (drm->cards[i].kfd_id == 0)
            continue;
        snprintf(name, sizeof name, "vram_%" PRIu32, drm->cards[i].kfd_id);
        int64_t bytes = sysfs_read_number(dir, name);
        if (bytes > 0)
            backend_usage_add(&out->use[i], pid, bytes / MIB + (bytes % MIB != 0));
    }
}

void
drm_kfd_add(const struct drm *drm, struct backend_sample *out)
{
    auto_free char *path = xasprintf("%s/class/kfd/kfd/proc", drm_sys_root(drm));
    auto_dir DIR *d = opendir(path);
    const struct dirent *entry;
    int64_t pid;

    while (d && (entry = readdir(d))) {
        if (parse_int(entry->d_name, 1, INT32_MAX, &pid, NULL) < 0)
            continue;
        auto_free char *dir = xasprintf("%s/%s", path, entry->d_name);
        add_process(drm, dir, (int32_t)pid, out);
    }
}
