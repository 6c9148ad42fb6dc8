/* The GPUs of the DRM backend: which exist, which of them are usable, and their constant data.
 * See drm.h. Based on the kernel's Documentation/gpu/amdgpu (driver-misc, thermal), its
 * kgd_pp_interface.h, and the files that its drivers create. */
#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/parse.h"
#include "gpu/drm/drm.h"
#include "gpu/drm/pci_names.h"
#include "gpu/sysfs.h"

#define MIB       (INT64_C(1) << 20)
#define TILES_MAX 8

static const char *const driver_names[] = {
    [DRM_AMDGPU] = "amdgpu", [DRM_XE] = "xe", [DRM_I915] = "i915"};

/* A GPU of one of the drivers, before it is known whether it is usable. */
struct found {
    char *dir;
    enum drm_driver driver;
    struct drm_place place;
    unsigned vendor, device; /* PCI numbers */
};

struct finds {
    int n;
    struct found list[GPU_MAX];
};

/* --- discovery --- */

static bool
read_driver(const char *uevent, enum drm_driver *out)
{
    char name[32];

    if (!drm_find_value(uevent, "DRIVER", '=', name, sizeof name))
        return false;
    for (size_t i = 0; i < sizeof driver_names / sizeof driver_names[0]; i++) {
        if (strcmp(name, driver_names[i]) == 0) {
            *out = (enum drm_driver)i;
            return true;
        }
    }
    return false;
}

static int32_t
read_render(const char *dir)
{
    auto_free char *render = drm_first_entry(dir, "drm", "renderD");
    int64_t minor;

    return render && parse_int(strrchr(render, 'D') + 1, 0, INT32_MAX, &minor, NULL) == 0
               ? (int32_t)minor
               : -1;
}

/* Accepts "card0", but not "card0-DP-1" or "renderD128". */
static bool
read_found(const char *folder, const char *name, struct found *out)
{
    auto_buf struct buf text = BUF_INIT;
    char slot[32], id[32];
    int64_t number;

    if (strncmp(name, "card", 4) != 0 || parse_int(name + 4, 0, 65535, &number, NULL) < 0)
        return false;
    auto_free char *dir = xasprintf("%s/%s/device", folder, name);
    auto_free char *path = xasprintf("%s/uevent", dir);
    if (file_read(path, 65536, &text, NULL) < 0 || !read_driver(buf_str(&text), &out->driver) ||
        !drm_find_value(buf_str(&text), "PCI_SLOT_NAME", '=', slot, sizeof slot) ||
        sysfs_bus_id(slot, out->place.bus_id, sizeof out->place.bus_id) < 0)
        return false;
    out->vendor = out->device = 0;
    if (drm_find_value(buf_str(&text), "PCI_ID", '=', id, sizeof id))
        (void)sscanf(id, "%x:%x", &out->vendor, &out->device);
    out->place.card = (int32_t)number;
    out->place.render = read_render(dir);
    out->dir = TAKE(dir);
    return true;
}

static int
by_address(const void *a, const void *b)
{
    return strcmp(((const struct found *)a)->place.bus_id,
                  ((const struct found *)b)->place.bus_id);
}

static void
list_cards(const char *sys_root, struct finds *out)
{
    auto_free char *folder = xasprintf("%s/class/drm", sys_root);
    auto_dir DIR *d = opendir(folder);
    const struct dirent *entry;

    out->n = 0;
    while (d && out->n < GPU_MAX && (entry = readdir(d)))
        out->n += read_found(folder, entry->d_name, &out->list[out->n]);
    qsort(out->list, (size_t)out->n, sizeof out->list[0], by_address);
}

static void
free_finds(struct finds *finds)
{
    for (int i = 0; i < finds->n; i++)
        free(finds->list[i].dir);
    finds->n = 0;
}

/* --- GPUs without memory of their own --- */

/* Two signs of a GPU integrated in a processor: the voltage of the northbridge, and the format
 * of the metrics (1: discrete). Reading the second may wake the GPU, so it is checked last. */
static bool
is_apu(const struct found *f)
{
    auto_free char *hwmon = drm_first_entry(f->dir, "hwmon", "hwmon");
    auto_free char *label = hwmon ? sysfs_read_line(hwmon, "in1_label") : NULL;
    auto_free char *path = xasprintf("%s/gpu_metrics", f->dir);
    auto_buf struct buf metrics = BUF_INIT;

    if (label && strcmp(label, "vddnb") == 0)
        return true;
    return file_read(path, 65536, &metrics, NULL) == 0 && metrics.len >= 4 &&
           metrics.data[2] > 1;
}

/* Intel's integrated GPUs are on the root bus, its discrete ones behind a bridge. */
static bool
is_integrated(const struct found *f)
{
    return f->driver == DRM_AMDGPU ? is_apu(f) : strcmp(f->place.bus_id, "0000:00:02.0") == 0;
}

static void __attribute__((format(printf, 3, 4)))
leave_out(const struct found *f, struct backend_machine *m, const char *fmt, ...)
{
    char why[BACKEND_NOTE_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    backend_machine_leave_out(m, "%s (%s) is left out: %s", f->place.bus_id,
                              driver_names[f->driver], why);
}

/* --- data of a GPU --- */

static int64_t
sum_of_tiles(const char *dir)
{
    int64_t sum = 0;

    for (int i = 0; i < TILES_MAX; i++) {
        char name[48];
        snprintf(name, sizeof name, "tile%d/physical_vram_size_bytes", i);
        int64_t bytes = sysfs_read_number(dir, name);
        sum += bytes > 0 ? bytes : 0;
    }
    return sum;
}

/* In bytes; 0 or less: not reported. Few kernels have i915's file. */
static int64_t
read_total(const struct found *f)
{
    char name[48];

    switch (f->driver) {
    case DRM_AMDGPU:
        return sysfs_read_number(f->dir, "mem_info_vram_total");
    case DRM_XE:
        return sum_of_tiles(f->dir);
    case DRM_I915:
        snprintf(name, sizeof name, "drm/card%d/lmem_total_bytes", f->place.card);
        break;
    }
    return sysfs_read_number(f->dir, name);
}

static void
read_name(const struct drm *drm, const struct found *f, struct backend_card *card)
{
    const char *maker = f->driver == DRM_AMDGPU ? "AMD" : "Intel";
    auto_free char *own = sysfs_read_line(f->dir, "product_name");
    char listed[CARD_NAME_MAX];

    if (own && own[0])
        snprintf(card->name, sizeof card->name, "%s", own);
    else if (pci_names_find(drm->config->pci_ids, f->vendor, f->device, listed, sizeof listed))
        snprintf(card->name, sizeof card->name, "%s %.80s", maker, listed);
    else
        snprintf(card->name, sizeof card->name, "%s GPU %04x", maker, f->device);
}

/* The identifier that ROCm accepts, or else the PCI address. */
static void
read_uuid(const struct found *f, struct backend_card *card)
{
    auto_free char *line = sysfs_read_line(f->dir, "unique_id");
    uint64_t id = line && strspn(line, "0123456789abcdefABCDEF") == strlen(line)
                      ? strtoull(line, NULL, 16)
                      : 0;

    if (id > 0)
        snprintf(card->uuid, sizeof card->uuid, "GPU-%016" PRIx64, id);
    else
        snprintf(card->uuid, sizeof card->uuid, "PCI-%s", f->place.bus_id);
}

static void
read_devices(const struct found *f, struct backend_card *card)
{
    if (f->place.render < 0)
        return;
    card->dri_card = f->place.card;
    card->dri_render = f->place.render;
    card->valid |= CARD_HAS_DRI;
}

static void
add_card(struct drm *drm, const struct found *f, int order, uint32_t kfd_id, int64_t bytes,
         struct backend_machine *m)
{
    struct backend_card *card = &m->cards[m->n];

    memset(card, 0, sizeof *card);
    card->index = m->n;
    card->vendor = f->driver == DRM_AMDGPU ? CARD_AMD : CARD_INTEL;
    card->total_mib = bytes > 0 ? bytes / MIB : 0;
    memcpy(card->bus_id, f->place.bus_id, sizeof card->bus_id);
    card->valid = CARD_HAS_BUS_ID;
    if (order >= 0) {
        card->order = order;
        card->valid |= CARD_HAS_ORDER;
    }
    read_name(drm, f, card);
    read_uuid(f, card);
    read_devices(f, card);
    sysfs_fill_numa(drm->config->sys_root, card);
    snprintf(card->cap_why, sizeof card->cap_why,
             "the kernel does not count its memory by cgroup (dmem, Linux 6.14 and later)");
    drm->cards[m->n] =
        (struct drm_card){.dir = xstrdup(f->dir), .driver = f->driver, .kfd_id = kfd_id};
    memcpy(drm->cards[m->n].bus_id, f->place.bus_id, sizeof f->place.bus_id);
    m->n++;
}

/* Finds its position among ROCm's devices, -1: unknown to KFD. Returns its number of
 * partitions there. */
static int
find_kfd(const struct found *f, const struct drm_kfd_node *nodes, int n, int *order)
{
    int parts = 0;

    *order = -1;
    for (int i = 0; i < n; i++) {
        /* the function number means something else in KFD */
        if (strncmp(nodes[i].bus_id, f->place.bus_id, strlen("0000:00:00")) != 0)
            continue;
        if (parts++ == 0)
            *order = i;
    }
    return parts;
}

static void
consider_amd(struct drm *drm, const struct found *f, const struct drm_kfd_node *nodes, int n,
             struct backend_machine *m)
{
    int64_t bytes = read_total(f);
    int order, parts = find_kfd(f, nodes, n, &order);

    if (parts > 1)
        leave_out(f, m, "it is divided into %d compute partitions, which are not supported",
                  parts);
    else if (bytes <= 0)
        leave_out(f, m, "the size of its memory cannot be read (mem_info_vram_total)");
    else
        add_card(drm, f, order, order >= 0 ? nodes[order].id : 0, bytes, m);
}

/* Level Zero counts all Intel GPUs, including integrated ones, by address if told so. */
static void
consider_all(struct drm *drm, const struct finds *finds, struct backend_machine *m)
{
    struct drm_kfd_node nodes[DRM_KFD_NODES_MAX];
    int n_nodes = drm_kfd_nodes(drm_sys_root(drm), nodes), n_intel = 0;

    for (int i = 0; i < finds->n; i++) {
        const struct found *f = &finds->list[i];
        int order = f->driver == DRM_AMDGPU ? -1 : n_intel++;
        if (is_integrated(f))
            leave_out(f, m, "it is integrated and has no memory of its own");
        else if (f->driver == DRM_AMDGPU)
            consider_amd(drm, f, nodes, n_nodes, m);
        else
            add_card(drm, f, order, 0, read_total(f), m);
    }
}

/* Lists the drivers of the usable GPUs. */
static void
name_drivers(const struct drm *drm, struct backend_machine *m)
{
    bool has[sizeof driver_names / sizeof driver_names[0]] = {false};
    auto_buf struct buf names = BUF_INIT;

    for (int i = 0; i < drm->n; i++)
        has[drm->cards[i].driver] = true;
    for (size_t i = 0; i < sizeof has / sizeof has[0]; i++) {
        if (has[i])
            buf_addf(&names, "%s%s", names.len ? ", " : "", driver_names[i]);
    }
    snprintf(m->driver, sizeof m->driver, "%s", buf_str(&names));
}

void
drm_find_cards(struct drm *drm, struct backend_machine *out)
{
    auto_free struct finds *finds = xcalloc(1, sizeof *finds);

    memset(out, 0, sizeof *out);
    list_cards(drm_sys_root(drm), finds);
    consider_all(drm, finds, out);
    for (int i = 0; i < finds->n; i++)
        drm->places[i] = finds->list[i].place;
    drm->n_places = finds->n;
    free_finds(finds);
    drm->n = out->n;
    name_drivers(drm, out);
}

static bool
has_place(const struct drm *drm, const struct drm_place *p)
{
    for (int i = 0; i < drm->n_places; i++) {
        const struct drm_place *old = &drm->places[i];
        if (strcmp(old->bus_id, p->bus_id) == 0)
            return old->card == p->card && old->render == p->render;
    }
    return false;
}

/* A missing GPU does not count as a difference: it is lost, and may come back. */
bool
drm_cards_differ(const struct drm *drm)
{
    auto_free struct finds *finds = xcalloc(1, sizeof *finds);
    bool differ = false;

    list_cards(drm_sys_root(drm), finds);
    for (int i = 0; i < finds->n; i++)
        differ |= !has_place(drm, &finds->list[i].place);
    free_finds(finds);
    return differ;
}
