/* What the two halves of the NVML backend share. No other file includes this. */
#ifndef GPU_NVML_H
#define GPU_NVML_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/backend.h"
#include "gpu/nvml_api.h"

/* What has been reported of the processes that a card's driver remembers; nvml_account.c. */
struct nvml_account {
    bool is_on;
    bool has_begun;
    uint32_t *ended; /* pids, sorted */
    uint32_t n_ended;
};

struct nvml {
    const struct backend_config *config;
    struct nvml_api api;
    bool started;
    int n;
    nvml_device devices[GPU_MAX];
    struct nvml_account accounts[GPU_MAX];
    int64_t health_due_us; /* boot clock: when to ask for the memory's health again */
    void *processes;       /* room for the records of one list, kept from call to call */
    uint32_t cap_processes;
};

/* A card's memory, whichever function reported it: what programs can have, and have. */
struct nvml_reading {
    int64_t total_mib;
    int64_t used_mib;
};
int nvml_read_memory(const struct nvml_api *api, nvml_device device, struct nvml_reading *out);

/* Looks whether the driver keeps accounts, and makes it. */
void nvml_account_start(const struct nvml_api *api, nvml_device device, struct nvml_account *a);
void nvml_account_end(struct nvml_account *a);
/* Adds the peaks to u's processes, and those that have ended since; after nvml_read_usage. */
void nvml_account_read(const struct nvml_api *api, nvml_device device, struct nvml_account *a,
                       struct backend_usage *u);

/* nvml_caps.c: what the card can, into *card; -1 with e where a group could not be capped. */
void nvml_find_cap(const struct nvml *nvml, nvml_device device, struct backend_card *card);
int nvml_cap(void *state, const char *uuid, const char *group, int64_t mib, struct err *e);
void nvml_group_use(void *state, struct backend_group *g);

/* The health of the card's memory into u; nothing where the card does not report it. */
void nvml_read_health(const struct nvml_api *api, nvml_device device, struct backend_usage *u);

/* Fills u; a card that is lost stays absent. NVML_OK, or the status that says that NVML
 * itself is of no use any more. */
int nvml_read_usage(struct nvml *nvml, nvml_device device, struct backend_usage *u);

#endif
