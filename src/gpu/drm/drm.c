/* The DRM backend: GPUs of AMD and Intel, as the kernel reports them in /sys and /proc,
 * without any vendor library. drm_cards.c finds the GPUs; drm_kfd.c and drm_clients.c read
 * what processes use. */
#include "gpu/drm/drm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "gpu/sysfs.h"

#define MIB (INT64_C(1) << 20)

const char *
drm_sys_root(const struct drm *drm)
{
    return drm->config->sys_root ? drm->config->sys_root : "/sys";
}

const char *
drm_proc_root(const struct drm *drm)
{
    return drm->config->proc_root ? drm->config->proc_root : "/proc";
}

static bool
nvidia_is_loaded(const struct drm *drm)
{
    auto_free char *path = xasprintf("%s/driver/nvidia/version", drm_proc_root(drm));
    return access(path, F_OK) == 0;
}

/* A driver that is loaded late, as after its installation, adds GPUs that this backend does
 * not have, so the backend is chosen anew. GPUs that are bound to their driver again may swap
 * numbers. */
static bool
drm_has_changed(void *state)
{
    const struct drm *drm = state;
    return (!drm->beside_nvidia && nvidia_is_loaded(drm)) || drm_cards_differ(drm);
}

static int
drm_open(const struct backend_config *config, void **state, struct err *e)
{
    struct drm *drm = xcalloc(1, sizeof *drm);

    (void)e;
    drm->config = config;
    drm->beside_nvidia = nvidia_is_loaded(drm);
    *state = drm;
    return 0;
}

static int
drm_discover(void *state, struct backend_machine *out, struct err *e)
{
    struct drm *drm = state;

    drm_find_cards(drm, out);
    if (out->n > 0)
        return 0;
    return err_set(e, ERR_FAILED,
                   "there is no GPU of the drivers amdgpu, xe or i915 to use%s%s",
                   out->n_left_out ? ": " : "", out->n_left_out ? out->left_out[0] : "");
}

/* In microjoules: of the whole card if xe reports that (energy1), else of the GPU's
 * package. */
static void
read_energy(const char *hwmon, struct backend_usage *u)
{
    int64_t uj = sysfs_read_number(hwmon, "energy1_input");

    if (uj < 0)
        uj = sysfs_read_number(hwmon, "energy2_input");
    if (uj < 0)
        return;
    u->energy_mj = uj / 1000;
    u->valid |= CARD_HAS_ENERGY;
}

static void
read_sensors(const struct drm_card *card, struct backend_usage *u)
{
    auto_free char *hwmon = drm_first_entry(card->dir, "hwmon", "hwmon");
    char name[] = "temp1_input";

    if (hwmon)
        read_energy(hwmon, u);
    for (char digit = '1'; hwmon && digit <= '4'; digit++) {
        name[4] = digit;
        int64_t milli = sysfs_read_number(hwmon, name);
        if (milli < 0)
            continue;
        u->temperature_c = (int32_t)(milli / 1000);
        u->valid |= CARD_HAS_TEMPERATURE;
        return;
    }
}

/* True if suspended: querying the GPU would wake it. */
static bool
is_asleep(const struct drm_card *card)
{
    auto_free char *state = sysfs_read_line(card->dir, "power/runtime_status");

    return state && strcmp(state, "suspended") == 0;
}

/* Card numbers are reassigned when drivers are bound again: another GPU may have this one's
 * number. */
static bool
is_there(const struct drm_card *card)
{
    auto_buf struct buf text = BUF_INIT;
    auto_free char *path = xasprintf("%s/uevent", card->dir);
    char slot[32], bus_id[CARD_BUS_MAX];

    return file_read(path, 65536, &text, NULL) == 0 &&
           drm_find_value(buf_str(&text), "PCI_SLOT_NAME", '=', slot, sizeof slot) &&
           sysfs_bus_id(slot, bus_id, sizeof bus_id) == 0 && strcmp(bus_id, card->bus_id) == 0;
}

static void
read_files(const struct drm_card *card, struct backend_usage *u)
{
    if (!is_there(card))
        return;

    int64_t used = sysfs_read_number(card->dir, "mem_info_vram_used"), busy = 0;

    u->present = true;
    if (used >= 0) {
        u->used_mib = used / MIB + (used % MIB != 0);
        u->valid |= CARD_HAS_USED;
    }
    if (!is_asleep(card)) {
        read_sensors(card, u);
        busy = sysfs_read_number(card->dir, "gpu_busy_percent");
    }
    if (busy >= 0) {
        u->util = busy > 100 ? 100 : (int32_t)busy;
        u->valid |= CARD_HAS_UTIL;
    }
}

static int
drm_sample(void *state, struct backend_sample *out, struct err *e)
{
    struct drm *drm = state;

    (void)e;
    backend_sample_reset(out);
    for (int i = 0; i < drm->n; i++)
        read_files(&drm->cards[i], &out->use[i]);
    drm_kfd_add(drm, out);
    drm_clients_add(drm, out);
    return 0;
}

static void
drm_close(void *state)
{
    struct drm *drm = state;

    if (!drm)
        return;
    for (int i = 0; i < drm->n; i++)
        free(drm->cards[i].dir);
    drm_clients_forget(drm, UINT64_MAX);
    free(drm);
}

const struct backend backend_drm = {.name = "drm",
                                    .open = drm_open,
                                    .discover = drm_discover,
                                    .sample = drm_sample,
                                    .has_changed = drm_has_changed,
                                    .close = drm_close};
