/* Loads libnvidia-ml.so.1 and finds the newest version of each function that it has. Used only
 * by the NVML backend in berth-probe. */
#include "gpu/nvml_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/err.h"

#define NAMES_MAX 4

struct symbol {
    size_t offset; /* of the pointer in struct nvml_api */
    bool required;
    const char *names[NAMES_MAX]; /* in order of preference; all have the same signature */
};

#define MEMBER(m) offsetof(struct nvml_api, m)

#define PROCESSES(kind, name)                                                                  \
    {MEMBER(processes[kind][0]), false, {name "_v3"}},                                         \
        {MEMBER(processes[kind][1]), false, {name "_v2"}},                                     \
    {                                                                                          \
        MEMBER(processes[kind][2]), false,                                                     \
        {                                                                                      \
            name                                                                               \
        }                                                                                      \
    }

static const struct symbol symbols[] = {
    {MEMBER(init), true, {"nvmlInit_v2", "nvmlInit"}},
    {MEMBER(shutdown), true, {"nvmlShutdown"}},
    {MEMBER(error_string), false, {"nvmlErrorString"}},
    {MEMBER(driver_version), false, {"nvmlSystemGetDriverVersion"}},
    {MEMBER(count), true, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}},
    {MEMBER(handle), true, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"}},
    {MEMBER(uuid), true, {"nvmlDeviceGetUUID"}},
    {MEMBER(name), false, {"nvmlDeviceGetName"}},
    {MEMBER(minor), false, {"nvmlDeviceGetMinorNumber"}},
    {MEMBER(numa), false, {"nvmlDeviceGetNumaNodeId"}},
    {MEMBER(compute_mode), false, {"nvmlDeviceGetComputeMode"}},
    {MEMBER(compute_capability), false, {"nvmlDeviceGetCudaComputeCapability"}},
    {MEMBER(pci),
     false,
     {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"}},
    {MEMBER(memory), true, {"nvmlDeviceGetMemoryInfo"}},
    {MEMBER(memory_v2), false, {"nvmlDeviceGetMemoryInfo_v2"}},
    {MEMBER(utilization), false, {"nvmlDeviceGetUtilizationRates"}},
    {MEMBER(temperature), false, {"nvmlDeviceGetTemperature"}},
    {MEMBER(energy), false, {"nvmlDeviceGetTotalEnergyConsumption"}},
    {MEMBER(remapped_rows), false, {"nvmlDeviceGetRemappedRows"}},
    {MEMBER(accounting_mode), false, {"nvmlDeviceGetAccountingMode"}},
    {MEMBER(set_accounting_mode), false, {"nvmlDeviceSetAccountingMode"}},
    {MEMBER(accounting_pids), false, {"nvmlDeviceGetAccountingPids"}},
    {MEMBER(accounting_stats), false, {"nvmlDeviceGetAccountingStats"}},
    {MEMBER(retired_pending), false, {"nvmlDeviceGetRetiredPagesPendingStatus"}},
    {MEMBER(handle_by_uuid), false, {"nvmlDeviceGetHandleByUUID"}},
    {MEMBER(set_limits), false, {"nvmlDeviceSetMemoryLimits_v1"}},
    {MEMBER(get_limits), false, {"nvmlDeviceGetMemoryLimits_v1"}},
    {MEMBER(mig_mode), false, {"nvmlDeviceGetMigMode"}},
    {MEMBER(mig_max), false, {"nvmlDeviceGetMaxMigDeviceCount"}},
    {MEMBER(mig_handle), false, {"nvmlDeviceGetMigDeviceHandleByIndex"}},
    {MEMBER(mig_gi), false, {"nvmlDeviceGetGpuInstanceId"}},
    {MEMBER(mig_ci), false, {"nvmlDeviceGetComputeInstanceId"}},
    {MEMBER(attributes), false, {"nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes"}},
    {MEMBER(link_state), false, {"nvmlDeviceGetNvLinkState"}},
    {MEMBER(link_remote_pci),
     false,
     {"nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo"}},
    {MEMBER(link_remote_type), false, {"nvmlDeviceGetNvLinkRemoteDeviceType"}},
    PROCESSES(NVML_COMPUTE, "nvmlDeviceGetComputeRunningProcesses"),
    PROCESSES(NVML_GRAPHICS, "nvmlDeviceGetGraphicsRunningProcesses"),
    PROCESSES(NVML_MPS, "nvmlDeviceGetMPSComputeRunningProcesses"),
};

static void *
find_symbol(void *library, const struct symbol *s)
{
    void *found = NULL;

    for (int i = 0; i < NAMES_MAX && s->names[i] && !found; i++)
        found = dlsym(library, s->names[i]);
    return found;
}

int
nvml_api_load(struct nvml_api *api, const char *path, struct err *e)
{
    memset(api, 0, sizeof *api);
    if (!path)
        path = "libnvidia-ml.so.1";
    api->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!api->library) {
        const char *words = dlerror();
        (void)err_set(e, ERR_FAILED, "cannot load NVML: %s", words);
        /* dlopen returns a text, but no error number. */
        e->errnum = strncmp(words, path, strlen(path)) == 0 && strstr(words, "No such file")
                        ? ENOENT
                        : 0;
        return -1;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        const struct symbol *s = &symbols[i];
        void *found = find_symbol(api->library, s);
        if (!found && s->required) {
            nvml_api_unload(api);
            return err_set(e, ERR_FAILED, "%s is not NVML: it has no %s", path, s->names[0]);
        }
        memcpy((char *)api + s->offset, &found, sizeof found);
    }
    return 0;
}

void
nvml_api_unload(struct nvml_api *api)
{
    if (api->library)
        dlclose(api->library);
    api->library = NULL;
}

const char *
nvml_api_words(const struct nvml_api *api, int status)
{
    const char *words = api->error_string ? api->error_string(status) : NULL;

    return words ? words : "unknown error";
}
