/* The NVML backend: discovery of the GPUs. nvml_sample.c reads their use. A broken GPU, a
 * missing function or an unreported field never affects the rest. */
#include "gpu/nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "gpu/sysfs.h"

/* Memory goes bad once in months, and reading its health costs as much as the rest of a
 * sample. The same applies to the compute mode, which only an administrator changes. */
#define HEALTH_EVERY_US 10000000

static int
fail(const struct nvml *nvml, const char *doing, int status, struct err *e)
{
    char loaded[64];

    if (status != NVML_VERSION_MISMATCH)
        return err_set(e, ERR_FAILED, "NVML cannot %s: %s (error %d)", doing,
                       nvml_api_words(&nvml->api, status), status);
    sysfs_driver_version(nvml->config->proc_root, loaded, sizeof loaded);
    return err_set(e, ERR_FAILED, "NVML cannot %s: %s (the loaded driver is %s); %s", doing,
                   nvml_api_words(&nvml->api, status),
                   loaded[0] ? loaded : "of another version", SYSFS_MISMATCH_ADVICE);
}

static int
nvml_open(const struct backend_config *config, void **state, struct err *e)
{
    struct nvml *nvml = xcalloc(1, sizeof *nvml);

    nvml->config = config;
    *state = nvml;
    if (nvml_api_load(&nvml->api, config->nvml_path, e) < 0)
        return -1;
    int status = nvml->api.init();
    if (status != NVML_OK)
        return fail(nvml, "start", status, e);
    nvml->started = true;
    return 0;
}

static void
pci_text(const struct nvml_pci *pci, char *out, size_t size)
{
    snprintf(out, size, "%04x:%02x:%02x.0", pci->domain, pci->bus, pci->device);
}

bool
nvml_read_bus(const struct nvml_api *api, nvml_device device, char out[CARD_BUS_MAX])
{
    struct nvml_pci pci;

    memset(&pci, 0, sizeof pci);
    if (!api->pci || api->pci(device, &pci) != NVML_OK)
        return false;
    pci_text(&pci, out, CARD_BUS_MAX);
    return true;
}

void
nvml_read_numbers(const struct nvml *nvml, nvml_device device, struct backend_card *card)
{
    const struct nvml_api *api = &nvml->api;
    uint32_t value;

    if (nvml_read_bus(api, device, card->bus_id))
        card->valid |= CARD_HAS_BUS_ID;
    if (api->minor && api->minor(device, &value) == NVML_OK) {
        card->minor = (int32_t)value;
        card->valid |= CARD_HAS_MINOR;
    }
    /* The kernel reports the node the GPU is attached to; on machines whose GPUs are nodes
     * themselves NVML reports those instead. */
    sysfs_fill_numa(nvml->config->sys_root, card);
    if (!(card->valid & CARD_HAS_NUMA) && api->numa && api->numa(device, &value) == NVML_OK &&
        value <= INT32_MAX) {
        card->numa = (int32_t)value;
        card->valid |= CARD_HAS_NUMA;
    }
    int major, minor;
    if (api->compute_capability && api->compute_capability(device, &major, &minor) == NVML_OK &&
        major > 0 && minor >= 0 && minor < 10) {
        card->cc = major * 10 + minor;
        card->valid |= CARD_HAS_CC;
    }
    if (api->compute_mode && api->compute_mode(device, &value) == NVML_OK) {
        /* 0 default, 1 exclusive thread (obsolete), 2 prohibited, 3 exclusive process */
        card->compute_mode = value == 2   ? CARD_COMPUTE_PROHIBITED
                             : value == 0 ? CARD_COMPUTE_DEFAULT
                                          : CARD_COMPUTE_EXCLUSIVE;
        card->valid |= CARD_HAS_COMPUTE_MODE;
    }
}

/* 0, or NVML's status if the UUID or the memory cannot be read. A GPU that uses the machine's
 * memory (GB10) reports no size. */
static int
read_card(const struct nvml *nvml, nvml_device device, struct backend_card *card)
{
    const struct nvml_api *api = &nvml->api;
    struct nvml_reading memory = {.total_mib = 0};

    int status = api->uuid(device, card->uuid, sizeof card->uuid);
    if (status == NVML_OK)
        status = nvml_read_memory(api, device, &memory);
    if (status != NVML_OK && status != NVML_NOT_SUPPORTED)
        return status;
    card->total_mib = memory.total_mib;
    card->vendor = CARD_NVIDIA;
    if (!api->name || api->name(device, card->name, sizeof card->name) != NVML_OK)
        snprintf(card->name, sizeof card->name, "GPU");
    nvml_read_numbers(nvml, device, card);
    nvml_find_cap(nvml, device, card);
    return NVML_OK;
}

/* Skips MIG instances, which have no links. */
static int
card_at_bus(const struct backend_machine *m, const char *bus_id)
{
    for (int i = 0; i < m->n; i++) {
        if (!m->cards[i].mig_gpu[0] && (m->cards[i].valid & CARD_HAS_BUS_ID) &&
            strcmp(m->cards[i].bus_id, bus_id) == 0)
            return i;
    }
    return -1;
}

/* Follows one link of a GPU: adds the pair if another GPU is at its far end. True if a switch
 * is. */
static bool
follow_link(const struct nvml *nvml, int card, uint32_t link, struct backend_machine *m)
{
    const struct nvml_api *api = &nvml->api;
    nvml_device device = nvml->devices[card];
    uint32_t active = 0, type = 0;
    struct nvml_pci pci;
    char bus_id[CARD_BUS_MAX];

    if (api->link_state(device, link, &active) != NVML_OK || !active)
        return false;
    memset(&pci, 0, sizeof pci);
    if (api->link_remote_pci && api->link_remote_pci(device, link, &pci) == NVML_OK) {
        pci_text(&pci, bus_id, sizeof bus_id);
        int other = card_at_bus(m, bus_id);
        if (other >= 0)
            backend_machine_link(m, card, other);
    }
    return api->link_remote_type && api->link_remote_type(device, link, &type) == NVML_OK &&
           type == NVML_REMOTE_SWITCH;
}

/* GPUs on the switches of one machine reach each other directly, all with all. */
static void
find_links(const struct nvml *nvml, struct backend_machine *m)
{
    bool on_switch[GPU_MAX] = {false};

    if (!nvml->api.link_state)
        return;
    for (int i = 0; i < m->n; i++) {
        for (uint32_t link = 0; link < NVML_LINKS_MAX && !m->cards[i].mig_gpu[0]; link++)
            on_switch[i] |= follow_link(nvml, i, link, m);
    }
    for (int i = 0; i < m->n; i++) {
        for (int j = i + 1; j < m->n; j++) {
            if (on_switch[i] && on_switch[j])
                backend_machine_link(m, i, j);
        }
    }
}

/* GPUs that do not answer are recorded as such, and the status of the first is returned. */
static int
read_cards(struct nvml *nvml, uint32_t count, struct backend_machine *out)
{
    struct nvml_roll roll;
    int complaint = NVML_OK;

    nvml_roll_begin(nvml, &roll);
    for (uint32_t index = 0; index < count && out->n < GPU_MAX; index++) {
        struct backend_card *card = &out->cards[out->n];
        nvml_device device = NULL;
        memset(card, 0, sizeof *card);
        card->index = (int32_t)index;
        int status = nvml->api.handle(index, &device);
        if (status != NVML_OK)
            device = NULL;
        else
            nvml_roll_met(nvml, device, &roll);
        if (status == NVML_OK && nvml_add_instances(nvml, device, out))
            continue;
        if (status == NVML_OK)
            status = read_card(nvml, device, card);
        /* After a divided GPU, the cards have numbers of their own. */
        if (out->n_mig_gpus > 0)
            card->index = nvml_next_index(out);
        if (status == NVML_OK) {
            nvml->devices[out->n++] = device;
            continue;
        }
        nvml_roll_silent(nvml, &roll, index, count, device, status, out);
        if (complaint == NVML_OK)
            complaint = status;
    }
    if (out->n < GPU_MAX)
        nvml_roll_end(&roll, out);
    return complaint;
}

/* The compute mode of the card's GPU; UINT32_MAX: not reported. */
static uint32_t
compute_mode_of(const struct nvml *nvml, int card)
{
    nvml_device gpu = nvml->instances[card].gpu;
    uint32_t mode;

    if (!nvml->api.compute_mode ||
        nvml->api.compute_mode(gpu ? gpu : nvml->devices[card], &mode) != NVML_OK)
        return UINT32_MAX;
    return mode;
}

/* Checked when the next sample reads the memory's health. A GPU that does not answer is lost,
 * which the sample reports. */
static bool
has_new_compute_mode(const struct nvml *nvml)
{
    for (int i = 0; i < nvml->n && clock_boot_us() >= nvml->health_due_us; i++) {
        uint32_t now = compute_mode_of(nvml, i);
        if (now != UINT32_MAX && now != nvml->compute_modes[i])
            return true;
    }
    return false;
}

static bool
nvml_has_changed(void *state)
{
    const struct nvml *nvml = state;

    return nvml_has_new_partition(nvml) || has_new_compute_mode(nvml);
}

static int
nvml_discover(void *state, struct backend_machine *out, struct err *e)
{
    struct nvml *nvml = state;
    const struct nvml_api *api = &nvml->api;
    uint32_t count = 0;

    memset(out, 0, sizeof *out);
    int status = api->count(&count);
    if (status != NVML_OK)
        return fail(nvml, "count the GPUs", status, e);
    int complaint = read_cards(nvml, count, out);
    if (out->n == 0 && complaint != NVML_OK)
        return fail(nvml, "read any GPU", complaint, e);
    if (out->n == 0 && out->n_mig_gpus == 0)
        return err_set(e, ERR_FAILED, "NVML lists no GPU");
    if (!api->driver_version || api->driver_version(out->driver, sizeof out->driver) != NVML_OK)
        out->driver[0] = '\0';
    find_links(nvml, out);
    nvml->n = out->n;
    for (int i = 0; i < nvml->n; i++) {
        nvml->compute_modes[i] = compute_mode_of(nvml, i);
        if (!nvml->instances[i].gpu)
            nvml_account_start(&nvml->api, nvml->devices[i], &nvml->accounts[i]);
    }
    return 0;
}

static int
nvml_sample(void *state, struct backend_sample *out, struct err *e)
{
    struct nvml *nvml = state;

    bool check = clock_boot_us() >= nvml->health_due_us;

    if (check)
        nvml->health_due_us = clock_boot_us() + HEALTH_EVERY_US;
    backend_sample_reset(out);
    for (int i = 0; i < nvml->n; i++) {
        struct backend_usage *u = &out->use[i];
        nvml_device gpu = nvml->instances[i].gpu ? nvml->instances[i].gpu : nvml->devices[i];
        int status = nvml_read_usage(nvml, i, u);
        if (status != NVML_OK)
            return fail(nvml, "read the GPUs", status, e);
        bool is_read = u->present && !u->is_unreadable;
        if (is_read)
            nvml_account_read(&nvml->api, nvml->devices[i], &nvml->accounts[i], u);
        if (check && is_read)
            nvml_read_health(&nvml->api, gpu, u);
    }
    return 0;
}

static void
nvml_close(void *state)
{
    struct nvml *nvml = state;

    if (!nvml)
        return;
    if (nvml->started)
        nvml->api.shutdown();
    nvml_api_unload(&nvml->api);
    for (int i = 0; i < GPU_MAX; i++)
        nvml_account_end(&nvml->accounts[i]);
    nvml_mig_end(nvml);
    free(nvml->processes);
    free(nvml);
}

const struct backend backend_nvml = {
    .name = "nvml",
    .open = nvml_open,
    .discover = nvml_discover,
    .sample = nvml_sample,
    .has_changed = nvml_has_changed,
    .close = nvml_close,
    .cap = nvml_cap,
    .group_use = nvml_group_use,
};
