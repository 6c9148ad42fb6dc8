/* The small part of NVML's interface that Berth uses, declared here so that it builds and runs
 * without NVIDIA's headers: values and layouts are NVML's ABI. Functions missing in an older
 * or newer library are NULL. */
#ifndef GPU_NVML_API_H
#define GPU_NVML_API_H

#include <stdint.h>

struct err;
struct nvml_device_st;

enum nvml_status {
    NVML_OK = 0,
    NVML_UNINITIALIZED = 1,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_GPU_IS_LOST = 15,
    NVML_RESET_REQUIRED = 16,
    NVML_VERSION_MISMATCH = 18,
    NVML_GPU_NOT_FOUND = 28,
};

/* nvmlPciInfo_t; older versions are shorter but agree up to `device`. */
struct nvml_pci {
    char bus_id_legacy[16];
    uint32_t domain;
    uint32_t bus;
    uint32_t device;
    uint32_t ids[2];
    char bus_id[32];
};

struct nvml_memory {
    uint64_t total;
    uint64_t free;
    uint64_t used;
};

struct nvml_memory_v2 {
    uint32_t version; /* NVML_MEMORY_V2 */
    uint64_t total;
    uint64_t reserved; /* by the driver; not part of used here, but of nvml_memory's */
    uint64_t free;
    uint64_t used;
};
#define NVML_MEMORY_V2 ((uint32_t)sizeof(struct nvml_memory_v2) | 2U << 24)

struct nvml_utilization {
    uint32_t gpu;
    uint32_t memory;
};

/* nvmlAccountingStats_t */
struct nvml_accounting_stats {
    uint32_t gpu_util;
    uint32_t memory_util;
    uint64_t max_memory_bytes; /* all ones: not reported */
    uint64_t time_ms;
    uint64_t start_us;
    uint32_t running;
    uint32_t reserved[5];
};

/* nvmlSetMemoryLimits_v1_t and nvmlGetMemoryLimits_v1_t; driver 615 on. */
struct nvml_set_limits {
    const char *group; /* full path of the cgroup's folder */
    unsigned long long soft_bytes;
    unsigned long long hard_bytes;
};
struct nvml_get_limits {
    const char *group;
    unsigned long long soft_bytes;
    unsigned long long hard_bytes;
    unsigned long long used_bytes; /* by the whole group */
};
#define NVML_NO_LIMIT (~0ULL)

/* nvmlDeviceAttributes_t: only for MIG instances. */
struct nvml_attributes {
    uint32_t multiprocessors;
    uint32_t engines[5];
    uint32_t gpu_slices;     /* of its GPU instance */
    uint32_t compute_slices; /* of the compute instance, out of these */
    uint64_t memory_mib;
};

/* Record of a process: the first version ends after used_bytes, so records are walked with the
 * stride of the function that filled them. */
struct nvml_process {
    uint32_t pid;
    uint64_t used_bytes;   /* all ones: not reported */
    uint32_t instances[2]; /* GPU and compute instance; all ones: none, or not reported */
};
#define NVML_PROCESS_V1_SIZE 16
#define NVML_LINKS_MAX       18
#define NVML_REMOTE_SWITCH   2

typedef struct nvml_device_st *nvml_device;
typedef int (*nvml_processes_fn)(nvml_device, uint32_t *, void *);
typedef int (*nvml_uint_fn)(nvml_device, uint32_t *);
typedef int (*nvml_text_fn)(nvml_device, char *, uint32_t);

enum nvml_process_kind { NVML_COMPUTE, NVML_GRAPHICS, NVML_MPS };
#define NVML_PROCESS_KINDS    3
#define NVML_PROCESS_VERSIONS 3 /* newest first; the last has short records */

struct nvml_api {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int);
    int (*driver_version)(char *, uint32_t);
    nvml_processes_fn processes[NVML_PROCESS_KINDS][NVML_PROCESS_VERSIONS];
    int (*count)(uint32_t *);
    int (*handle)(uint32_t, nvml_device *);
    nvml_text_fn uuid;
    nvml_text_fn name;
    nvml_uint_fn minor;
    nvml_uint_fn numa;
    nvml_uint_fn compute_mode;
    int (*compute_capability)(nvml_device, int *major, int *minor);
    int (*pci)(nvml_device, struct nvml_pci *);
    int (*memory)(nvml_device, struct nvml_memory *);
    int (*memory_v2)(nvml_device, struct nvml_memory_v2 *);
    int (*utilization)(nvml_device, struct nvml_utilization *);
    int (*remapped_rows)(nvml_device, uint32_t *corrected, uint32_t *uncorrected,
                         uint32_t *pending, uint32_t *failed);
    nvml_uint_fn accounting_mode;
    int (*set_accounting_mode)(nvml_device, uint32_t mode);
    int (*accounting_pids)(nvml_device, uint32_t *n, uint32_t *pids);
    int (*accounting_stats)(nvml_device, uint32_t pid, struct nvml_accounting_stats *);
    nvml_uint_fn retired_pending; /* pages; GPUs before Ampere */
    int (*temperature)(nvml_device, int sensor, uint32_t *);
    int (*energy)(nvml_device, unsigned long long *mj); /* since the driver was loaded */
    int (*handle_by_uuid)(const char *, nvml_device *);
    int (*set_limits)(nvml_device, struct nvml_set_limits *);
    int (*get_limits)(nvml_device, struct nvml_get_limits *);
    int (*mig_mode)(nvml_device, uint32_t *now, uint32_t *pending);
    nvml_uint_fn mig_max; /* maximum number of instances */
    int (*mig_handle)(nvml_device, uint32_t index, nvml_device *);
    nvml_uint_fn mig_gi;
    nvml_uint_fn mig_ci;
    int (*attributes)(nvml_device, struct nvml_attributes *);
    int (*link_state)(nvml_device, uint32_t link, uint32_t *active);
    int (*link_remote_pci)(nvml_device, uint32_t link, struct nvml_pci *);
    int (*link_remote_type)(nvml_device, uint32_t link, uint32_t *type);
};

/* Loads the library (NULL: libnvidia-ml.so.1) and looks up its functions. -1 with e if it
 * cannot be loaded or lacks an essential function. */
int nvml_api_load(struct nvml_api *api, const char *path, struct err *e);
void nvml_api_unload(struct nvml_api *api);

/* NVML's description of a status. */
const char *nvml_api_words(const struct nvml_api *api, int status);

#endif
