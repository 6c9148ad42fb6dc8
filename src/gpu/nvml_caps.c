/* The NVML backend's memory limits (driver 615 and later): the maximum that all processes of a
 * cgroup may use of a GPU, and what they use. Only hard limits are set: a soft one would
 * guarantee memory to the group, and the scheduler already reserves it. Used by the probe for
 * samples, and once for each capped job. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "gpu/nvml.h"

#define MIB (1ULL << 20)

/* NULL: the GPU can be capped. */
static const char *
why_not(const struct nvml *nvml, nvml_device device, const char *uuid)
{
    const struct nvml_api *api = &nvml->api;
    struct nvml_get_limits limits = {.group = nvml->config->cgroup_root};

    if (!api->set_limits || !api->get_limits || !api->handle_by_uuid)
        return "the driver has no memory limits for cgroups (615 and later have)";
    if (strncmp(uuid, "MIG-", 4) == 0)
        return "the driver limits no memory within a MIG instance";
    if (!limits.group)
        return "no cgroup v2 tree is mounted";
    if (geteuid() != 0)
        return "only a daemon that runs as root can set the driver's memory limits";
    int status = api->get_limits(device, &limits);
    return status == NVML_NOT_SUPPORTED || status == NVML_FUNCTION_NOT_FOUND
               ? "the driver does not support memory limits for this GPU"
               : NULL;
}

void
nvml_find_cap(const struct nvml *nvml, nvml_device device, struct backend_card *card)
{
    const char *why = why_not(nvml, device, card->uuid);

    snprintf(card->cap, sizeof card->cap, "%s", why ? "" : "nvml");
    snprintf(card->cap_why, sizeof card->cap_why, "%s", why ? why : "");
}

int
nvml_cap(void *state, const char *uuid, const char *group, int64_t mib, struct err *e)
{
    const struct nvml *nvml = state;
    const struct nvml_api *api = &nvml->api;
    struct nvml_set_limits limits = {
        .group = group, .hard_bytes = mib < 0 ? NVML_NO_LIMIT : (unsigned long long)mib * MIB};
    nvml_device device;

    if (!api->set_limits || !api->handle_by_uuid)
        return err_set(e, ERR_FAILED, "the driver has no memory limits for cgroups");
    int status = api->handle_by_uuid(uuid, &device);
    if (status == NVML_OK)
        status = api->set_limits(device, &limits);
    if (status == NVML_OK)
        return 0;
    return err_set(e, ERR_FAILED, "the driver does not limit its memory: %s (error %d)",
                   nvml_api_words(api, status), status);
}

void
nvml_group_use(void *state, struct backend_group *g)
{
    const struct nvml *nvml = state;
    struct nvml_get_limits limits = {.group = g->name};

    if (nvml->api.get_limits &&
        nvml->api.get_limits(nvml->devices[g->card], &limits) == NVML_OK)
        g->mib = (int64_t)(limits.used_bytes / MIB + (limits.used_bytes % MIB != 0));
}
