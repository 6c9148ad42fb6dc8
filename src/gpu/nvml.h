/* Shared by the files of the NVML backend. No other file includes this. */
#ifndef GPU_NVML_H
#define GPU_NVML_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "gpu/backend.h"
#include "gpu/nvml_api.h"

/* Which of the ended processes in the driver's accounting have been reported;
 * nvml_account.c. */
struct nvml_account {
    bool is_on;
    bool has_begun;
    uint32_t *ended; /* pids, sorted */
    uint32_t n_ended;
};

/* Data of a card that is a MIG instance. */
struct nvml_instance {
    nvml_device gpu; /* the GPU it is a part of; NULL: the card is a whole GPU */
    uint32_t gi, ci;
    bool shares_memory; /* with other compute instances of its GPU instance */
};

/* A GPU that supports MIG, and its instances at discovery as text; "": it was not divided. */
struct nvml_divisible {
    nvml_device device;
    struct buf layout;
};

struct nvml {
    const struct backend_config *config;
    struct nvml_api api;
    bool started;
    int n;
    nvml_device devices[GPU_MAX];
    struct nvml_instance instances[GPU_MAX];
    int n_divisible;
    struct nvml_divisible divisible[GPU_MAX];
    uint32_t compute_modes[GPU_MAX]; /* at discovery; UINT32_MAX: unknown */
    struct nvml_account accounts[GPU_MAX];
    int64_t health_due_us; /* boot clock: when to read the memory's health again */
    void *processes;       /* buffer for the records of one list, kept between calls */
    uint32_t cap_processes;
};

/* nvml_mig.c: adds the instances of a GPU in MIG mode to the cards. False: it is not in MIG
 * mode. */
bool nvml_add_instances(struct nvml *nvml, nvml_device gpu, struct backend_machine *out);
int32_t nvml_next_index(const struct backend_machine *m); /* for the next card */
bool nvml_has_new_partition(const struct nvml *nvml);
void nvml_mig_end(struct nvml *nvml);
/* Reads the PCI address; false: not reported. */
bool nvml_read_bus(const struct nvml_api *api, nvml_device device, char out[CARD_BUS_MAX]);
/* Sets the fields that a GPU and its instances have in common. */
void nvml_read_numbers(const struct nvml *nvml, nvml_device device, struct backend_card *card);

/* A card's memory, whichever function reported it: what programs can use, and what is in
 * use. */
struct nvml_reading {
    int64_t total_mib;
    int64_t used_mib;
};
int nvml_read_memory(const struct nvml_api *api, nvml_device device, struct nvml_reading *out);

/* Starts using the driver's accounting; tries to turn it on if it is off. */
void nvml_account_start(const struct nvml_api *api, nvml_device device, struct nvml_account *a);
void nvml_account_end(struct nvml_account *a);
/* Adds the peaks of u's processes, and of those that have ended since; call after
 * nvml_read_usage. */
void nvml_account_read(const struct nvml_api *api, nvml_device device, struct nvml_account *a,
                       struct backend_usage *u);

/* nvml_caps.c. nvml_find_cap stores in *card whether it can be capped; nvml_cap returns -1
 * with e if a group could not be capped. */
void nvml_find_cap(const struct nvml *nvml, nvml_device device, struct backend_card *card);
int nvml_cap(void *state, const char *uuid, const char *group, int64_t mib, struct err *e);
void nvml_group_use(void *state, struct backend_group *g);

/* Reads the health of the card's memory into u; no-op if it is not reported. */
void nvml_read_health(const struct nvml_api *api, nvml_device device, struct backend_usage *u);

bool nvml_card_is_lost(int status);

/* Which of the GPUs known to the driver NVML listed at discovery; nvml_roll.c. */
struct nvml_roll {
    int n;
    char bus_ids[GPU_MAX][CARD_BUS_MAX];
    bool is_met[GPU_MAX];
    bool is_vague; /* the address of a GPU could not be read */
};
void nvml_roll_begin(const struct nvml *nvml, struct nvml_roll *roll);
/* The GPU with this handle was listed. */
void nvml_roll_met(const struct nvml *nvml, nvml_device device, struct nvml_roll *roll);
/* Records in out that the GPU at this index, of count, does not answer. device: NULL if it has
 * no handle. */
void nvml_roll_silent(const struct nvml *nvml, struct nvml_roll *roll, uint32_t index,
                      uint32_t count, nvml_device device, int status,
                      struct backend_machine *out);
/* Adds the GPUs that NVML does not list. */
void nvml_roll_end(const struct nvml_roll *roll, struct backend_machine *out);

/* Fills u for the card at this position. A lost card stays absent; one for which every call
 * fails for another reason (a timeout, stuck firmware) is unreadable. NVML_OK, or the status
 * if NVML itself no longer works. */
int nvml_read_usage(struct nvml *nvml, int card, struct backend_usage *u);

#endif
