/* Finds GPUs that do not answer at discovery. Nothing else would report them: a GPU that was
 * never listed cannot be missed. Called by nvml.c. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "gpu/nvml.h"
#include "gpu/sysfs.h"

void
nvml_roll_begin(const struct nvml *nvml, struct nvml_roll *roll)
{
    memset(roll, 0, sizeof *roll);
    roll->n = sysfs_nvidia_gpus(nvml->config->proc_root, roll->bus_ids, GPU_MAX);
}

static void
mark(struct nvml_roll *roll, const char *bus_id)
{
    for (int i = 0; i < roll->n; i++)
        roll->is_met[i] |= strcmp(roll->bus_ids[i], bus_id) == 0;
}

void
nvml_roll_met(const struct nvml *nvml, nvml_device device, struct nvml_roll *roll)
{
    char bus_id[CARD_BUS_MAX];

    if (nvml_read_bus(&nvml->api, device, bus_id))
        mark(roll, bus_id);
    else
        roll->is_vague = true;
}

static void
add_silent(const struct nvml *nvml, uint32_t index, const char *bus_id, int status,
           struct backend_machine *out)
{
    auto_free char *name = bus_id[0] ? xasprintf("GPU %u (%s)", (unsigned)index, bus_id)
                                     : xasprintf("GPU %u", (unsigned)index);

    /* Other users' GPUs, as in a container: their absence is not a fault. */
    if (status == NVML_NO_PERMISSION)
        backend_machine_leave_out(out, "%s is left out: this user may not use it", name);
    else
        backend_machine_add_unanswered(out, bus_id, nvml_card_is_lost(status),
                                       "%s does not answer: %s (error %d)", name,
                                       nvml_api_words(&nvml->api, status), status);
}

void
nvml_roll_silent(const struct nvml *nvml, struct nvml_roll *roll, uint32_t index,
                 uint32_t count, nvml_device device, int status, struct backend_machine *out)
{
    char bus_id[CARD_BUS_MAX] = "";

    /* NVML's order is that of the addresses. */
    if (!(device && nvml_read_bus(&nvml->api, device, bus_id)) && (int)count == roll->n)
        memcpy(bus_id, roll->bus_ids[index], sizeof bus_id);
    roll->is_vague |= !bus_id[0];
    mark(roll, bus_id);
    add_silent(nvml, index, bus_id, status, out);
}

void
nvml_roll_end(const struct nvml_roll *roll, struct backend_machine *out)
{
    for (int i = 0; i < roll->n && !roll->is_vague; i++)
        if (!roll->is_met[i])
            backend_machine_add_unanswered(out, roll->bus_ids[i], true,
                                           "the driver has a GPU at %s that NVML does not list",
                                           roll->bus_ids[i]);
}
