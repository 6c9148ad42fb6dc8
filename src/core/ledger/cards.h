/* Plain facts about a card, as a probe reports them and the ledger keeps them. A value
 * that was not reported is -1 (or an empty string), never 0. No code but the names. */
#ifndef CORE_LEDGER_CARDS_H
#define CORE_LEDGER_CARDS_H

#include <stdbool.h>
#include <stdint.h>

enum gpu_state {
    GPU_UP,
    GPU_PAUSED,   /* no new work, by a person */
    GPU_DRAINING, /* the same; a user waits for it to become empty */
    GPU_LOST,     /* fell off the bus: missing from a sample */
    GPU_UNKNOWN,  /* the probe is silent, has not spoken yet, or cannot read it */
    GPU_SICK,     /* XID */
};
#define GPU_STATES (GPU_SICK + 1)

enum gpu_compute {
    GPU_COMPUTE_UNKNOWN, /* not reported; taken as default */
    GPU_COMPUTE_DEFAULT,
    GPU_COMPUTE_EXCLUSIVE,  /* the driver lets one process in: nothing is placed beside
                             * another */
    GPU_COMPUTE_PROHIBITED, /* the driver lets none in: jobs wait, as for a paused one */
};

/* The GPU's vendor: decides which variables name it to a job. */
enum gpu_vendor {
    GPU_VENDOR_NONE, /* simulated: as NVIDIA's */
    GPU_VENDOR_NVIDIA,
    GPU_VENDOR_AMD,
    GPU_VENDOR_INTEL,
};
#define GPU_VENDORS (GPU_VENDOR_INTEL + 1)

/* What holds a group of processes to a part of a card's memory. */
enum gpu_cap {
    GPU_CAP_NONE,
    GPU_CAP_NVML, /* NVIDIA's driver, by NVML's memory limits */
    GPU_CAP_DMEM, /* the kernel, by its dmem controller */
    GPU_CAP_SIM,  /* the simulator */
};

struct gpu_info {
    int32_t index;                /* NVML's, and the card's number in the ledger */
    int32_t minor;                /* -1: not known */
    int32_t dri_card, dri_render; /* minor numbers in /dev/dri; -1: none, or not known */
    int32_t order; /* among the vendor's devices, by its own count; -1: not known */
    enum gpu_vendor vendor;
    int32_t numa;      /* -1: not known */
    int32_t cc;        /* compute capability in tenths; 0: not known */
    int64_t total_mib; /* 0: not known; such a card is placed by count only */
    enum gpu_compute compute;
    char uuid[80];
    char name[96];
    char bus_id[32];
    enum gpu_cap cap;
    char cap_key[64];  /* GPU_CAP_DMEM: the card's region */
    char cap_why[120]; /* GPU_CAP_NONE: why, in words; "" */
    /* A MIG instance: the UUID of the GPU that it is a part of, else "". */
    char mig_gpu[80];
    int32_t mig_gi, mig_ci;
    int32_t mig_caps[2]; /* minor numbers in /dev/nvidia-caps; -1: not known */
};

/* The use of a job's whole group on one card. */
struct gpu_group {
    uint32_t job;
    int32_t mib;      /* -1: it cannot be read */
    int32_t peak_mib; /* -1: nothing remembers it */
};

/* One process on one card. */
struct gpu_proc {
    int32_t pid;
    int32_t mib;     /* -1: not reported */
    uint32_t job;    /* 0: a stranger's, or not attributable */
    int64_t start;   /* start time in any unit, to detect a reused pid; 0: not known */
    int64_t uid;     /* whose process it is; -1: not known */
    bool only_draws; /* it has a graphics context and none that computes */
};

struct gpu_sample {
    int64_t used_mib;      /* -1: not reported */
    int32_t util;          /* per cent; -1 */
    int32_t temperature_c; /* -1 */
    const struct gpu_proc *procs;
    int32_t n_procs; /* -1: the list itself was not to be had */
    const struct gpu_group *groups;
    int32_t n_groups;
    int64_t energy_mj; /* used since some moment; 0: not reported */
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
