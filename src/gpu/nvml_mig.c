/* The NVML backend's MIG instances. A GPU in MIG mode runs no program itself: its instances
 * are the cards, with memory of their own, and the GPU's PCI address and health. Called by
 * nvml.c at discovery, and before every sample to detect changes: an administrator can divide
 * a GPU anew at any time, and a handle may then refer to another instance.
 *
 * A GPU instance divided into several compute instances has one memory, which none of them is
 * limited to a part of: each counts as having the same share of memory as of compute. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "gpu/nvml.h"
#include "gpu/sysfs.h"

#define INSTANCES_MAX 64 /* per GPU; drivers have at most 8 */
#define GIB_MIB       1024

/* --- listing --- */

static uint32_t
list_instances(const struct nvml_api *api, nvml_device gpu, nvml_device out[INSTANCES_MAX])
{
    uint32_t max = 0, n = 0;

    if (!api->mig_max || !api->mig_handle || api->mig_max(gpu, &max) != NVML_OK)
        return 0;
    for (uint32_t i = 0; i < max && n < INSTANCES_MAX; i++)
        if (api->mig_handle(gpu, i, &out[n]) == NVML_OK)
            n++;
    return n;
}

/* --- one instance --- */

static uint32_t
number_of(nvml_uint_fn read, nvml_device instance)
{
    uint32_t n;

    return read && read(instance, &n) == NVML_OK ? n : UINT32_MAX;
}

/* In GB, rounded as in the driver's profile names: eighths of the GPU's memory. */
static uint64_t
profile_gb(uint64_t mib, uint64_t gpu_mib)
{
    uint64_t gpu_gb = (gpu_mib + GIB_MIB - 1) / GIB_MIB;

    if (gpu_mib == 0)
        return (mib + GIB_MIB - 1) / GIB_MIB;
    return ((mib * 8 + gpu_mib - 1) / gpu_mib * gpu_gb + 4) / 8;
}

/* "NVIDIA A100-SXM4-80GB MIG 1g.10gb"; built here because not every driver returns it. */
static void
name_instance(const struct nvml_api *api, nvml_device gpu, nvml_device instance,
              const struct nvml_attributes *a, struct backend_card *card)
{
    char own[CARD_NAME_MAX] = "", whole[CARD_NAME_MAX] = "GPU", part[16] = "";
    struct nvml_reading memory = {0};

    if (api->name && api->name(instance, own, sizeof own) == NVML_OK && strstr(own, " MIG ")) {
        memcpy(card->name, own, sizeof card->name);
        return;
    }
    if (api->name)
        (void)api->name(gpu, whole, sizeof whole);
    whole[sizeof whole - 1] = own[sizeof own - 1] = '\0';
    if (strncmp(own, "MIG ", 4) == 0) {
        snprintf(card->name, sizeof card->name, "%.50s %.44s", whole, own);
        return;
    }
    if (a->gpu_slices == 0) {
        snprintf(card->name, sizeof card->name, "%.50s MIG %u/%u", whole,
                 (unsigned)card->mig_gi, (unsigned)card->mig_ci);
        return;
    }
    if (a->compute_slices < a->gpu_slices)
        snprintf(part, sizeof part, "%uc.", a->compute_slices);
    (void)nvml_read_memory(api, gpu, &memory);
    snprintf(card->name, sizeof card->name, "%.50s MIG %s%ug.%llugb", whole, part,
             a->gpu_slices,
             (unsigned long long)profile_gb(a->memory_mib, (uint64_t)memory.total_mib));
}

int32_t
nvml_next_index(const struct backend_machine *m)
{
    return m->n > 0 ? m->cards[m->n - 1].index + 1 : 0;
}

static int
read_instance(struct nvml *nvml, nvml_device gpu, nvml_device device,
              struct backend_machine *out)
{
    const struct nvml_api *api = &nvml->api;
    struct backend_card *card = &out->cards[out->n];
    struct nvml_instance *instance = &nvml->instances[out->n];
    struct nvml_attributes a = {.gpu_slices = 0};
    struct nvml_reading memory;

    memset(card, 0, sizeof *card);
    int status = api->uuid(device, card->uuid, sizeof card->uuid);
    if (status == NVML_OK)
        status = api->uuid(gpu, card->mig_gpu, sizeof card->mig_gpu);
    if (status == NVML_OK)
        status = nvml_read_memory(api, device, &memory);
    if (status != NVML_OK)
        return status;
    if (api->attributes)
        (void)api->attributes(device, &a);
    *instance = (struct nvml_instance){
        .gpu = gpu, .gi = number_of(api->mig_gi, device), .ci = number_of(api->mig_ci, device)};
    card->index = nvml_next_index(out);
    card->vendor = CARD_NVIDIA;
    card->total_mib = memory.total_mib;
    card->mig_gi = (int32_t)instance->gi;
    card->mig_ci = (int32_t)instance->ci;
    instance->shares_memory = a.compute_slices > 0 && a.compute_slices < a.gpu_slices;
    if (instance->shares_memory)
        card->total_mib = memory.total_mib * a.compute_slices / a.gpu_slices;
    name_instance(api, gpu, device, &a, card);
    nvml_read_numbers(nvml, gpu, card);
    nvml_find_cap(nvml, device, card);
    sysfs_fill_mig_caps(nvml->config->proc_root, card);
    return NVML_OK;
}

/* --- one GPU --- */

/* Writes the UUIDs and names of the instances; the UUID alone may be reused for an instance of
 * another size. */
static void
write_layout(const struct nvml_api *api, nvml_device gpu, bool is_on, struct buf *out)
{
    nvml_device list[INSTANCES_MAX];
    uint32_t n = is_on ? list_instances(api, gpu, list) : 0;

    if (is_on)
        buf_adds(out, "divided");
    for (uint32_t i = 0; i < n; i++) {
        char uuid[CARD_UUID_MAX] = "?", name[CARD_NAME_MAX] = "?";
        (void)api->uuid(list[i], uuid, sizeof uuid);
        if (api->name)
            (void)api->name(list[i], name, sizeof name);
        buf_addf(out, "\n%.95s %.95s", uuid, name);
    }
}

/* True if the GPU is in MIG mode. From now on it is checked for changes. */
static bool
is_divided(struct nvml *nvml, nvml_device gpu)
{
    const struct nvml_api *api = &nvml->api;
    uint32_t now = 0, pending;

    if (!api->mig_mode || api->mig_mode(gpu, &now, &pending) != NVML_OK)
        return false;
    if (nvml->n_divisible < GPU_MAX) {
        struct nvml_divisible *d = &nvml->divisible[nvml->n_divisible++];
        d->device = gpu;
        write_layout(api, gpu, now == 1, &d->layout);
    }
    return now == 1;
}

static void
note_gpu(const struct nvml *nvml, nvml_device gpu, struct backend_machine *out, uint32_t n)
{
    struct backend_card whole = {.valid = 0};
    char uuid[CARD_UUID_MAX];

    if (nvml->api.uuid(gpu, uuid, sizeof uuid) != NVML_OK || out->n_mig_gpus == GPU_MAX)
        return;
    memcpy(out->mig_gpus[out->n_mig_gpus++], uuid, sizeof uuid);
    if (n > 0)
        return;
    nvml_read_numbers(nvml, gpu, &whole);
    backend_machine_leave_out(out,
                              "%s is in MIG mode and has no instances; make some with "
                              "'nvidia-smi mig -cgi PROFILE -C', or turn MIG mode off",
                              whole.bus_id[0] ? whole.bus_id : uuid);
}

bool
nvml_add_instances(struct nvml *nvml, nvml_device gpu, struct backend_machine *out)
{
    nvml_device list[INSTANCES_MAX];

    if (!is_divided(nvml, gpu))
        return false;
    uint32_t n = list_instances(&nvml->api, gpu, list);
    note_gpu(nvml, gpu, out, n);
    out->mig_major = sysfs_mig_major(nvml->config->proc_root);
    for (uint32_t i = 0; i < n; i++) {
        if (out->n == GPU_MAX) {
            backend_machine_leave_out(out, "MIG instances beyond %d GPUs are left out",
                                      GPU_MAX);
            break;
        }
        if (read_instance(nvml, gpu, list[i], out) == NVML_OK)
            nvml->devices[out->n++] = list[i];
    }
    return true;
}

bool
nvml_has_new_partition(const struct nvml *nvml)
{
    const struct nvml_api *api = &nvml->api;

    for (int i = 0; i < nvml->n_divisible; i++) {
        const struct nvml_divisible *d = &nvml->divisible[i];
        auto_buf struct buf layout = BUF_INIT;
        uint32_t now, pending;
        /* A GPU that does not answer is lost, which the sample reports. */
        if (api->mig_mode(d->device, &now, &pending) != NVML_OK)
            continue;
        write_layout(api, d->device, now == 1, &layout);
        if (strcmp(buf_str(&layout), buf_str(&d->layout)) != 0)
            return true;
    }
    return false;
}

void
nvml_mig_end(struct nvml *nvml)
{
    for (int i = 0; i < nvml->n_divisible; i++)
        buf_free(&nvml->divisible[i].layout);
}
