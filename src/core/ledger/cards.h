/* Plain facts about a GPU, as a probe reports them and the ledger keeps them. An unreported
 * value is -1 (or an empty string), never 0. The only functions are those for names. */
#ifndef CORE_LEDGER_CARDS_H
#define CORE_LEDGER_CARDS_H

#include <stdbool.h>
#include <stdint.h>

enum gpu_state {
    GPU_UP,
    GPU_PAUSED,   /* by a person: no new jobs */
    GPU_DRAINING, /* the same; a user waits until it is empty */
    GPU_LOST,     /* fell off the bus: missing from a sample */
    GPU_UNKNOWN,  /* the probe is silent, has not reported yet, or cannot read the GPU */
    GPU_SICK,     /* XID */
};
#define GPU_STATES (GPU_SICK + 1)

enum gpu_compute {
    GPU_COMPUTE_UNKNOWN, /* not reported; treated as default */
    GPU_COMPUTE_DEFAULT,
    GPU_COMPUTE_EXCLUSIVE,  /* the driver admits one process: no job is placed beside
                               another */
    GPU_COMPUTE_PROHIBITED, /* the driver admits none: jobs wait, as for a paused GPU */
};

/* Decides which environment variables name the GPU to a job. */
enum gpu_vendor {
    GPU_VENDOR_NONE, /* simulated: treated as NVIDIA */
    GPU_VENDOR_NVIDIA,
    GPU_VENDOR_AMD,
    GPU_VENDOR_INTEL,
};
#define GPU_VENDORS (GPU_VENDOR_INTEL + 1)

/* What enforces a VRAM cap on a group of processes. */
enum gpu_cap {
    GPU_CAP_NONE,
    GPU_CAP_NVML, /* NVIDIA's driver, by NVML's memory limits */
    GPU_CAP_DMEM, /* the kernel's dmem controller */
    GPU_CAP_SIM,  /* the simulator */
};

struct gpu_info {
    int32_t index;                /* NVML's index; also the card's number in the ledger */
    int32_t minor;                /* -1: unknown */
    int32_t dri_card, dri_render; /* minor numbers in /dev/dri; -1: none, or unknown */
    int32_t order;                /* its number as the vendor counts its devices; -1: unknown */
    enum gpu_vendor vendor;
    int32_t numa;      /* NUMA node; -1: unknown */
    int32_t cc;        /* compute capability in tenths; 0: unknown */
    int64_t total_mib; /* 0: unknown; such a card is placed by count only */
    enum gpu_compute compute;
    char uuid[80];
    char name[96];
    char bus_id[32];
    enum gpu_cap cap;
    char cap_key[64];  /* GPU_CAP_DMEM: the card's region in the controller */
    char cap_why[120]; /* GPU_CAP_NONE: why; "" */
    /* A MIG instance: the UUID of its GPU; else "". */
    char mig_gpu[80];
    int32_t mig_gi, mig_ci;
    int32_t mig_caps[2]; /* minor numbers in /dev/nvidia-caps; -1: unknown */
};

/* Memory use of a job's whole process group on one card. */
struct gpu_group {
    uint32_t job;
    int32_t mib;      /* -1: cannot be read */
    int32_t peak_mib; /* -1: the kernel keeps no peak */
};

/* One process on one card. */
struct gpu_proc {
    int32_t pid;
    int32_t mib;     /* -1: not reported */
    uint32_t job;    /* 0: another process's, or unknown */
    int64_t start;   /* start time in any unit, to detect a reused pid; 0: unknown */
    int64_t uid;     /* owner; -1: unknown */
    bool only_draws; /* it has a graphics context but no compute context */
};

struct gpu_sample {
    int64_t used_mib;      /* -1: not reported */
    int32_t util;          /* per cent; -1 */
    int32_t temperature_c; /* -1 */
    const struct gpu_proc *procs;
    int32_t n_procs; /* -1: the list could not be read */
    const struct gpu_group *groups;
    int32_t n_groups;
    int64_t energy_mj; /* counted from some fixed moment; 0: not reported */
};

struct buf;
/* "gpu 2", "gpus 0-3,6": appended. */
void gpu_set_text(uint64_t set, struct buf *out);

const char *gpu_state_name(enum gpu_state s); /* "up" */
int gpu_state_from_name(const char *name, enum gpu_state *out);
int gpu_compute_from_name(const char *name, enum gpu_compute *out);
const char *gpu_vendor_name(enum gpu_vendor v);         /* "amd"; NULL for NONE */
enum gpu_vendor gpu_vendor_from_name(const char *name); /* NULL, unknown: NONE */
const char *gpu_cap_name(enum gpu_cap c);               /* "nvml"; NULL for NONE */
int gpu_cap_from_name(const char *name, enum gpu_cap *out);

#endif
