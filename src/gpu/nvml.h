/* What the two halves of the NVML backend share. No other file includes this. */
#ifndef GPU_NVML_H
#define GPU_NVML_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "gpu/backend.h"
#include "gpu/nvml_api.h"

/* What has been reported of the processes that a card's driver remembers; nvml_account.c. */
struct nvml_account {
    bool is_on;
    bool has_begun;
    uint32_t *ended; /* pids, sorted */
    uint32_t n_ended;
};

/* What is known of a card that is a MIG instance. */
struct nvml_instance {
    nvml_device gpu; /* that it is a part of; NULL: the card is a whole GPU */
    uint32_t gi, ci;
    bool shares_memory; /* with other compute instances of its GPU instance */
};

/* A GPU that can be divided, and its instances when the cards were found, as text; "": it was
 * not divided. */
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
    uint32_t compute_modes[GPU_MAX]; /* when the cards were found; UINT32_MAX: not known */
    struct nvml_account accounts[GPU_MAX];
    int64_t health_due_us; /* boot clock: when to ask for the memory's health again */
    void *processes;       /* room for the records of one list, kept from call to call */
    uint32_t cap_processes;
};

/* nvml_mig.c: adds the instances of a GPU in MIG mode to the cards. False: it is in no such
 * mode. */
bool nvml_add_instances(struct nvml *nvml, nvml_device gpu, struct backend_machine *out);
int32_t nvml_next_index(const struct backend_machine *m); /* behind the cards so far */
bool nvml_has_new_partition(const struct nvml *nvml);
void nvml_mig_end(struct nvml *nvml);
/* Its address; false: not reported. */
bool nvml_read_bus(const struct nvml_api *api, nvml_device device, char out[CARD_BUS_MAX]);
/* What a GPU and its instances have in common. */
void nvml_read_numbers(const struct nvml *nvml, nvml_device device, struct backend_card *card);

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

bool nvml_card_is_lost(int status);

/* Which of the GPUs that the driver has were met when the cards were found; nvml_roll.c. */
struct nvml_roll {
    int n;
    char bus_ids[GPU_MAX][CARD_BUS_MAX];
    bool is_met[GPU_MAX];
    bool is_vague; /* the address of one that does not answer is not known */
};
void nvml_roll_begin(const struct nvml *nvml, struct nvml_roll *roll);
/* The GPU of that handle has answered. */
void nvml_roll_met(const struct nvml *nvml, nvml_device device, struct nvml_roll *roll);
/* The one of that index, of so many, has not: into out. device: NULL where it has no handle. */
void nvml_roll_silent(const struct nvml *nvml, struct nvml_roll *roll, uint32_t index,
                      uint32_t count, nvml_device device, int status,
                      struct backend_machine *out);
/* Adds those that NVML does not list. */
void nvml_roll_end(const struct nvml_roll *roll, struct backend_machine *out);

/* Fills u of a card, by its position; one that is lost stays absent, and one about which every
 * call fails for another reason (a timeout, its firmware is stuck) is unreadable. NVML_OK, or
 * the status that says that NVML itself is of no use any more. */
int nvml_read_usage(struct nvml *nvml, int card, struct backend_usage *u);

#endif
