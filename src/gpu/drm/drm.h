/* What the parts of the DRM backend share. No other file includes this. */
#ifndef GPU_DRM_DRM_H
#define GPU_DRM_DRM_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "gpu/backend.h"
#include "gpu/drm/fdinfo.h"

#define DRM_KFD_NODES_MAX 128

enum drm_driver { DRM_AMDGPU, DRM_XE, DRM_I915 };

/* A card that is used. */
struct drm_card {
    char *dir; /* ROOT/class/drm/cardN/device */
    enum drm_driver driver;
    char bus_id[CARD_BUS_MAX];
    uint32_t kfd_id; /* its name in KFD's files; 0: KFD does not have it */
};

/* A card of one of the drivers, used or not, and its numbers in /dev/dri. */
struct drm_place {
    char bus_id[CARD_BUS_MAX];
    int32_t card;
    int32_t render; /* -1: none */
};

/* An open file of /dev/dri, as last seen. */
struct drm_client {
    struct drm_client_key {
        uint64_t id, card;
    } key;
    uint64_t seen; /* the number of the sampling */
    int n_engines;
    struct fdinfo_engine engines[FDINFO_ENGINES_MAX];
    UT_hash_handle hh;
};

struct drm {
    const struct backend_config *config;
    bool beside_nvidia; /* NVIDIA's driver was loaded when this was opened */
    int n;
    struct drm_card cards[GPU_MAX];
    int n_places;
    struct drm_place places[GPU_MAX]; /* when the cards were last looked for */
    uint64_t samplings;
    int64_t sampled_us;         /* boot clock */
    struct drm_client *clients; /* a hash: a process may have a hundred thousand files open */
};

const char *drm_sys_root(const struct drm *drm);
const char *drm_proc_root(const struct drm *drm);

/* --- the cards; drm_cards.c --- */

/* Fills drm->cards and the machine: those that are used, by address. */
void drm_find_cards(struct drm *drm, struct backend_machine *out);
/* Whether there is a card now that was not there then, or had other numbers. */
bool drm_cards_differ(const struct drm *drm);

/* --- files of sysfs; drm_files.c --- */

/* The value behind "KEY=" or "KEY " in a text of such lines, into out; false: there is none. */
bool drm_find_value(const char *text, const char *key, char between, char *out, size_t size);
/* Path of the first entry of DIR/NAME that starts with prefix; NULL: none. The caller frees. */
char *drm_first_entry(const char *dir, const char *name, const char *prefix);

/* --- AMD's compute driver; drm_kfd.c --- */

/* A GPU as KFD has it. A card that is divided into partitions has several. */
struct drm_kfd_node {
    char bus_id[CARD_BUS_MAX];
    uint32_t id;
};

/* In the order in which ROCm counts devices. How many. */
int drm_kfd_nodes(const char *sys_root, struct drm_kfd_node out[DRM_KFD_NODES_MAX]);

/* Adds what the compute processes have. */
void drm_kfd_add(const struct drm *drm, struct backend_sample *out);

/* --- processes; drm_clients.c --- */

/* Adds the processes that have the cards open, with their memory, and the load of cards that
 * do not report it. */
void drm_clients_add(struct drm *drm, struct backend_sample *out);
/* Those that were last seen before that sampling. */
void drm_clients_forget(struct drm *drm, uint64_t before);

#endif
