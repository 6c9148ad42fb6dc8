/* One interface for all ways to read the GPUs: NVML, nvidia-smi, DRM, simulated. Called by
 * berth-probe only, never by the daemon, because every call here may hang or crash with the
 * driver. A value that a backend does not report has no bit in `valid`; 0 always means zero. A
 * "card" is a whole GPU or a MIG instance. */
#ifndef GPU_BACKEND_H
#define GPU_BACKEND_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/request.h"

struct err;

#define CARD_UUID_MAX     96
#define CARD_NAME_MAX     96
#define CARD_BUS_MAX      32
#define CARD_CAP_MAX      8
#define CARD_KEY_MAX      64
#define CARD_WHY_MAX      120
#define BACKEND_NOTE_MAX  160
#define BACKEND_NOTES_MAX 8
#define BACKEND_WORDS_MAX 320
#define BACKEND_NODES_MAX 64
/* Every unordered pair of GPU_MAX cards. */
#define BACKEND_LINKS_MAX (GPU_MAX * (GPU_MAX - 1) / 2)

enum card_compute_mode {
    CARD_COMPUTE_DEFAULT,
    CARD_COMPUTE_EXCLUSIVE,
    CARD_COMPUTE_PROHIBITED
};

/* Bits for the reported fields of a card or of its use. */
enum card_field {
    CARD_HAS_BUS_ID = 1 << 0,
    CARD_HAS_MINOR = 1 << 1,
    CARD_HAS_NUMA = 1 << 2,
    CARD_HAS_COMPUTE_MODE = 1 << 3,
    CARD_HAS_USED = 1 << 4,
    CARD_HAS_UTIL = 1 << 5,
    CARD_HAS_TEMPERATURE = 1 << 6,
    CARD_HAS_PROCS = 1 << 7,
    CARD_HAS_HEALTH = 1 << 8,
    CARD_HAS_ORDER = 1 << 9,
    CARD_HAS_DRI = 1 << 10,
    CARD_HAS_CC = 1 << 11,
    CARD_HAS_ENERGY = 1 << 12,
};

/* The GPU's vendor: determines the environment variables that select it for a job. */
enum card_vendor { CARD_SIMULATED, CARD_NVIDIA, CARD_AMD, CARD_INTEL };

/* State of memory that went bad. */
enum card_memory_health {
    CARD_MEMORY_FINE,
    CARD_MEMORY_PENDING, /* it will be retired at the next reset */
    CARD_MEMORY_FAILED,  /* retiring failed: no spare is left */
};

/* Data that do not change while a card is in the machine. uuid and name are always set: a card
 * without them is left out. */
struct backend_card {
    uint32_t valid;
    int32_t index; /* NVML's, or the position in PCI order */
    enum card_vendor vendor;
    int32_t order; /* its number in the vendor's own variables; NVIDIA: index */
    char uuid[CARD_UUID_MAX];
    char name[CARD_NAME_MAX];
    char bus_id[CARD_BUS_MAX]; /* as in /sys/bus/pci/devices: "0000:01:00.0" */
    int32_t minor;             /* N of /dev/nvidiaN */
    int32_t dri_card;          /* N of /dev/dri/cardN */
    int32_t dri_render;        /* N of /dev/dri/renderDN */
    int32_t numa;
    int32_t cc;        /* compute capability in tenths: 89 is 8.9 */
    int64_t total_mib; /* without the driver's own reserve, if reported; 0: unknown */
    enum card_compute_mode compute_mode;
    /* What can cap a cgroup's use of the memory: "nvml", "sim", or "dmem", with its region as
     * cap_key; "": nothing, and cap_why is the reason. */
    char cap[CARD_CAP_MAX];
    char cap_key[CARD_KEY_MAX];
    char cap_why[CARD_WHY_MAX];
    /* For a MIG instance: the UUID of the GPU it is a part of; else "". */
    char mig_gpu[CARD_UUID_MAX];
    int32_t mig_gi, mig_ci;         /* its GPU instance and compute instance */
    int32_t mig_gi_cap, mig_ci_cap; /* N of /dev/nvidia-caps/nvidia-capN of both; -1: unknown */
};

/* All cards and their links. */
struct backend_machine {
    char driver[64]; /* "": unknown */
    int n;
    struct backend_card cards[GPU_MAX];
    int n_links;
    uint8_t links[BACKEND_LINKS_MAX][2]; /* positions in cards, smaller first, unique */
    int n_nodes;                         /* NUMA nodes with CPUs; 0: unknown */
    struct backend_node {
        int32_t node;
        cpu_set_t cpus;
    } nodes[BACKEND_NODES_MAX];
    int n_left_out;
    char left_out[BACKEND_NOTES_MAX][BACKEND_NOTE_MAX]; /* unused cards, and why */
    /* GPUs that could not be read at discovery, but may be later. */
    int n_unanswered;
    struct backend_unanswered {
        char bus_id[CARD_BUS_MAX]; /* "": unknown, or it stands for all of NVIDIA's */
        bool is_lost;              /* reported as lost; otherwise perhaps just stuck */
        char text[BACKEND_WORDS_MAX];
    } unanswered[BACKEND_NOTES_MAX];
    int n_mig_gpus;
    char mig_gpus[GPU_MAX][CARD_UUID_MAX]; /* GPUs in MIG mode, not cards themselves */
    int32_t mig_major;                     /* of /dev/nvidia-caps; 0: unknown */
};

/* A process on a card. */
struct backend_proc {
    int32_t pid;
    int64_t mib;      /* -1: not reported */
    int64_t peak_mib; /* maximum so far, as recorded by the driver; -1: not reported */
    bool only_draws;  /* it has a graphics context but no compute context */
};

/* The use of a card at one moment. */
struct backend_usage {
    uint32_t valid;
    bool present;       /* false: lost, and left out of the sample */
    bool is_unreadable; /* listed, but the driver answered no query; no field is valid */
    int64_t used_mib;
    int32_t util; /* percent */
    int32_t temperature_c;
    int64_t energy_mj; /* energy used since some moment, usually its reset */
    enum card_memory_health health;
    int n_procs; /* valid with CARD_HAS_PROCS */
    size_t cap_procs;
    struct backend_proc *procs; /* owned by the sample; reused for the next one */
    int n_ended;                /* ended processes with their peaks; each is reported once */
    size_t cap_ended;
    struct backend_proc *ended; /* as procs */
};

/* The use of one card by all processes of a cgroup. */
struct backend_group {
    int card;         /* position in the machine's cards */
    const char *name; /* as for `cap` below; borrowed */
    int64_t mib;      /* -1: not reported */
    int64_t peak_mib; /* -1: not reported */
};

/* use[i] belongs to cards[i] of the machine. Zero-initialise; reuse for every sample. */
struct backend_sample {
    struct backend_usage use[GPU_MAX];
};

void backend_sample_reset(struct backend_sample *s); /* reports nothing; keeps the memory */
void backend_sample_free(struct backend_sample *s);  /* frees what it owns; not s */

/* Adds a process; for a pid seen before the larger figure is kept (a process is often listed
 * both as compute and as graphics). */
void backend_usage_add(struct backend_usage *u, int32_t pid, int64_t mib);
/* The same for a graphics process: if it is not also listed otherwise, it only draws. */
void backend_usage_add_drawing(struct backend_usage *u, int32_t pid, int64_t mib);
void backend_usage_add_ended(struct backend_usage *u, int32_t pid, int64_t peak_mib);

/* Adds the pair; no-op if it is there already or a == b. */
void backend_machine_link(struct backend_machine *m, int a, int b);

/* Adds a NUMA node; no-op if there is no room. */
void backend_machine_add_node(struct backend_machine *m, int32_t node, const cpu_set_t *cpus);

/* Notes a card that is not used; no-op if there is no room. */
void backend_machine_leave_out(struct backend_machine *m, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds a GPU that could not be read; no-op if there is no room. */
void backend_machine_add_unanswered(struct backend_machine *m, const char *bus_id, bool is_lost,
                                    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Where to look; NULL: the usual place. Borrowed; must outlive the backend. */
struct backend_config {
    const char *nvml_path; /* BERTH_NVML; libnvidia-ml.so.1 */
    const char *smi_path;  /* BERTH_NVIDIA_SMI; nvidia-smi, searched in PATH */
    const char *sim_spec;  /* "2", "4x80G"; NULL: the one in the folder */
    const char *sim_dir;
    const char *sys_root;    /* "/sys" */
    const char *proc_root;   /* "/proc" */
    const char *pci_ids;     /* list of PCI device names */
    const char *cgroup_root; /* mount point of cgroup v2; NULL: not mounted */
};

/* open creates *state, discover reads the cards (once, after open), sample reads their use
 * (any number of times). All return 0, or -1 with e. A machine without cards is an error,
 * unless has_changed would notice new ones; then left_out says why there are none yet. Call
 * close whatever open returned; it frees *state, also NULL. */
struct backend {
    const char *name; /* in messages and for --backend */
    int (*open)(const struct backend_config *config, void **state, struct err *e);
    int (*discover)(void *state, struct backend_machine *out, struct err *e);
    int (*sample)(void *state, struct backend_sample *out, struct err *e);
    /* True if the set of cards, their device files or their compute modes have changed since
     * discover, so that the backend has to be closed and reopened. A card that is only lost is
     * no such change. NULL: never. */
    bool (*has_changed)(void *state);
    void (*close)(void *state);
    /* Caps the group's use of the card with this UUID; -1: removes the cap. group: full path
     * of its folder (the simulator: any name). Needs only open: other cards, which may be
     * broken, are not accessed. NULL: not supported. */
    int (*cap)(void *state, const char *uuid, const char *group, int64_t mib, struct err *e);
    /* Sets mib and peak_mib of a group; call after discover. NULL if cap is. */
    void (*group_use)(void *state, struct backend_group *g);
};

extern const struct backend backend_nvml;
extern const struct backend backend_smi;
extern const struct backend backend_drm;
extern const struct backend backend_sim;

#endif
